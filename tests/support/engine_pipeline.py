"""The pipeline that every engine runs: a job, settled in place or by transforms of a user's own."""

from pathlib import Path

import apache_beam as beam
from engine_deliveries import Deliver
from engine_steps import on_step

from gapless import (
    CombineFrontier,
    CompleteThrough,
    PlanPartitions,
    PublishFrontier,
    ReadPages,
    TrackPartitions,
)
from gapless_pipelines.job import Job

IN_PLACE = "in_place"
IN_PIPELINE = "in_pipeline"
WAYS = (IN_PLACE, IN_PIPELINE)


def build(pipeline: beam.Pipeline, job: Job, way: str, deliveries: Path) -> None:
    """Add everything to `pipeline`; `deliveries` is the folder in which the user's transforms write down what they deliver."""
    if way == IN_PLACE:
        _settle_in_place(pipeline, job)
    else:
        _settle_in_the_pipeline(pipeline, job, deliveries)


def _settle_in_place(pipeline: beam.Pipeline, job: Job) -> None:
    _ = pipeline | CompleteThrough(
        job.source(),
        job.effect(),
        job.store.ref(),
        dead_letters=job.dead_letters(),
        retry=job.retry(),
        membership=job.membership(),
        on_step=on_step,
    )


def _settle_in_the_pipeline(pipeline: beam.Pipeline, job: Job, deliveries: Path) -> None:
    source, store = job.source(), job.store.ref()
    pages = pipeline | PlanPartitions(source, store) | ReadPages(source, store, on_step=on_step)
    outcomes = pages | Deliver(deliveries)
    _ = (pages, outcomes) | TrackPartitions(store) | CombineFrontier() | PublishFrontier(store)
