"""A process that submits the pipeline to an engine and waits for it, in a group of its own with whatever it starts.

It is forked from the server that the tests' backfills are forked from, which has imported Beam once. It exits with 0 where the
engine says that the job has succeeded, with 1 where it says that it has not.
"""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import backfill_process

from gapless.polling import Polling


@dataclass(frozen=True)
class Work:
    """`flags` are Beam's options; what Beam's result is made by is written into the file `ran_on`."""

    job: str
    log: str
    way: str
    deliveries: str
    flags: tuple[str, ...]
    environment: Mapping[str, str]
    ran_on: str
    polling: Polling | None = None


class Submitter:
    """The process and its group."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._process: BaseProcess = backfill_process.begin(submit, work)  # type: ignore[arg-type]

    def ended(self, within: float) -> int | None:
        """Its exit code, negative for a signal; None where it still runs after so many seconds."""
        self._process.join(within)
        return self._process.exitcode

    @property
    def ran_on(self) -> str:
        return Path(self._work.ran_on).read_text()

    def kill(self) -> None:
        """It alone: what it has started goes on."""
        self._process.kill()
        self._process.join(30)

    def kill_group(self) -> None:
        """With whatever it has started. Prism outlives its submitter."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.join(30)


def submit(work: Work) -> int:
    os.setsid()
    os.environ.update(work.environment)
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.prism_runner import PrismJobServer
    from engine_pipeline import build
    from engine_steps import note_splits

    from gapless_pipelines.job import load_job

    # As it is in a program that is started with this HOME: Beam looks only once, when it is imported.
    PrismJobServer.BIN_CACHE = os.path.expanduser("~/.apache_beam/cache/prism/bin")
    note_splits()
    flags = [*work.flags, *(["--streaming"] if work.polling else [])]
    pipeline = beam.Pipeline(options=PipelineOptions(flags))
    build(pipeline, load_job(work.job), work.way, Path(work.deliveries), work.polling)
    result = pipeline.run()
    Path(work.ran_on).write_text(type(result).__module__.rpartition(".")[2])
    result.wait_until_finish()
    return 0
