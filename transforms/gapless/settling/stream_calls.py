"""What the calls of a stream share, however events are settled: whether a chain is to be read now, and when to look again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gapless.errors import GaplessError, HandoffUnproven, RoutingChanged
from gapless.paging.source import Source
from gapless.plan import to_be_read
from gapless.polling import Polling
from gapless.progress import ChainState
from gapless.settling.chain_access import TRYING_AGAIN_IS_NO_HELP
from gapless.settling.worker import Slice
from gapless.store import Store
from gapless.store.records import ChainRow
from gapless.updates import ReadTask

SLICE_PAGES: Final = 64
SLICE_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 0.2
BUNDLE_SECONDS: Final = 2.0
SHORTEST_SLICE_SECONDS: Final = 0.05

SLOW_RETRY: Final = timedelta(minutes=10)
"""Until a stream asks again where asking again is hardly of use: somebody has to mend the source, or the job file."""


def slice_among(chains: int) -> Slice:
    """How much of a chain one call reads, where so many have their turn in one bundle.

    An engine may put all chains that are due into one bundle, one after the other, and shows nothing of it before its end. What
    does not come within the patience is fetched on while the others have their turn.

    >>> slice_among(1).seconds, slice_among(8).seconds, slice_among(1000).seconds
    (1.0, 0.25, 0.05)
    """
    seconds = min(SLICE_SECONDS, max(SHORTEST_SLICE_SECONDS, BUNDLE_SECONDS / max(1, chains)))
    return Slice(SLICE_PAGES, seconds, min(PATIENCE_SECONDS, seconds), goes_on=True)


Due = float | None
"""Seconds until the next call; ENDED where none is to follow."""

ENDED: Final = None


@dataclass(frozen=True, slots=True)
class Look:
    """A chain as a call meets it. `row` None: nothing is to be read now, and the next call is `due`. `tell`: readers of the
    pipeline are to be told where it stands, as `told` has it."""

    told: ChainRow
    row: ChainRow | None = None
    due: Due = ENDED
    tell: bool = False


def look_at(store: Store, source: Source, task: ReadTask, polling: Polling, now: datetime) -> Look:
    """Take the chain where it is to be read. Its reading has ended where a newer run has it, it has left, or nothing follows."""
    row = store.chain(task.chain)
    if row.fencing_token > task.fencing_token:
        return Look(row, tell=True)
    if row.state is ChainState.GAP and row.is_live:
        # Only an explicit decision goes on, and it shows in the row.
        return Look(row, due=polling.longest)
    if not row.is_live or not to_be_read(row, source):
        return Look(row, tell=True)
    held = row.state is ChainState.HELD and row.fencing_token == task.fencing_token
    retry_at = row.blocker.retry_at if held and row.blocker else None
    if retry_at is not None and retry_at > now:
        return Look(row, due=min(polling.longest, (retry_at - now).total_seconds()))
    if held or row.fencing_token < task.fencing_token:
        taken = store.take(task.chain, task.fencing_token)
        if taken is None:
            return Look(store.chain(task.chain), tell=True)
        return Look(taken, taken, tell=held)
    return Look(row, row)


def due_after_error(error: GaplessError, polling: Polling) -> timedelta:
    """When a stream asks again after the attempts of a batch are used up."""
    if isinstance(error, (RoutingChanged, HandoffUnproven)):
        # The list says what follows.
        return timedelta(seconds=polling.look_every)
    if isinstance(error, TRYING_AGAIN_IS_NO_HELP):
        return SLOW_RETRY
    asked = getattr(error, "retry_after", None) or 0.0
    return timedelta(seconds=max(polling.held, asked))
