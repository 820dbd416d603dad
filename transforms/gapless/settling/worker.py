"""What one worker needs to settle chains in place, and how much of a chain one call reads."""

from dataclasses import dataclass, field

from gapless.clock import Clock, SystemClock
from gapless.effects.protocol import EffectSession, Step, no_step
from gapless.paging.readahead import FeedPool
from gapless.paging.source import Source
from gapless.settling.open_run import DeadLetterSession
from gapless.settling.publisher import Publisher
from gapless.settling.retrying import Failures, RetryPolicy
from gapless.store import Store

MAX_RUN_SECONDS = 10.0
"""A run of pages is promoted at this age, so that the frontier moves and a crash costs little."""


@dataclass(frozen=True, slots=True)
class Slice:
    """How much of a chain one call reads at most; None: to its end.

    `patience` is how long it waits for one page before it leaves the chain to a later call (seconds; None: for ever).
    `goes_on`: the chain's feed is kept for that call and may go on fetching; else what it has fetched by the end of the slice
    is applied too, since it would be fetched again."""

    pages: int | None = None
    seconds: float | None = None
    patience: float | None = None
    goes_on: bool = False


@dataclass(slots=True)
class Tally:
    """Seconds that calls spent waiting for pages and working on them, and the pages they applied.

    `fetching` is what the source took for these pages, also where nobody had to wait because they were fetched ahead.
    `caught_up` are the chains whose source had nothing further when they were left; where `pages` did not grow, nothing new had
    come either."""

    waited: float = 0.0
    worked: float = 0.0
    fetching: float = 0.0
    pages: int = 0
    caught_up: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Worker:
    """Used by one thread, one chain at a time.

    `called_again`: a later call goes on with what this one leaves, so that nothing is waited for in place. `failures`
    are shared by the calls that follow each other."""

    source: Source
    effect: EffectSession
    target_rows: int
    store: Store
    feeds: FeedPool
    publisher: Publisher
    dead_letters: DeadLetterSession | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    called_again: bool = False
    failures: Failures = field(default_factory=Failures)
    max_run_seconds: float = MAX_RUN_SECONDS
    clock: Clock = field(default_factory=SystemClock)
    on_step: Step = no_step
