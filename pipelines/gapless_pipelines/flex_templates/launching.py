"""One launch: check everything, submit, print which job it is, return. Nothing is waited for but an engine of this process."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, StandardOptions

from gapless_pipelines.cli.failures import exit_status_of
from gapless_pipelines.cli.printing import emit, say
from gapless_pipelines.findings import Finding, InvalidConfiguration
from gapless_pipelines.flex_templates.jobs import Prepared, prepare
from gapless_pipelines.flex_templates.settings import Settings, settings_of
from gapless_pipelines.job_text import read_job_document
from gapless_pipelines.options import LOCAL

FORMAT = 1
_DATAFLOW = "DataflowRunner"
_OF_THIS_PROCESS = (LOCAL, "DirectRunner", "PrismRunner")
"""Engines that end with the process that submitted to them."""


def launch(
    template: str, words: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> int:
    """The exit status: 0 submitted (or only checked), 2 a parameter, option or job file that cannot be meant so, 1 anything
    else. Standard output gets one JSON document, standard error what a reader wants to know."""
    given = sys.argv[1:] if words is None else words
    known = os.environ if environment is None else environment
    return exit_status_of(lambda: _launch(template, given, known), f"template {template}")


def _launch(template: str, words: Sequence[str], environment: Mapping[str, str]) -> int:
    settings = settings_of(template, words, environment)
    document = read_job_document(settings.job_file, {**environment, **settings.variables})
    prepared = prepare(document, settings)
    options = _options(prepared, settings)
    told = {"format": FORMAT, "template": template, "about": prepared.about, "engine": prepared.engine.engine}
    if settings.check_only:
        say(f"{prepared.about}: everything is as it should be; nothing was submitted")
        emit({**told, "state": "checked", "job": None, "graph": None})
        return 0
    submitted = _submit(prepared, options)
    if settings.graph_location is not None:
        say(
            f"{prepared.about}: the graph is at {settings.graph_location}; Dataflow's launcher makes the job of it"
        )
        emit({**told, "state": "built", "job": None, "graph": settings.graph_location})
        return 0
    job = _job(submitted, options) if prepared.engine.engine == _DATAFLOW else None
    where = f", {job['console']}" if job else ""
    say(f"{prepared.about}: submitted to {prepared.engine.engine}{where}")
    here = prepared.engine.engine in _OF_THIS_PROCESS
    state = str(submitted.wait_until_finish()) if here and not prepared.streaming else "submitted"
    emit({**told, "state": state, "job": job, "graph": None})
    if here and prepared.streaming:
        submitted.wait_until_finish()
    return 0


def _options(prepared: Prepared, settings: Settings) -> PipelineOptions:
    """As Beam takes them. Raises InvalidConfiguration where a batch is asked to be a stream."""
    flags = list(prepared.engine.flags)
    if settings.graph_location is not None:
        flags.append(f"--template_location={settings.graph_location}")
    options = PipelineOptions(flags)
    standard = options.view_as(StandardOptions)
    if standard.streaming and not prepared.streaming:
        what = f"is not for a {settings.template}, which ends when everything is read"
        raise InvalidConfiguration([Finding("command line", 0, ("--streaming",), what, "leave it out")])
    standard.streaming = prepared.streaming
    return options


def _submit(prepared: Prepared, options: PipelineOptions) -> Any:
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | prepared.label >> prepared.transform
    return pipeline.run()


def _job(submitted: Any, options: PipelineOptions) -> dict[str, str]:
    """The job as Dataflow names it, and where its console shows it."""
    cloud = options.view_as(GoogleCloudOptions)
    job_id, region, project = str(submitted.job_id()), str(cloud.region), str(cloud.project)
    console = f"https://console.cloud.google.com/dataflow/jobs/{quote(region)}/{quote(job_id)}?project={quote(project)}"
    return {
        "id": job_id,
        "name": str(cloud.job_name),
        "project": project,
        "region": region,
        "console": console,
    }
