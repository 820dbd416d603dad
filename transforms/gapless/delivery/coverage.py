"""Coverage: through which id a shard's rows are handed on, and the range whose handing on has begun.

    coverage ──claim──> coverage, claimed ──the effect──> cover ──> coverage

The end of a range is fixed durably before the effect sees it. A worker that is killed anywhere, and one that works on the
same shard at the same time, find that end and use it: so the ranges never overlap and leave no gap, as the effect saw them too.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from gapless.delivery.database import execute
from gapless.delivery.statements import STEADY, Statements
from gapless.errors import CoverageMoved, NotReached
from gapless.progress import CoverCode, judge_cover

Shard = str | int


@dataclass(frozen=True, slots=True)
class CoveredRange:
    """The rows of a shard with `after` < id <= `through`, `rows` of them. Empty where both are equal."""

    shard: Shard
    after: int
    through: int
    rows: int


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows there are in a range, and the sum of their ids (modulo 2^31 - 1 each), by which a change is found."""

    count: int
    sum: int


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard's row: covered `through`; `claimed`, the end of a range begun, with its tally then; the tally of all that is
    covered."""

    through: int
    claimed: int | None
    claimed_tally: Tally | None
    covered_tally: Tally


NEVER_SEEN = ShardState(0, None, None, Tally(0, 0))
"""The state of a shard without a row."""


def read_state(
    connection: Connection, statements: Statements, shard: Shard, *, lock: bool = False
) -> ShardState | None:
    """None where the shard has no row yet. `lock`: nobody else changes it before the transaction ends."""
    text = statements.lock_coverage if lock else statements.coverage
    row = execute(connection, text, {"shard": shard}).one_or_none()
    return None if row is None else state_of(row)


def state_of(row: Any) -> ShardState:
    """Of a row with the coverage's columns; they are null where the shard has no row there."""
    if row.through is None:
        return NEVER_SEEN
    claimed = None if row.claimed is None else Tally(row.claimed_count or 0, row.claimed_sum or 0)
    return ShardState(row.through, row.claimed, claimed, Tally(row.covered_count, row.covered_sum))


def tally(connection: Connection, statements: Statements, shard: Shard, after: int, through: int) -> Tally:
    """Of the rows in (after, through]: by the index on all rows, and by these rows only. In a transaction of `connection`."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(STEADY)
    values = {"shard": shard, "after": after, "through": through}
    count, ids = execute(connection, statements.tally, values).one()
    return Tally(count, ids)


def claim(
    connection: Connection, statements: Statements, shard: Shard, after: int, through: int, counted: Tally
) -> ShardState:
    """Fix `through` as the end of the range that begins at `after`, in the transaction of `connection`; the state afterwards.

    Where a rival was first, the state is the rival's doing."""
    values = {"shard": shard, "after": after, "through": through, "count": counted.count, "sum": counted.sum}
    if execute(connection, statements.claim, values).rowcount == 0:
        execute(connection, statements.begin_shard, {"shard": shard})
        execute(connection, statements.claim, values)
    return read_state(connection, statements, shard) or NEVER_SEEN


def cover(
    connection: Connection, statements: Statements, covered: CoveredRange, *, settled: int | None
) -> tuple[Tally | None, Tally]:
    """Swap the shard's coverage from `after` to `through`, in the transaction of `connection`.

    `settled` is the settled id, None where it is not known: then only a claimed range is covered. The tally of the range when
    it was claimed (None where it was not), and now. Raises CoverageMoved, and NotReached for an end that is neither claimed nor
    settled."""
    shard = covered.shard
    execute(connection, statements.begin_shard, {"shard": shard})
    state = read_state(connection, statements, shard, lock=True) or NEVER_SEEN
    code = judge_cover(state.through, state.claimed, covered.after, covered.through)
    if code is not CoverCode.OK:
        raise coverage_moved(covered, state, code)
    # What is claimed was settled then, and stays coverable: a restart may give the settled id anew.
    if state.claimed is None and (settled is None or covered.through > settled):
        raise not_settled(covered, settled)
    now = tally(connection, statements, shard, covered.after, covered.through)
    values = {
        "shard": shard,
        "after": covered.after,
        "through": covered.through,
        "count": now.count,
        "sum": now.sum,
    }
    if execute(connection, statements.cover, values).rowcount == 0:
        raise coverage_moved(covered, state, CoverCode.COVERAGE_MOVED)
    return state.claimed_tally, now


def coverage_moved(covered: CoveredRange, state: ShardState, code: CoverCode) -> CoverageMoved:
    """Why a range cannot be covered, with where the shard stands."""
    wanted = f"({covered.after}, {covered.through}]"
    if code is CoverCode.REGRESSION:
        what = f"{wanted} is no range: its end does not lie after its beginning"
    elif state.through != covered.after:
        what = f"coverage stands at {state.through}, not at {covered.after}: {wanted} is not covered"
    else:
        what = f"the range ({state.through}, {state.claimed}] is claimed: {wanted} is not covered"
    return CoverageMoved(
        what,
        where=f"shard {covered.shard!r}",
        remedy="claim again: what comes back is the range that is due now",
    )


def not_settled(covered: CoveredRange, settled: int | None) -> NotReached:
    """Why a range that nobody has claimed cannot be covered: rows may still appear in it."""
    through = "" if settled is None else f", and rows are settled through {settled} only"
    return NotReached(
        f"the range ({covered.after}, {covered.through}] is not claimed{through}: it is not covered",
        where=f"shard {covered.shard!r}",
        remedy="cover what `claim` returns: its end is settled",
    )
