"""The pipeline of each template's job, from a checked job file. Nothing is opened, and no secret is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apache_beam.transforms import PTransform

from gapless.complete_through import CompleteThrough
from gapless.errors import ConfigurationError
from gapless.paging.source import Source, following
from gapless.polling import Polling
from gapless.summarise_covered import SummariseCovered
from gapless_pipelines.delivery_job import delivery_job_of
from gapless_pipelines.flex_templates.parameters import BACKFILL, DELIVERY, STREAM
from gapless_pipelines.flex_templates.settings import Settings
from gapless_pipelines.job import Job
from gapless_pipelines.job.document import Document
from gapless_pipelines.job.loading import job_of
from gapless_pipelines.job.placement import refuse_unshared
from gapless_pipelines.job_text import is_remote
from gapless_pipelines.options import LOCAL, EngineOptions, engine_options, workers_elsewhere

_NEVER_REST = (LOCAL, "DirectRunner")
"""What a splittable DoFn defers, these engines take up again at once."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """`about` is the scope or table. `label` names the transform in the job's graph. `streaming`: it never ends by itself."""

    about: str
    engine: EngineOptions
    label: str
    transform: PTransform[Any, Any]
    streaming: bool = False


def prepare(document: Document, settings: Settings) -> Prepared:
    """What is to be submitted. Raises InvalidConfiguration with the findings of the job file, the options of Beam, or what the
    workers could not see."""
    return _PREPARED_BY[settings.template](document, settings)


def _backfill(document: Document, settings: Settings) -> Prepared:
    job, engine = _job_and_engine(document, settings)
    return Prepared(job.scope, engine, "CompleteThrough", _complete_through(job, job.source(), engine))


def _stream(document: Document, settings: Settings) -> Prepared:
    job, engine = _job_and_engine(document, settings)
    if engine.engine in _NEVER_REST:
        raise ConfigurationError(
            "a stream on Beam's in-process runner polls without a pause and grows without an end",
            where=settings.job_file,
            remedy="`gapless stream JOB` reads it on this machine; else an engine that defers, such as DataflowRunner",
        )
    transform = _complete_through(job, following(job.source()), engine, job.polling())
    return Prepared(job.scope, engine, "CompleteThrough", transform, streaming=True)


def _job_and_engine(document: Document, settings: Settings) -> tuple[Job, EngineOptions]:
    job = job_of(document, Path(settings.job_file))
    engine = job.engine(settings.arguments, launching=True, shared_folder=settings.shared_folder)
    _refuse_unshared(document, settings, engine)
    return job, engine


def _complete_through(
    job: Job, source: Source, engine: EngineOptions, polling: Polling | None = None
) -> CompleteThrough:
    return CompleteThrough(
        source,
        job.effect(),
        job.store.ref(),
        dead_letters=job.dead_letters(),
        retry=job.retry(),
        membership=job.membership(),
        engine=engine.engine,
        polling=polling,
    )


def _delivery(document: Document, settings: Settings) -> Prepared:
    job = delivery_job_of(document, Path(settings.job_file))
    # Such a job file names no options: they are what the launch says.
    engine = engine_options({}, settings.arguments, store_url=job.url, launching=True)
    _refuse_unshared(document, settings, engine)
    transform = SummariseCovered(job.reference(), job.effect(), rows=job.config.trigger.rows)
    return Prepared(job.config.table, engine, "SummariseCovered", transform)


def _refuse_unshared(document: Document, settings: Settings, engine: EngineOptions) -> None:
    refuse_unshared(
        document,
        remote=is_remote(settings.job_file),
        elsewhere=workers_elsewhere(engine),
        shared_folder=settings.shared_folder,
    )


_PREPARED_BY: Mapping[str, Callable[[Document, Settings], Prepared]] = {
    BACKFILL: _backfill,
    STREAM: _stream,
    DELIVERY: _delivery,
}
