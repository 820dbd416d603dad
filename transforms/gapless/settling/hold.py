"""From an error of the source or the effect to a chain's durable state and its blocker."""

from datetime import datetime

from gapless.effects.protocol import EventFailure
from gapless.errors import EffectError, GaplessError, RangeTrimmed, SourceError, TokenExpired
from gapless.progress import ChainState
from gapless.store.records import Blocker


class EventHeld(EffectError):
    """An event has no outcome and holds its partition; `retry_at` where a later call tries it again."""

    def __init__(self, failure: EventFailure, retry_at: datetime | None = None) -> None:
        super().__init__(failure.reason, event_id=failure.event_id)
        self.code = failure.code
        self.failure = failure
        self.retry_at = retry_at


def state_for(error: SourceError | EffectError) -> ChainState:
    """A token or range the source no longer serves is a gap, which only an explicit decision leaves; the rest is held."""
    return ChainState.GAP if isinstance(error, (TokenExpired, RangeTrimmed)) else ChainState.HELD


def blocker_for(error: SourceError | EffectError, now: datetime, retry_at: datetime | None) -> Blocker:
    """What `explain` will say: the code, one line, the event where there is one, and when time may release it."""
    failure = error.failure if isinstance(error, EventHeld) else None
    return Blocker(
        code=error.code,
        hint=one_line(error),
        event_id=failure.event_id if failure else None,
        position=failure.position if failure else None,
        since=now,
        retry_at=retry_at,
    )


def one_line(error: GaplessError) -> str:
    return "; ".join(part for part in (error.what, error.where) if part)
