"""What an engine needs before a job can be submitted to it, asked before anything is written.

Beam itself would tell it late, by an ImportError, or by workers that do not start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec

from gapless_pipelines.findings import Problem

_DATAFLOW_PACKAGE = "google.cloud.dataflow_v1beta3"
_DATAFLOW_NEEDS = {
    "project": "the Google Cloud project that the job runs in",
    "region": "the region that the job runs in, such as europe-west1",
    "temp_location": "a folder for what the job stages, gs://BUCKET/FOLDER",
}
_GIVES_WORKERS_GAPLESS = ("sdk_container_image", "requirements_file", "setup_file", "extra_packages")
_IMAGE = (
    "sdk_container_image, an image in which gapless is installed, or requirements_file, setup_file or extra_packages that"
    " install it"
)
_FLINK_HERE = ("[local]", "[auto]")
_SPARK_HERE = re.compile(r"local(\[.+])?")
_CONTAINERS = ("", "DOCKER", "beam:env:docker:v1")


def launch_problems(runner: str, settings: Mapping[str, object]) -> list[Problem]:
    """What is missing for a start on `runner`, Beam's name of the engine. `settings` are its options by Beam's names."""
    problems = []
    if runner == "DataflowRunner":
        if not _installed(_DATAFLOW_PACKAGE):
            problems.append(
                Problem(
                    "runner", "DataflowRunner needs packages of Google Cloud's", 'pip install "gapless[gcp]"'
                )
            )
        problems += [
            Problem(name, "is missing: Dataflow cannot start the job without it", what)
            for name, what in _DATAFLOW_NEEDS.items()
            if not settings.get(name)
        ]
        problems += _gs_paths(settings)
    if runner == "PortableRunner" and not settings.get("job_endpoint"):
        problems.append(
            Problem("job_endpoint", "is missing: PortableRunner submits to a job server", "its HOST:PORT")
        )
    if _in_containers(runner, settings) and not _workers_have_gapless(runner, settings):
        problems.append(
            Problem(
                "sdk_container_image", "is missing: Beam's own image for workers holds no gapless", _IMAGE
            )
        )
    return problems


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _gs_paths(settings: Mapping[str, object]) -> list[Problem]:
    return [
        Problem(name, f"`{settings[name]}` is no folder of Cloud Storage", "gs://BUCKET/FOLDER")
        for name in ("temp_location", "staging_location")
        if settings.get(name) and not re.fullmatch(r"gs://[^/]+/.+", str(settings[name]))
    ]


def _in_containers(runner: str, settings: Mapping[str, object]) -> bool:
    """Workers start from an image, and find there what they import."""
    if runner == "DataflowRunner":
        return True
    if str(settings.get("environment_type") or "") not in _CONTAINERS:
        return False
    to_file = bool(settings.get("output_executable_path"))
    if runner == "FlinkRunner":
        return to_file or settings.get("flink_master") not in _FLINK_HERE
    if runner == "SparkRunner":
        return to_file or not _SPARK_HERE.fullmatch(str(settings.get("spark_master_url")))
    if runner == "PrismRunner":
        return to_file or bool(settings.get("environment_type"))
    return runner == "PortableRunner"


def _workers_have_gapless(runner: str, settings: Mapping[str, object]) -> bool:
    if any(settings.get(name) for name in _GIVES_WORKERS_GAPLESS):
        return True
    # Of the other engines, the image may also be the configuration of the environment.
    return runner != "DataflowRunner" and bool(
        settings.get("environment_config") or settings.get("environment_options")
    )
