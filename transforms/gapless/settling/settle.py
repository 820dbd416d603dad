"""Settling in place: claim, fetch, apply, promote, page after page of one chain, by the durable row and nothing else.

The loop knows no engine. It takes the chain with its fencing token, reads from the committed page token, gives each page to
the effect, and promotes runs of pages by compare-and-swap. Whoever loses the swap rereads the row and goes on from there;
nothing unpromoted survives the call, and every error of the source or the effect ends as the chain's durable state.
"""

from collections.abc import Callable, Iterator

from gapless.plan import progress_of, to_be_read
from gapless.settling.chain_reading import ChainReading
from gapless.settling.worker import Slice, Tally, Worker
from gapless.store.records import DeadLetter
from gapless.updates import PartitionProgress, ReadTask


def settle_chain(
    worker: Worker, task: ReadTask, claim: Callable[[], bool], limit: Slice, tally: Tally
) -> Iterator[PartitionProgress | DeadLetter]:
    """Read one chain within `limit`; yields where it durably stands, first and after each promotion, and its dead letters.

    `claim` is asked before each page and may end the reading. Raises StoreError, and ConfigurationError for what the whole job
    lacks (an unset secret): what the source or the effect does wrong becomes the chain's durable state."""
    if not claim():
        return
    row = worker.store.take(task.chain, task.fencing_token)
    worker.on_step("taken")
    if row is None:
        # Another run has the chain: tell where it stands, change nothing.
        yield progress_of(worker.store.chain(task.chain), task.domain, task.epoch, task.members)
        return
    yield progress_of(row, task.domain, task.epoch, task.members)
    if to_be_read(row, worker.source):
        yield from ChainReading(worker, task, row, limit, tally).read(claim)
