"""Violations: what contradicts a coverage. Each is recorded durably, once, with the id where it is known.

    open_behind_coverage   a row at or below the coverage is not terminal: it was opened again, its id was given out
                           twice, or it was inserted by hand
    rows_missing           rows that were counted in a range, or below the coverage, are gone
    rows_added             rows stand there that were not counted

The first is found by the index on open rows. The others by tallies: the number of rows and the sum of their ids, taken when
a range is claimed, when it is covered, and at an audit.
"""

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from gapless.clock import Clock, instant_text
from gapless.delivery.coverage import CoveredRange, Shard, Tally, read_state, tally
from gapless.delivery.database import execute
from gapless.delivery.statements import OPEN_BEHIND, SUM_MODULUS, Statements

MOST_AT_ONCE = 1000
"""Open rows behind coverage that one look records; the next look goes on."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Of the rows in (after, through] of `shard`. `id` is the row where it is one and known, else None; `found_at` is RFC
    3339, UTC."""

    shard: Shard
    code: str
    after: int
    through: int
    id: int | None
    detail: str
    found_at: str


def range_violation(covered: CoveredRange, before: Tally, now: Tally, found_at: str) -> Violation | None:
    """What has changed in a range between two tallies; None where nothing has.

    >>> claimed = CoveredRange("a", 0, 9, 3)
    >>> range_violation(claimed, Tally(3, 10), Tally(2, 6), "").id
    4
    >>> range_violation(claimed, Tally(3, 10), Tally(3, 10), "") is None
    True
    """
    if before == now:
        return None
    change = now.count - before.count
    id_ = _single_id(covered.after, covered.through, before, now) if abs(change) == 1 else None
    code = "rows_missing" if change < 0 else "rows_added"
    rows = "rows were exchanged" if change == 0 else f"{abs(change)} row{'s' * (abs(change) != 1)}"
    detail = f"{rows}: counted {before.count}, now {now.count}"
    return Violation(covered.shard, code, covered.after, covered.through, id_, detail, found_at)


def _single_id(after: int, through: int, before: Tally, now: Tally) -> int | None:
    """The one id by which two sums differ; None where more than one in the range could be it."""
    rest = (now.sum - before.sum) * (now.count - before.count) % SUM_MODULUS
    first = after + 1
    id_ = first + (rest - first) % SUM_MODULUS
    return id_ if id_ <= through < id_ + SUM_MODULUS else None


def record(connection: Connection, statements: Statements, found: Violation) -> bool:
    """In the transaction of `connection`; whether it was new."""
    values = {
        "shard": found.shard,
        "code": found.code,
        "after": found.after,
        "through": found.through,
        "id": found.id,
        "detail": found.detail,
        "found_at": found.found_at,
    }
    return bool(execute(connection, statements.record_violation, values).rowcount == 1)


def open_behind(connection: Connection, statements: Statements, clock: Clock) -> list[Violation]:
    """The rows of every shard that are open behind its coverage and are not recorded yet, by the index on open rows."""
    rows = execute(connection, statements.behind_all, {"most": MOST_AT_ONCE})
    found_at = instant_text(clock.now())
    return [
        Violation(
            shard_of(shard),
            OPEN_BEHIND,
            id_ - 1,
            id_,
            id_,
            f"status {status!r} at or below the coverage: it was handed on as it was before, or never",
            found_at,
        )
        for shard, id_, status in rows
    ]


def audit_shard(
    connection: Connection, statements: Statements, shard: Shard, clock: Clock
) -> Violation | None:
    """Count what lies below a shard's coverage against what was covered, and go on from what is there now.

    In a write transaction of `connection`. It reads all of the shard's covered rows, by index."""
    state = read_state(connection, statements, shard, lock=True)
    if state is None or state.through == 0:
        return None
    now = tally(connection, statements, shard, 0, state.through)
    whole = CoveredRange(shard, 0, state.through, now.count)
    changed = Tally(now.count, now.sum % SUM_MODULUS) != Tally(
        state.covered_tally.count, state.covered_tally.sum % SUM_MODULUS
    )
    found = range_violation(whole, state.covered_tally, now, instant_text(clock.now())) if changed else None
    if found is not None:
        execute(connection, statements.rebase, {"shard": shard, "count": now.count, "sum": now.sum})
    return found


def stored(connection: Connection, statements: Statements) -> list[Violation]:
    """Every violation on record, the oldest first."""
    return [
        Violation(shard_of(row.shard), row.code, row.after, row.through, row.id, row.detail, row.found_at)
        for row in execute(connection, statements.violations, {})
    ]


def shard_of(value: object) -> Shard:
    """A shard as the driver gives it, as it is compared here: a UUID as its text."""
    return value if isinstance(value, str | int) else str(value)
