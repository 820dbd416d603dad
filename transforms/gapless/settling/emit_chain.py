"""One chain read for settling in the pipeline, in one call: a batch neither defers nor waits for what it has emitted."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from gapless.emitted_page import EmittedPage, ReaderStop
from gapless.errors import SourceError, TokenExpired
from gapless.plan import to_be_read
from gapless.progress import ChainState
from gapless.settling.emitting import Emission, EmittingWorker, ReadingPoint, stopped, told
from gapless.settling.hold import one_line, state_for
from gapless.settling.worker import Slice
from gapless.store.records import ChainRow
from gapless.updates import ReadTask


def emit_chain(
    worker: EmittingWorker, task: ReadTask, claim: Callable[[], bool], max_open_pages: int
) -> Iterator[EmittedPage]:
    """Read one chain from its committed token on, at most `max_open_pages` pages; yields where it stands, its pages, and why the
    reading had to stop, where it had to.

    `claim` is asked before each fetch and may end the reading. Raises StoreError, and ConfigurationError for what the whole
    job lacks (an unset secret): an error of the source becomes the `stop` element, after the pages before it."""
    if not claim():
        return
    row = worker.store.take(task.chain, task.fencing_token)
    worker.on_step("taken")
    if row is None:
        # Another run has the chain: tell where it stands, read nothing.
        yield told(task, worker.store.chain(task.chain))
        return
    yield told(task, row)
    if to_be_read(row, worker.source):
        yield from _read_on(worker, task, row, claim, max_open_pages)


def _read_on(
    worker: EmittingWorker, task: ReadTask, row: ChainRow, claim: Callable[[], bool], most: int
) -> Iterator[EmittedPage]:
    point = ReadingPoint.of(row)
    while most > 0:
        emission = Emission(worker, task, row, point, Slice(pages=most))
        yield from emission.read(claim, _goes_out)
        most -= emission.sent
        point, error = emission.point, emission.error
        if error is None:
            return
        again = restarted(worker, task, row, point, error)
        if again is not None:
            row, point = again, ReadingPoint.of(again)
            continue
        retry_at = worker.access(task).retry_at(error)
        if retry_at is None:
            yield stopped(task, point, stop_for(worker, row, point, error))
            return
        # Nobody calls again: wait here.
        worker.clock.sleep(max(0.0, (retry_at - worker.clock.now()).total_seconds()))


def restarted(
    worker: EmittingWorker, task: ReadTask, row: ChainRow, point: ReadingPoint, error: SourceError
) -> ChainRow | None:
    """The row with a live token in place of its own, which has died; None where something else is the matter, the source has no
    way, or the row is another's by now. A token beyond the committed one is dealt with once the pages before it are promoted."""
    if not isinstance(error, TokenExpired) or point != ReadingPoint.of(row):
        return None
    token = worker.access(task).restart_token(row.bound)
    return None if token is None else worker.store.restart(row, token, error.what)


def stop_for(
    worker: EmittingWorker,
    row: ChainRow,
    point: ReadingPoint,
    error: SourceError,
    retry_at: datetime | None = None,
) -> ReaderStop:
    """What an error at `point` makes of the chain, once everything before it is promoted.

    A dead token with open pages before it is no gap where the source lets a chain restart: it will, from the bound that these
    pages prove."""
    state = state_for(error)
    pages_are_open = point != ReadingPoint.of(row)
    if isinstance(error, TokenExpired) and pages_are_open and _can_restart(worker, point):
        state = ChainState.OPEN
    return ReaderStop(point.token, state, error.code, one_line(error), retry_at)


def _can_restart(worker: EmittingWorker, point: ReadingPoint) -> bool:
    return point.bound is not None and worker.source.restart_token(point.bound) is not None


def _goes_out(pages: Sequence[EmittedPage], point: ReadingPoint) -> bool:
    """Nothing is deferred in a batch: what was read goes out."""
    return True
