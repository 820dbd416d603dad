"""The job of a transform in Beam YAML: the path of a job file, or the same keys written out in the transform's config."""

import json
import os
from collections.abc import Mapping
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions

from gapless.errors import ConfigurationError
from gapless_pipelines.findings import Finding, InvalidConfiguration
from gapless_pipelines.job.document import Document, parse_document
from gapless_pipelines.job.placement import refuse_unshared
from gapless_pipelines.job_text import is_remote, read_job_document
from gapless_pipelines.options import EngineOptions, engine_options, workers_elsewhere

INLINE = "job in the pipeline"
"""What stands for a file's name in the findings of a job that is written out."""


def yaml_document(job: Any, variables: Any = None) -> Document:
    """The job's values, not yet checked. `variables` come before the environment where ${NAME} is looked up.

    Raises InvalidConfiguration."""
    if not isinstance(variables or {}, Mapping) or not all(
        isinstance(name, str) and isinstance(value, str) for name, value in (variables or {}).items()
    ):
        raise _refusal("variables", "is no mapping of texts", "{NAME: text}, numbers in quotes")
    environment = {**os.environ, **(variables or {})}
    if isinstance(job, str):
        return read_job_document(job, environment)
    if not isinstance(job, Mapping):
        raise _refusal("job", "is neither a path nor a job", "a path, or the keys of a job file")
    try:
        # JSON is YAML: so it meets the same strict reading as a file. What Beam's loader made of an unquoted date is none.
        text = json.dumps(job, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise _refusal("job", f"holds a value that is no JSON: {error}", "dates in quotes") from None
    return parse_document(text, INLINE, environment)


def yaml_engine(options: PipelineOptions, store_url: str) -> EngineOptions:
    """The engine that runs the pipeline, where gapless can be right under it. Raises InvalidConfiguration."""
    runner = options.view_as(StandardOptions).runner or "DirectRunner"
    environment = options.view_as(PortableOptions).environment_type
    flags = [f"--runner={runner}"]
    if environment:
        flags.append(f"--environment_type={environment}")
    return engine_options({}, flags, store_url=store_url)


def refuse_unshared_in(document: Document, job: Any, engine: EngineOptions, shared_folder: Any) -> None:
    """See `job.placement`. Raises InvalidConfiguration."""
    refuse_unshared(
        document,
        remote=isinstance(job, str) and is_remote(job),
        elsewhere=workers_elsewhere(engine),
        shared_folder=None if shared_folder is None else str(shared_folder),
    )


def error_output(error_handling: Any, otherwise: str) -> str:
    """The name of the output that gets what failed: Beam YAML's `error_handling: {output: NAME}`."""
    if error_handling is None:
        return otherwise
    name = error_handling.get("output") if isinstance(error_handling, Mapping) else None
    if not isinstance(name, str) or not name or set(error_handling) != {"output"}:
        raise ConfigurationError(
            "error_handling names no output",
            where="the transform's config",
            remedy="error_handling: {output: NAME}",
        )
    return name


def _refusal(key: str, what: str, allowed: str) -> InvalidConfiguration:
    return InvalidConfiguration([Finding("config", 0, (key,), what, allowed)])
