"""The pipeline that every engine runs: a job, settled in place or by transforms of a user's own. Imported by workers, too.

What the user's transforms deliver they write down, event by event, before they say so: one file a process, which outlives
it. What kills a worker in the middle of a bundle is written into its environment:

    ENGINE_DIE_AT=STEP:N:MARKER     SIGKILL at the n-th step of that name, unless MARKER is there; it is made before
"""

import os
import signal
import threading
from itertools import count
from pathlib import Path

import apache_beam as beam

from gapless import CompleteThrough
from gapless_pipelines.job import Job

DIE_AT = "ENGINE_DIE_AT"
IN_PLACE = "in_place"
IN_PIPELINE = "in_pipeline"
WAYS = (IN_PLACE, IN_PIPELINE)

_steps = count(1)
_counting = threading.Lock()


def on_step(name: str) -> None:
    """At each step of the page barrier, and of delivering. Looked up by name where the transforms are unpickled."""
    step, _, rest = os.environ.get(DIE_AT, "").partition(":")
    if name != step:
        return
    nth, _, marker = rest.partition(":")
    with _counting:
        if next(_steps) == int(nth) and not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)


def build(pipeline: beam.Pipeline, job: Job, way: str, deliveries: Path) -> None:
    """Add everything to `pipeline`."""
    if way == IN_PLACE:
        _ = pipeline | CompleteThrough(
            job.source(),
            job.effect(),
            job.store.ref(),
            dead_letters=job.dead_letters(),
            retry=job.retry(),
            membership=job.membership(),
            on_step=on_step,
        )
        return
    raise AssertionError(way)
