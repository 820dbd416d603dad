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
from gapless.paging.source import following
from gapless.polling import Polling
from gapless_pipelines.job import Job

IN_PLACE = "in_place"
IN_PIPELINE = "in_pipeline"
WAYS = (IN_PLACE, IN_PIPELINE)
STEPS = {IN_PLACE: "committed", IN_PIPELINE: "delivered"}
"""In the middle of a bundle: right after the swap; right after events were written down, and before anybody has said so."""


def build(
    pipeline: beam.Pipeline, job: Job, way: str, deliveries: Path, polling: Polling | None = None
) -> None:
    """Add everything to `pipeline`; `deliveries` is the folder in which the user's transforms write down what they deliver.

    With `polling` a stream."""
    source = job.source() if polling is None else following(job.source())
    store = job.store.ref()
    if way == IN_PLACE:
        _ = pipeline | CompleteThrough(
            source,
            job.effect(),
            store,
            dead_letters=job.dead_letters(),
            retry=job.retry(),
            membership=job.membership(),
            polling=polling,
            on_step=on_step,
        )
        return
    pages = (
        pipeline
        | PlanPartitions(source, store, polling=polling)
        | ReadPages(source, store, polling=polling, on_step=on_step)
    )
    outcomes = pages | Deliver(deliveries)
    _ = (pages, outcomes) | TrackPartitions(store) | CombineFrontier() | PublishFrontier(store)
