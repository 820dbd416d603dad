"""What an engine needs before a job goes to it: a clear finding before anything is written, and no ImportError."""

from collections.abc import Sequence

import pytest

from gapless_pipelines import launching
from gapless_pipelines.findings import InvalidConfiguration
from gapless_pipelines.options import EngineOptions, engine_options

POSTGRESQL = "postgresql+psycopg://me@db/progress"
DATAFLOW = ("--runner=DataflowRunner", "--project=p", "--region=europe-west1", "--temp_location=gs://b/tmp")
IMAGE = "--sdk_container_image=europe-docker.pkg.dev/p/r/gapless:1"


def launched(*arguments: str) -> EngineOptions:
    return engine_options({}, arguments, store_url=POSTGRESQL, launching=True)


def missing(*arguments: str) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        launched(*arguments)
    return [str(finding) for finding in caught.value.findings]


def without(name: str) -> list[str]:
    return [word for word in (*DATAFLOW, IMAGE) if not word.startswith(f"--{name}=")]


def test_all_that_dataflow_needs_is_enough() -> None:
    assert launched(*DATAFLOW, IMAGE).engine == "DataflowRunner"


@pytest.mark.parametrize("name", ["project", "region", "temp_location"])
def test_each_thing_that_dataflow_lacks_is_named(name: str) -> None:
    (told,) = missing(*without(name))
    assert told.startswith(
        f"job file: pipeline_options.{name}: is missing: Dataflow cannot start the job without it; "
    )


def test_everything_that_is_missing_is_told_at_once() -> None:
    assert [line.split(":")[1].strip() for line in missing("--runner=DataflowRunner")] == [
        f"pipeline_options.{name}" for name in ("project", "region", "temp_location", "sdk_container_image")
    ]


@pytest.mark.parametrize("path", ["/tmp/here", "gs://bucket", "s3://bucket/tmp"])
def test_a_folder_that_is_none_of_cloud_storage_is_refused(path: str) -> None:
    (told,) = missing(*without("temp_location"), f"--temp_location={path}")
    assert f"--temp_location: `{path}` is no folder of Cloud Storage; gs://BUCKET/FOLDER" in told


@pytest.mark.parametrize(
    "gives",
    ["--requirements_file=requirements.txt", "--setup_file=./setup.py", "--extra_package=gapless.whl", IMAGE],
)
def test_workers_get_gapless_by_an_image_or_as_a_package(gives: str) -> None:
    assert launched(*DATAFLOW, gives)
    assert "Beam's own image for workers holds no gapless" in missing(*DATAFLOW)[0]


def test_without_the_packages_of_google_cloud_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for absent in ("google.cloud.is_not_there", "is_not_there.at_all"):
        monkeypatch.setattr(launching, "_DATAFLOW_PACKAGE", absent)
        assert missing(*DATAFLOW, IMAGE) == [
            'command line: --runner: DataflowRunner needs packages of Google Cloud\'s; pip install "gapless[gcp]"'
        ]


def test_a_portable_runner_needs_its_job_server() -> None:
    (told,) = missing("--runner=PortableRunner", "--environment_type=LOOPBACK")
    assert "job_endpoint: is missing: PortableRunner submits to a job server; its HOST:PORT" in told
    assert launched("--runner=PortableRunner", "--job_endpoint=127.0.0.1:8099", "--environment_type=LOOPBACK")


IN_CONTAINERS: Sequence[tuple[str, ...]] = [
    ("--runner=PortableRunner", "--job_endpoint=h:1"),
    ("--runner=PortableRunner", "--job_endpoint=h:1", "--environment_type=DOCKER"),
    ("--runner=FlinkRunner", "--flink_master=flink:8081"),
    ("--runner=FlinkRunner", "--output_executable_path=job.jar"),
    ("--runner=SparkRunner", "--spark_master_url=spark://h:7077"),
]
WHERE_GAPLESS_IS: Sequence[tuple[str, ...]] = [
    (),
    ("--runner=DirectRunner",),
    ("--runner=PrismRunner",),
    ("--runner=FlinkRunner",),
    ("--runner=SparkRunner",),
    ("--runner=FlinkRunner", "--flink_master=flink:8081", "--environment_type=EXTERNAL"),
    ("--runner=FlinkRunner", "--flink_master=flink:8081", "--environment_type=LOOPBACK"),
    ("--runner=PortableRunner", "--job_endpoint=h:1", "--environment_type=PROCESS"),
    ("--runner=my_company.runners.OwnRunner",),
]


@pytest.mark.parametrize("arguments", IN_CONTAINERS)
def test_workers_in_containers_need_an_image_that_holds_gapless(arguments: tuple[str, ...]) -> None:
    (told,) = missing(*arguments)
    assert "sdk_container_image: is missing: Beam's own image for workers holds no gapless" in told
    assert launched(*arguments, IMAGE)
    assert launched(*arguments, "--environment_config=europe-docker.pkg.dev/p/r/gapless:1")


@pytest.mark.parametrize("arguments", WHERE_GAPLESS_IS)
def test_workers_that_run_where_gapless_is_need_none(arguments: tuple[str, ...]) -> None:
    assert launched(*arguments)


def test_who_only_checks_a_job_file_need_not_have_said_everything() -> None:
    assert engine_options({"runner": "DataflowRunner"}, (), store_url=POSTGRESQL).engine == "DataflowRunner"
