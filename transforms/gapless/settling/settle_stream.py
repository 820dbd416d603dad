"""A chain settled in place as a stream: each call goes on from the durable row, and says when the next one is due."""

from collections.abc import Callable, Generator

from gapless.plan import progress_of
from gapless.polling import Polling
from gapless.progress import ChainState
from gapless.settling.chain_reading import Emitted
from gapless.settling.settle import settle_chain
from gapless.settling.stream_calls import Due, look_at
from gapless.settling.worker import Slice, Tally, Worker
from gapless.store.records import ChainRow
from gapless.updates import ReadTask


def settle_slice(
    worker: Worker, task: ReadTask, idle: int, claim: Callable[[], bool], polling: Polling, limit: Slice
) -> Generator[Emitted, None, tuple[Due, int]]:
    """One call within `limit`: yields as `settle_chain` does, and returns in how many seconds the next one is due,
    and how many calls in a row have brought nothing, after `idle` before.

    A chain that has ended, or that a newer run has, is due no more.

    Raises what `settle_chain` raises."""
    if not claim():
        return 0.0, idle
    look = look_at(worker.store, worker.source, task, polling, worker.clock.now())
    if look.row is None:
        if look.tell:
            yield progress_of(look.told, task.domain, task.epoch, task.members)
        return look.due, idle
    tally = Tally()
    yield from settle_chain(worker, task, claim, limit, tally)
    if task.chain in tally.caught_up:
        idle = 1 if tally.pages else idle + 1
        return polling.delay(idle), idle
    row = worker.store.chain(task.chain)
    return (_held_for(worker, row, polling) if row.state is ChainState.HELD else 0.0), idle


def _held_for(worker: Worker, row: ChainRow, polling: Polling) -> float:
    """Until a held chain is tried again. Where no time was given the attempts of a batch are used up: a stream goes on trying."""
    retry_at = row.blocker.retry_at if row.blocker else None
    if retry_at is None:
        return polling.held
    return max(0.0, (retry_at - worker.clock.now()).total_seconds())
