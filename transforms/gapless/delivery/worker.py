"""The worker of a message log: claims what is due in each shard, calls the user's effect on exactly that range, covers it,
and goes on.

It may be killed anywhere, and any number of them may run at the same time: the effect sees ranges that neither overlap nor
leave a gap, each at least once, so that an effect that is idempotent by its range has every row in exactly one of them. A
shard whose effect fails is tried again later, with the same range, and holds no other one up.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from gapless.clock import Clock, SystemClock
from gapless.delivery.coverage import CoveredRange, Shard
from gapless.delivery.message_log import MessageLog
from gapless.delivery.settled import Settled
from gapless.delivery.violations import Violation
from gapless.errors import CoverageMoved, DatabaseUnavailable

_log = logging.getLogger(__name__)

ROWS = 20
"""How many newly covered rows make a range, where nothing else is said."""


class RangeEffect(Protocol):
    """What is done with a range: rows of `shard` with `after` < id <= `through`, `rows` of them when it was claimed.

    Durable when it returns, and idempotent by (shard, after, through): a killed worker's range comes again."""

    def __call__(self, shard: Shard, after: int, through: int, rows: int, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Held:
    """A shard whose effect failed on `due`, `failures` times in a row; it is tried again no sooner than in `wait` seconds."""

    due: CoveredRange
    error: str
    failures: int
    wait: float


Report = CoveredRange | Held | Violation
"""What a worker tells: a range that it has covered, a shard that is held, a violation that it has recorded."""


@dataclass(slots=True)
class Work:
    """What was done so far. `lost`: ranges that another worker covered first; `held`: by shard, what failed last."""

    ranges: int = 0
    rows: int = 0
    lost: int = 0
    violations: int = 0
    held: dict[Shard, Held] = field(default_factory=dict)


def work_shard(
    log: MessageLog,
    shard: Shard,
    effect: RangeEffect,
    *,
    rows: int = ROWS,
    stopping: Callable[[], bool] = lambda: False,
    report: Callable[[Report], object] = lambda told: None,
) -> Work:
    """Hand on what is due in one shard, range after range, until fewer than `rows` rows are newly covered.

    What the effect raises passes through, and the range stays claimed."""
    done = Work()
    while not stopping():
        due = log.claim(shard, at_least=rows)
        if due is None:
            break
        effect(due.shard, due.after, due.through, due.rows)
        try:
            found = log.cover(due)
        except CoverageMoved:
            done.lost += 1
            continue
        done.ranges += 1
        done.rows += due.rows
        done.violations += len(found)
        report(due)
        for violation in found:
            report(violation)
    return done


class Worker:
    """Works on all shards of a log, or on `shards`. Used by one thread; several of them, in any processes, may share the log.

    `rows`: act when this many rows are newly covered. `backoff` and `longest`, in seconds: the wait after a failed effect,
    doubled each time. `audit_every`, in seconds: how often open rows behind coverage are looked for, and whether the set-up
    is still safe."""

    def __init__(
        self,
        log: MessageLog,
        effect: RangeEffect,
        *,
        rows: int = ROWS,
        shards: Iterable[Shard] | None = None,
        backoff: float = 1.0,
        longest: float = 60.0,
        audit_every: float = 60.0,
        report: Callable[[Report], object] = lambda told: None,
        clock: Clock | None = None,
    ) -> None:
        self.done = Work()
        self.stop = threading.Event()
        self._log = log
        self._effect = effect
        self._rows = rows
        self._shards = None if shards is None else tuple(shards)
        self._backoff = backoff
        self._longest = longest
        self._audit_every = audit_every
        self._report = report
        self._clock = clock or SystemClock()
        self._live: dict[Shard, None] = {}
        self._seen: Settled | None = None
        self._retry_at: dict[Shard, float] = {}
        self._audit_at: float | None = None

    def run(self, *, poll: float = 1.0) -> Work:
        """Work until `stop` is set; `poll` is the wait between two rounds, in seconds. A database that cannot be reached is
        asked again.

        Raises UnsafeSetup and NotAMessageLog."""
        failures = 0
        while not self.stop.is_set():
            try:
                self.round()
                failures, wait = 0, poll
            except DatabaseUnavailable as error:
                failures += 1
                wait = max(poll, self._wait(failures))
                _log.warning("message log: %s; asked again in %.0f s", error.what, wait)
            self.stop.wait(wait)
        return self.done

    def round(self) -> Work:
        """Every shard that may have something due, once, each until nothing is."""
        self._audit()
        for shard in self._due_shards():
            if self.stop.is_set():
                break
            if self._clock.monotonic() >= self._retry_at.get(shard, float("-inf")):
                self.hand_on(shard)
        return self.done

    def hand_on(self, shard: Shard) -> None:
        """One shard, until nothing is due in it. A failing effect holds it, and is told."""
        claimed: list[CoveredRange] = []

        def effect(shard: Shard, after: int, through: int, rows: int, /) -> None:
            claimed[:] = [CoveredRange(shard, after, through, rows)]
            try:
                self._effect(shard, after, through, rows)
            except (Exception, SystemExit) as error:
                # Whoever leaves through the effect would end the run as if all was well.
                raise _EffectFailed from error

        try:
            work = work_shard(
                self._log, shard, effect, rows=self._rows, stopping=self.stop.is_set, report=self._told
            )
        except _EffectFailed as failed:
            self._hold(claimed[0], failed.__cause__)
            return
        self.done.lost += work.lost
        self.done.held.pop(shard, None)
        self._retry_at.pop(shard, None)
        frontier = self._log.frontier(shard)
        if frontier.blocker is None and frontier.through == frontier.coverage and self._shards is None:
            # Nothing is open and all is handed on: it comes back with its next row.
            self._live.pop(shard, None)

    def _told(self, told: Report) -> None:
        if isinstance(told, CoveredRange):
            self.done.ranges += 1
            self.done.rows += told.rows
        elif isinstance(told, Violation):
            self.done.violations += 1
        self._report(told)

    def _hold(self, due: CoveredRange, error: BaseException | None) -> None:
        before = self.done.held.get(due.shard)
        failures = 1 + (before.failures if before is not None and before.due == due else 0)
        held = Held(due, f"{type(error).__name__}: {error}", failures, self._wait(failures))
        _log.warning(
            "message log: the effect failed on shard %r, (%d, %d]",
            due.shard,
            due.after,
            due.through,
            exc_info=error,
        )
        self.done.held[due.shard] = held
        self._retry_at[due.shard] = self._clock.monotonic() + held.wait
        self._report(held)

    def _wait(self, failures: int) -> float:
        return float(min(self._longest, self._backoff * 2 ** min(failures - 1, 62)))

    def _due_shards(self) -> list[Shard]:
        """All of them at first; then those that have new rows, or had something open or too few rows before."""
        if self._shards is not None:
            return list(self._shards)
        settled, seen = self._log.settled(), self._seen
        if seen is None or settled.incarnation != seen.incarnation or settled.id < seen.id:
            # Another incarnation: ids that were settled may have been given out again, to any shard.
            self._live.update(dict.fromkeys(self._log.shards()))
        elif settled.id > seen.id:
            self._live.update(dict.fromkeys(self._log.shards_between(seen.id, settled.id)))
        self._seen = settled
        return list(self._live)

    def _audit(self) -> None:
        now = self._clock.monotonic()
        if self._audit_at is not None and now < self._audit_at:
            return
        self._audit_at = now + self._audit_every
        for plan in self._log.check():
            if plan.problem:
                _log.warning(
                    "message log: the statement %s: %s (%s)", plan.statement, plan.problem, plan.scan
                )
        for violation in self._log.audit():
            self._told(violation)


class _EffectFailed(Exception):
    """Carries what the effect raised past what the log itself may raise."""
