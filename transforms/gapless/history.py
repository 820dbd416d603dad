"""How a scope came to where it stands: frontier, bounds and membership epochs as they moved, told from stored evidence.

Long histories are thinned: of many moves, some at even distances are kept, the first and the last among them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nsmallest
from typing import Any, Generic, TypeVar

from gapless.audit.epochs import Epoch, epoch_of
from gapless.errors import StoreUnreadable
from gapless.progress import Bound, Domain
from gapless.store import Store
from gapless.store.evidence import Evidence, Record

T = TypeVar("T")

POINTS = 60
"""How many moves of a frontier or a bound are kept, at least, where there are more."""

PARTITIONS = 100
"""Of how many partitions the bounds are told, the lowest ones, unless all are asked for."""


@dataclass(frozen=True, slots=True)
class Point:
    """A bound was reached. Of a frontier: in which membership epoch, and on what basis."""

    at: datetime
    bound: Bound
    epoch: int | None = None
    basis: str | None = None


@dataclass(frozen=True, slots=True)
class FrontierHistory:
    """One lineage's frontier: it moved `moves` times, of which `points` are told."""

    lineage: int
    moves: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class BoundHistory:
    """One partition's bound over its promotions. `points` are those that raised it, thinned."""

    partition: str
    state: str
    bound: Bound | None
    promotions: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class EpochHistory:
    """One membership epoch. `entered` are (partition, bound), `left` (partition, end, by whom), `replaced` and `dropped`
    partitions; `members` is how many the first list named, None for an epoch that a cutover opened."""

    lineage: int
    epoch: int
    generation: str
    opened_at: datetime
    by: str
    frontier: Bound | None
    basis: str
    members: int | None
    entered: Sequence[tuple[str, Bound | None]]
    left: Sequence[tuple[str, Bound | None, str]]
    replaced: Sequence[str]
    dropped: Sequence[str]
    routing: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided: a `rebuild`, a `seal`, a `skip`."""

    at: datetime
    lineage: int
    action: str
    partition: str | None
    reason: str
    operator: str | None


@dataclass(frozen=True, slots=True)
class History:
    """Everything that moved, the oldest first; `lineage` and `epoch` are the present ones. `bounds` are those of live chains
    (members, candidates, events in transit), the lowest first; `live` is how many there are. `restarts` counts page
    tokens that were replaced after they had died."""

    scope: str
    domain: Domain
    as_of: datetime
    lineage: int
    epoch: int
    frontiers: Sequence[FrontierHistory]
    epochs: Sequence[EpochHistory]
    bounds: Sequence[BoundHistory]
    live: int
    decisions: Sequence[Decision]
    restarts: int


@dataclass(slots=True)
class Thinned(Generic[T]):
    """Keeps some of many items, evenly: at least `points` of them where there are more, never more than twice as many.

    >>> kept = Thinned(4)
    >>> for number in range(100): kept.add(number)
    >>> kept.items(), kept.count
    ([0, 16, 32, 48, 64, 80, 96, 99], 100)
    """

    points: int
    count: int = 0
    _kept: list[T] = field(default_factory=list)
    _stride: int = 1
    _last: T | None = None

    def add(self, item: T) -> None:
        if self.count % self._stride == 0:
            if len(self._kept) == 2 * self.points - 1:
                self._kept = self._kept[::2]
                self._stride *= 2
            if self.count % self._stride == 0:
                self._kept.append(item)
        self._last = item
        self.count += 1

    def items(self) -> list[T]:
        """In order, the last one always among them."""
        if self._last is None or (self.count - 1) % self._stride == 0:
            return list(self._kept)
        return [*self._kept, self._last]


def history(
    store: Store, scope: str, *, points: int = POINTS, partitions: int | None = PARTITIONS
) -> History:
    """What is stored of how the scope moved, from one snapshot. `partitions` None tells all bounds.

    Memory grows with membership changes and with what is told, not with publishes or promotions. Raises UnknownScope, and
    StoreUnreadable where an epoch cannot be read."""
    with store.evidence(scope) as evidence:
        now = evidence.scope
        frontiers = _frontiers(evidence, points)
        epochs = list(_read_epochs(evidence))
        named = {chain for _, epoch in epochs for chain in _chains_of(epoch)}
        names: dict[int, str] = {}
        counted = 0

        def live() -> Iterator[Record]:
            nonlocal counted
            for row in evidence.chains():
                if row["chain"] in named:
                    names[row["chain"]] = row["partition"]
                if row["lineage"] == now["lineage"] and row["epoch_out"] is None:
                    counted += 1
                    yield row

        rows = _lowest(live(), partitions)
        decisions, restarts = _decisions(evidence)
        return History(
            scope=scope,
            domain=evidence.domain,
            as_of=evidence.as_of,
            lineage=now["lineage"],
            epoch=now["epoch"],
            frontiers=frontiers,
            epochs=[_told(row, epoch, names, evidence.domain) for row, epoch in epochs],
            bounds=[_bound_history(evidence, row, points) for row in rows],
            live=counted,
            decisions=decisions,
            restarts=restarts,
        )


def _frontiers(evidence: Evidence, points: int) -> list[FrontierHistory]:
    found: dict[int, Thinned[Record]] = {}
    for row in evidence.frontier_moves():
        found.setdefault(row["lineage"], Thinned(points)).add(row)
    return [
        FrontierHistory(lineage, kept.count, list(_points(kept.items(), evidence.domain)))
        for lineage, kept in sorted(found.items())
    ]


def _points(rows: Iterable[Record], domain: Domain) -> Iterator[Point]:
    for row in rows:
        bound = domain.from_key(row["frontier"])
        if bound is not None:
            yield Point(row["published_at"], bound, row["epoch"], row["basis"])


def _read_epochs(evidence: Evidence) -> Iterator[tuple[Record, Epoch]]:
    for row in evidence.epochs():
        try:
            yield row, epoch_of(row, evidence.domain)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreUnreadable(
                f"what led to membership epoch {row['epoch']} cannot be read",
                where=f"scope {evidence.name}",
                remedy="`gapless audit` says what else does not hold",
            ) from error


def _chains_of(epoch: Epoch) -> set[int]:
    return {*epoch.entered, *epoch.left, *epoch.replaced, *epoch.dropped}


def _told(row: Record, epoch: Epoch, names: Mapping[int, str], domain: Domain) -> EpochHistory:
    def name(chain: int) -> str:
        return names.get(chain, f"chain {chain}")

    return EpochHistory(
        lineage=epoch.lineage,
        epoch=epoch.number,
        generation=epoch.generation,
        opened_at=row["opened_at"],
        by=epoch.by,
        frontier=domain.from_key(epoch.frontier),
        basis=epoch.basis,
        members=epoch.members or None,
        entered=sorted((name(chain), domain.from_key(key)) for chain, key in epoch.entered.items()),
        left=sorted((name(chain), domain.from_key(one.seal), one.by) for chain, one in epoch.left.items()),
        replaced=sorted(map(name, epoch.replaced)),
        dropped=sorted(map(name, epoch.dropped)),
        routing=epoch.routing,
    )


def _lowest(rows: Iterator[Record], partitions: int | None) -> list[Record]:
    """The lowest bounds first; the rest is gone through, too."""

    def order(row: Record) -> tuple[bytes, str]:
        return row["bound"], row["partition"]

    return sorted(rows, key=order) if partitions is None else nsmallest(partitions, rows, key=order)


def _bound_history(evidence: Evidence, row: Record, points: int) -> BoundHistory:
    domain, highest, promotions = evidence.domain, b"", 0
    kept: Thinned[tuple[datetime, bytes]] = Thinned(points)
    for promotion in evidence.promotions(row["chain"]):
        promotions += 1
        if promotion["bound"] > highest:
            highest = promotion["bound"]
            kept.add((promotion["promoted_at"], highest))
    reached = [(at, domain.from_key(key)) for at, key in kept.items()]
    return BoundHistory(
        partition=row["partition"],
        state=row["state"],
        bound=domain.from_key(row["bound"]),
        promotions=promotions,
        points=[Point(at, bound) for at, bound in reached if bound is not None],
    )


def _decisions(evidence: Evidence) -> tuple[list[Decision], int]:
    decisions, restarts = [], 0
    for row in evidence.journal():
        if row["action"] == "restart":
            restarts += 1
            continue
        decisions.append(
            Decision(
                row["recorded_at"],
                row["lineage"],
                row["action"],
                row["partition"],
                row["reason"],
                row["operator"],
            )
        )
    return decisions, restarts
