"""The delivery frontier of a shard: the id through which every row of a message log is terminal.

Rows are delivered in any order, so the largest delivered id says nothing. What one snapshot shows above the shard's coverage, and
through the settled id, gives a number that is safe to hand on through; it may fall into a gap between two ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from gapless.progress.accumulator import frontier_of
from gapless.progress.bound import Bound
from gapless.progress.frontier import FrontierValue
from gapless.progress.membership import Membership
from gapless.progress.shown_html import fragment, line, table

DELIVERY_BLOCKER_CODES: Final[dict[str, tuple[str, str]]] = {
    "non_terminal": (
        "a row has no terminal status yet",
        "the row reaches one of the statuses declared terminal; a dead letter is one, a scheduled retry is not",
    ),
    "open_writer": (
        "a transaction that was given an id is still open: a row at or below that id may yet appear",
        "its session commits or rolls back; `pid` says which it is",
    ),
    "prepared_transaction": (
        "a prepared transaction that was given an id waits for its second phase",
        "COMMIT PREPARED or ROLLBACK PREPARED with its `gid`",
    ),
}
"""code -> (meaning, what releases it); one line each."""


_TOLD: Final = ("id", "status", "pid", "user", "application", "since", "gid")
"""What a notebook shows of a blocker, where it is known."""


@dataclass(frozen=True, slots=True)
class DeliveryBlocker:
    """Who keeps a shard's frontier where it is: a row by `id` and `status`, or a writer by its session or `gid`.

    What is not known is None: another role's `since` is told only to members of pg_read_all_stats.

    >>> DeliveryBlocker("non_terminal", id=4, status="pending").id
    4
    """

    code: str
    id: int | None = None
    status: str | int | None = None
    pid: int | None = None
    user: str | None = None
    application: str | None = None
    since: datetime | None = None
    gid: str | None = None

    def __post_init__(self) -> None:
        if self.code not in DELIVERY_BLOCKER_CODES:
            raise ValueError(f"{self.code!r} is none of the documented blocker codes")


@dataclass(frozen=True, slots=True)
class DeliveryFrontier:
    """Every row of the shard at or below `through` is terminal; those at or below `coverage` are handed on already.

    `settled` is the settled id it was found under, None where nothing was known of open writers.

    >>> DeliveryFrontier("chan-1", coverage=0, through=3, settled=6).bound
    Bound.through(3)
    """

    shard: object
    coverage: int
    through: int
    blocker: DeliveryBlocker | None = None
    settled: int | None = None

    @property
    def bound(self) -> Bound:
        """The frontier as a cut: what the partition frontier is made of too.

        >>> DeliveryFrontier("chan-1", 3, 7).bound.covers(7)
        True
        """
        return Bound.through(self.through)

    def _repr_html_(self) -> str:
        """For a notebook: how far the shard is terminal and handed on, and who keeps it there."""
        parts = [line(f"every row through {self.through} is terminal", strong=str(self.shard))]
        parts.append(line(f"handed on through {self.coverage}", muted=True))
        if self.blocker is not None:
            meaning, release = DELIVERY_BLOCKER_CODES[self.blocker.code]
            known = {name: getattr(self.blocker, name) for name in _TOLD}
            heads = [
                "held by",
                *(name for name, value in known.items() if value is not None),
                "why",
                "released by",
            ]
            told = [value for value in known.values() if value is not None]
            parts.append(table(heads, [[self.blocker.code, *told, meaning, release]]))
        return fragment(*parts)

    @property
    def complete(self) -> Bound:
        """The shard's part in a table-wide frontier: with no open row, complete through the settled id, beyond its last row.

        >>> row = DeliveryBlocker("non_terminal", id=8, status="pending")
        >>> DeliveryFrontier("a", 0, 3, settled=90).complete, DeliveryFrontier("a", 0, 7, row, settled=90).complete
        (Bound.through(90), Bound.through(7))
        """
        if self.settled is None or (self.blocker is not None and self.blocker.code == "non_terminal"):
            return self.bound
        return Bound.through(max(self.through, self.settled))


def delivered_through(coverage: int, settled: int | None, first_open: int | None, last: int | None) -> int:
    """The delivery frontier: one below the first non-terminal id, else the last visible id, else the coverage.

    `first_open` and `last` are the smallest non-terminal and the largest visible id in (coverage, settled], by one snapshot:
    above `settled`, a smaller id may still appear. `settled` None: nothing is known of open writers.

    Laws: it is never below `coverage`; no row in (coverage, it] is non-terminal; a larger `settled` never lowers it.

    >>> delivered_through(0, settled=8, first_open=8, last=8)
    7
    >>> delivered_through(0, settled=8, first_open=None, last=6), delivered_through(3, settled=8, first_open=None, last=None)
    (6, 3)
    >>> delivered_through(0, settled=None, first_open=None, last=6)
    0
    """
    if settled is None:
        return coverage
    if first_open is not None and coverage < first_open <= settled:
        return first_open - 1
    if last is not None and coverage < last <= settled:
        return last
    return coverage


def table_frontier(bounds: Mapping[str, Bound | None], settled: int | None) -> FrontierValue:
    """What all shards together support: the minimum of their `complete` bounds, as over any membership.

    `bounds` has every shard that was visible when `settled` was known already, so that no other can appear at or below it.

    >>> table_frontier({"a": Bound.through(90), "b": Bound.through(7)}, settled=90)
    Scalar(bound=Bound.through(7), capped=False)
    >>> table_frontier({"a": Bound.through(95)}, settled=90)
    Scalar(bound=Bound.through(90), capped=True)
    """
    cap = None if settled is None else Bound.through(settled)
    return frontier_of(Membership(1, "", frozenset(bounds)), bounds, cap=cap)


class CoverCode(Enum):
    """What becomes of a worker's wish to cover a range.

    >>> CoverCode("COVERAGE_MOVED") is CoverCode.COVERAGE_MOVED
    True
    """

    OK = "OK"
    COVERAGE_MOVED = "COVERAGE_MOVED"
    REGRESSION = "REGRESSION"


def judge_cover(coverage: int, claimed: int | None, after: int, through: int) -> CoverCode:
    """Whether (after, through] may be covered where the shard stands at `coverage`, with the end `claimed` of a range begun.

    Law: what is covered in a row are ranges (previous end, end]: they neither overlap nor leave a gap.

    >>> judge_cover(3, None, 3, 10), judge_cover(3, None, 3, 3)
    (<CoverCode.OK: 'OK'>, <CoverCode.REGRESSION: 'REGRESSION'>)
    >>> judge_cover(10, None, 3, 12), judge_cover(3, 8, 3, 10)
    (<CoverCode.COVERAGE_MOVED: 'COVERAGE_MOVED'>, <CoverCode.COVERAGE_MOVED: 'COVERAGE_MOVED'>)
    """
    if through <= after:
        return CoverCode.REGRESSION
    if coverage != after or claimed not in (None, through):
        return CoverCode.COVERAGE_MOVED
    return CoverCode.OK
