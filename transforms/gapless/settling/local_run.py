"""What the passes of one local run share: the slice, feeds that go on fetching, failures counted, time measured.

On the local runner every DoFn of a pass lives in this process, so that a pass can take up what the one before it left. A
worker in another process finds nothing here and reads its chains to the end in one call.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gapless.paging.readahead import FeedPool
from gapless.settling.retrying import Failures
from gapless.settling.worker import Slice, Tally
from gapless.updates import PartitionProgress


def ignore_progress(progress: PartitionProgress) -> None:
    """Nobody watches."""


def ignore_stop() -> None:
    """Nobody else is to be told."""


@dataclass(slots=True)
class LocalRun:
    """`limit` is the slice of the present pass; `due` the chains it reads (None: all that can be read). `caught_up`: those whose
    source has had nothing further, which a batch reads no more."""

    run_id: str
    feeds: FeedPool
    failures: Failures = field(default_factory=Failures)
    limit: Slice = field(default_factory=Slice)
    due: frozenset[int] | None = None
    caught_up: set[int] = field(default_factory=set)
    on_progress: Callable[[PartitionProgress], None] = ignore_progress
    stopping: threading.Event = field(default_factory=threading.Event)
    on_stop: Callable[[], object] = ignore_stop
    _tally: Tally = field(default_factory=Tally)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """Ask every reader to finish its page, promote and leave. May be called by a signal handler."""
        self.stopping.set()
        self.on_stop()

    def add(self, tally: Tally) -> None:
        """Count what one call did."""
        with self._lock:
            self._tally.waited += tally.waited
            self._tally.worked += tally.worked
            self._tally.fetching += tally.fetching
            self._tally.pages += tally.pages
            self._tally.caught_up |= tally.caught_up
            self.caught_up |= tally.caught_up

    def take_tally(self) -> Tally:
        """What all calls did since this was asked last."""
        with self._lock:
            tally, self._tally = self._tally, Tally()
            return tally

    def progressed(self, progress: PartitionProgress) -> None:
        with self._lock:
            self.on_progress(progress)


_runs: dict[str, LocalRun] = {}


@contextmanager
def local_run(run: LocalRun) -> Iterator[LocalRun]:
    """Make `run` known to the DoFns of this process while its passes go on."""
    _runs[run.run_id] = run
    try:
        yield run
    finally:
        del _runs[run.run_id]
        run.feeds.close()


def current_run(run_id: str) -> LocalRun | None:
    """The local run of that id in this process, if its passes go on here."""
    return _runs.get(run_id)
