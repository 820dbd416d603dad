"""A local run as a loop of bounded passes: each reads a slice of every chain, and the durable rows say when all have ended.

Beam's local runner drops what a reader defers as soon as it has more than one worker, and hands nothing downstream before a
stage ends. So nothing is deferred: a reader returns after its slice, and the next pass goes on from the durable row. The
graph is built once; a pass runs its proto again.
"""

import logging
from collections.abc import Callable

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.transforms.environments import EmbeddedPythonEnvironment

from gapless.complete_through import CompleteThrough
from gapless.settling.local_run import LocalRun
from gapless.settling.worker import Tally
from gapless_pipelines.pacing import Pace, next_pace

_BEAM_LOGGER = logging.getLogger("apache_beam")


class PassRunner(FnApiRunner):
    """The in-process runner with a given number of readers, all in memory: no port is opened, no thread writes for another."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        # `run_pipeline` would set it from the options, and would build the proto anew.
        self._num_workers = workers


class LocalPasses:
    """Runs one graph again and again; `run` holds what the passes share."""

    def __init__(self, transform: CompleteThrough, options: PipelineOptions, run: LocalRun) -> None:
        self._options = options
        self._run = run
        self._proto = _proto(transform, options)

    def one(self, pace: Pace, due: frozenset[int]) -> Tally:
        """One pass over the chains in `due`; what its readers did. Raises what a DoFn raised."""
        self._run.limit = pace.limit(len(due), self._run.feeds.limit)
        self._run.due = due
        result = PassRunner(min(pace.workers, len(due))).run_via_runner_api(self._proto, self._options)
        result.wait_until_finish()
        return self._run.take_tally()

    def until(
        self, pace: Pace, due: Callable[[], frozenset[int]], seconds: Callable[[], float], most: int
    ) -> int:
        """Passes until nothing is due; how many there were. `due` may wait; `seconds` is a monotonic clock."""
        passes = 0
        while chains := due():
            began = seconds()
            tally = self.one(pace, chains)
            passes += 1
            pace = next_pace(pace, seconds() - began, tally, most)
        return passes


def _proto(transform: CompleteThrough, options: PipelineOptions) -> beam_runner_api_pb2.Pipeline:
    pipeline = beam.Pipeline(runner=FnApiRunner(), options=options)
    _ = pipeline | "CompleteThrough" >> transform
    return pipeline.to_runner_api(default_environment=EmbeddedPythonEnvironment.default())
