"""A chain read as a stream for settling in the pipeline: each call reads a slice and says when the next one is due."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gapless.emitted_page import EmittedPage
from gapless.errors import SourceError, TokenExpired
from gapless.polling import Polling
from gapless.settling.emit_chain import restarted, stop_for
from gapless.settling.emitting import Emission, EmittingWorker, Left, ReadingPoint, stopped, told
from gapless.settling.stream_calls import Due, due_after_error, look_at
from gapless.settling.stream_state import StreamState
from gapless.settling.worker import Slice
from gapless.store.records import ChainRow
from gapless.updates import ReadTask

PAUSE_SECONDS: Final = 0.2
"""Until a chain with too many open pages, or with nothing left but their promotion, is looked at again."""

Claim = Callable[[StreamState], bool]


@dataclass(frozen=True, slots=True)
class EmittingStream:
    """How a worker reads chains as a stream. At most `max_open_pages` pages of a chain are emitted and not promoted."""

    worker: EmittingWorker
    polling: Polling
    max_open_pages: int

    def poll(
        self, task: ReadTask, state: StreamState, claim: Claim, limit: Slice
    ) -> Generator[EmittedPage, None, Due]:
        """One call within `limit`: yields what it has read, and returns in how many seconds the next one is due; ENDED where
        there is none.

        `claim` is asked with the state to go on from, before each fetch and before pages go out. Raises StoreError, and
        ConfigurationError for what the whole job lacks."""
        if not claim(state):
            return 0.0
        look = look_at(self.worker.store, self.worker.source, task, self.polling, self.worker.clock.now())
        if look.tell or (look.row is not None and state.point is None):
            yield told(task, look.told)
        if look.row is None:
            return look.due
        return (
            yield from self._read_on(
                task, look.row, state.met(look.row, self.worker.clock.now()), claim, limit
            )
        )

    def _read_on(
        self, task: ReadTask, row: ChainRow, state: StreamState, claim: Claim, limit: Slice
    ) -> Generator[EmittedPage, None, Due]:
        point = state.point or ReadingPoint.of(row)
        if not claim(state):
            return 0.0
        # What is read again is open twice downstream: half as many pages each time, so that it all stays below twice the limit.
        room = max(1, self.max_open_pages >> state.rereads) - state.open_pages
        if room <= 0 or point.ended:
            return self._pause()
        moving = _Moving(state, claim)
        limit = replace(limit, pages=min(room, room if limit.pages is None else limit.pages))
        emission = Emission(self.worker, task, row, point, limit)
        yield from emission.read(moving.may_fetch, moving.may_go_out)
        if emission.left is Left.CAUGHT_UP:
            idle = 1 if emission.sent else moving.state.idle + 1
            claim(replace(moving.state, idle=idle))
            return self.polling.delay(idle)
        if emission.error is not None:
            return (yield from self._after(emission.error, task, row, moving.state, claim))
        return self._pause() if emission.left is Left.DONE else 0.0

    def _after(
        self, error: SourceError, task: ReadTask, row: ChainRow, state: StreamState, claim: Claim
    ) -> Generator[EmittedPage, None, Due]:
        """What follows an error of the source: a restart, another try, or the stop that holds the chain."""
        point = state.point or ReadingPoint.of(row)
        again = restarted(self.worker, task, row, point, error)
        if again is not None:
            claim(state.met(again, self.worker.clock.now()))
            return 0.0
        now = self.worker.clock.now()
        retry_at = self.worker.access(task).retry_at(error)
        if retry_at is not None:
            return (retry_at - now).total_seconds()
        if isinstance(error, TokenExpired) and state.open_pages:
            # Once the pages before the dead token are promoted, the chain restarts or is a gap.
            return self.polling.every
        wait = due_after_error(error, self.polling)
        yield stopped(task, point, stop_for(self.worker, row, point, error, now + wait))
        return wait.total_seconds()

    def _pause(self) -> float:
        return min(PAUSE_SECONDS, self.polling.every)


class _Moving:
    """The state as pages go out; every step of it is claimed."""

    def __init__(self, state: StreamState, claim: Claim) -> None:
        self.state = state
        self._claim = claim

    def may_fetch(self) -> bool:
        return self._claim(self.state)

    def may_go_out(self, pages: Sequence[EmittedPage], point: ReadingPoint) -> bool:
        after = self.state.emitted([page.start_token for page in pages], point)
        if not self._claim(after):
            return False
        self.state = after
        return True
