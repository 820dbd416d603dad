"""Where progress stands, for programs without Beam: `Progress` opens a store, `scope()` asks about one scope.

    with Progress("sqlite:///progress.db") as progress:
        orders = progress.scope("orders")
        orders.frontier                          what is complete, or None
        orders.blockers()                        who holds, and what releases it
        orders.wait_through("79999", timeout=60)
        orders.files(through="79999")            the promoted files that hold everything up to there

Nothing here writes. Each answer is of one consistent read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gapless.clock import Clock, SystemClock
from gapless.epoch_document import epoch_document
from gapless.errors import NotReached, UnknownScope
from gapless.explain import Explanation, Holding, explain, members_of, short_of
from gapless.progress import Bound, Domain, bound_text, highest
from gapless.status_document import status_document
from gapless.store.records import (
    Blocker,
    DeadLetter,
    FrontierRow,
    RunRow,
    Snapshot,
    SupersededLineage,
    Violation,
)
from gapless.store_ref import StoreRef, store_ref

if TYPE_CHECKING:
    from gapless.audit import AuditReport, Contradiction
    from gapless.history import History

POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Claim:
    """Everything after `after` (None: from the beginning of the source) and up to `bound` has a durable outcome.

    `position` is the bound's in canonical text. `basis` is `certified`, or `asserted` where an operator's word is part of it;
    `list_certified` tells whether the source vouches for its list of partitions through the bound, too. `violated`: the source
    was found to have broken a promise, so that what it certified is not all. `superseded`: a rebuild has ended the lineage."""

    bound: Bound
    position: str
    inclusive: bool
    after: Bound | None
    basis: str
    list_certified: bool
    membership_epoch: int
    lineage: int
    published_at: datetime | None
    violated: bool = False
    superseded: bool = False


class Reached(str, Enum):
    """What has become of waiting."""

    YES = "reached"
    BLOCKED = "blocked"
    """Time alone does not bring it about."""
    NOT_YET = "not_yet"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Waited:
    """True where the position was reached. Else who keeps the frontier below it, where that is known: a chain (`holding`), or
    the member list as a whole (`withheld`). `snapshot` is what it was judged by."""

    reached: Reached
    snapshot: Snapshot
    holding: Holding | None = None
    withheld: Blocker | None = None

    @property
    def blocker(self) -> Blocker | None:
        return self.holding.blocker if self.holding is not None else self.withheld

    def __bool__(self) -> bool:
        return self.reached is Reached.YES


@dataclass(frozen=True, slots=True)
class DataFile:
    """A promoted file. `bound` is how far its partition is complete with this file and those before it, None for no claim."""

    path: str
    partition: str
    sequence: int
    rows: int
    bound: Bound | None


class Progress:
    """A store, opened for reading. Used by one thread. Raises ConfigurationError and StoreError."""

    def __init__(self, store: str | StoreRef, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.store = store_ref(store).open(readonly=True, clock=self._clock)

    def scopes(self) -> list[str]:
        """The names of all scopes."""
        return list(self.store.scopes())

    def scope(self, name: str) -> "ScopeProgress":
        """Raises UnknownScope that names the scopes there are."""
        try:
            self.store.scope(name)
        except UnknownScope as error:
            there = ", ".join(self.scopes()) or "none: no run has begun here yet"
            raise UnknownScope(
                error.what, where=error.where, remedy=f"scopes of this store: {there}"
            ) from None
        return ScopeProgress(self, name, self._clock)

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ScopeProgress:
    """One scope of an open store."""

    def __init__(self, progress: Progress, name: str, clock: Clock) -> None:
        self.name = name
        self._store = progress.store
        self._clock = clock

    @property
    def frontier(self) -> Claim | None:
        """What is published; None where nothing is claimed."""
        scope = self._store.scope(self.name)
        return claim_of(scope, violated=self._store.violations_of(self.name, scope.lineage) > 0)

    def superseded(self) -> list[Claim]:
        """What was published in the lineages that rebuilds have ended, the oldest first; those without a claim are left out."""
        snapshot = self.snapshot()
        return [claim for one in snapshot.superseded if (claim := _old_claim(one, snapshot.scope.domain))]

    @property
    def domain(self) -> Domain:
        """What positions of this scope are, and how they are written."""
        return self._store.scope(self.name).domain

    @property
    def lineage(self) -> int:
        """The present one: 1, and one more with each rebuild."""
        return self._store.scope(self.name).lineage

    def blockers(self) -> list[tuple[str, Blocker]]:
        """(partition, blocker) of everybody that holds, the lowest bound first."""
        return self.explain().blockers

    @property
    def run(self) -> RunRow | None:
        """The newest run: its `state` is running, finished, stopped, failed, or `lost` where it has been silent for a minute."""
        return self.snapshot().run

    def explain(self) -> Explanation:
        """The blockers, and which of them holds the frontier."""
        return explain(self.snapshot())

    def _repr_html_(self) -> str:
        """For a notebook: the frontier, who holds it, the partitions."""
        from gapless.notebook import status_html

        return status_html(self.status())

    def status(self, *, all_partitions: bool = False) -> dict[str, Any]:
        """What `gapless status --json` prints."""
        return status_document(self.snapshot(), all_partitions=all_partitions)

    def epoch(self) -> dict[str, Any]:
        """What `gapless epoch show --json` prints: members, candidates, and what a cutover would lack."""
        return epoch_document(self.snapshot())

    def snapshot(self) -> Snapshot:
        return self._store.snapshot(self.name)

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Events that were given up, in the order they were recorded."""
        return self._store.dead_letters(self.name)

    def violations(self) -> Iterator[Violation]:
        """What the source broke of its promises, in the order it was found."""
        return self._store.violations(self.name)

    def audit(self, found: "Callable[[Contradiction], None] | None" = None) -> "AuditReport":
        """Derive everything that is claimed from the evidence for it, and read every promoted file.

        `found` is called with each contradiction when it is met. Writes nothing."""
        from gapless.audit import audit

        return audit(self._store, self.name, found=found)

    def history(self, *, all_partitions: bool = False) -> "History":
        """How frontier, bounds and membership epochs moved; of the bounds the lowest ones, or all."""
        from gapless.history import PARTITIONS, history

        return history(self._store, self.name, partitions=None if all_partitions else PARTITIONS)

    def wait_through(self, text: str, timeout: float | None = None) -> Waited:
        """Wait until the frontier covers the position of this canonical text; `timeout` in seconds, None: no limit.

        Returns at once where it is blocked: somebody has to do something first. Raises PositionError for other text."""
        target = target_of(self._store.scope(self.name), text)
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            waited = waited_for(self.snapshot(), target)
            if waited.reached is not Reached.NOT_YET:
                return waited
            left = POLL_SECONDS if deadline is None else deadline - self._clock.monotonic()
            if left <= 0:
                return waited
            self._clock.sleep(min(POLL_SECONDS, left))

    def files(self, through: str | None = None, *, lineage: int | None = None) -> list[DataFile]:
        """The promoted files, by partition and sequence; with `through`, those needed for everything at or below that position.

        They may hold later events as well: a file ends where a run of pages ended. `lineage` is one that a rebuild has ended, or
        None: the present one. Raises NotReached where the lineage's frontier does not cover the position, for then no set of
        files is known to be complete, ForeignLineage where there is no such lineage, and PositionError for other text."""
        if through is None:
            return list(self._files(None, lineage))
        scope = self._store.scope(self.name)
        target = target_of(scope, through)
        frontier = scope.frontier
        if lineage not in (None, scope.lineage):
            ended = self.snapshot().superseded
            frontier = next((one.frontier for one in ended if one.lineage == lineage), None)
        if frontier is None or frontier < target:
            stands = "is withheld" if frontier is None else f"stands {bound_text(frontier, scope.domain)}"
            raise NotReached(
                f"not complete through {scope.domain.text(target.position)}: the frontier {stands}",
                where=f"scope {self.name}" + ("" if lineage is None else f", lineage {lineage}"),
                remedy="`gapless explain` names who holds it; without --through every promoted file is listed",
            )
        return list(self._files(target, lineage))

    def _files(self, target: Bound | None, lineage: int | None) -> Iterator[DataFile]:
        proved: dict[int, Bound | None] = {}
        for row in sorted(
            self._store.promotions(self.name, lineage),
            key=lambda row: (row.partition, row.chain, row.sequence),
        ):
            before = proved.get(row.chain)
            proved[row.chain] = highest(before, row.bound)
            if target is not None and before is not None and before >= target:
                continue
            if row.path is not None and row.rows > 0:
                yield DataFile(row.path, row.partition, row.sequence, row.rows, proved[row.chain])


def claim_of(scope: FrontierRow, *, violated: bool = False) -> Claim | None:
    """The published frontier as a claim; None where it is withheld altogether."""
    if scope.frontier is None:
        return None
    return Claim(
        bound=scope.frontier,
        position=scope.domain.text(scope.frontier.position),
        inclusive=scope.frontier.inclusive,
        after=scope.after,
        basis=scope.basis,
        list_certified=scope.list_certified,
        membership_epoch=scope.epoch,
        lineage=scope.lineage,
        published_at=scope.published_at,
        violated=violated,
    )


def _old_claim(one: SupersededLineage, domain: Domain) -> Claim | None:
    if one.frontier is None:
        return None
    return Claim(
        bound=one.frontier,
        position=domain.text(one.frontier.position),
        inclusive=one.frontier.inclusive,
        after=one.after,
        basis=one.basis,
        list_certified=one.list_certified,
        membership_epoch=one.epoch,
        lineage=one.lineage,
        published_at=None,
        violated=one.violated,
        superseded=True,
    )


def target_of(scope: FrontierRow, text: str) -> Bound:
    """The bound that covers the position of this canonical text. Raises PositionError."""
    return Bound.through(scope.domain.from_text(text))


def waited_for(snapshot: Snapshot, target: Bound) -> Waited:
    """Whether the published frontier covers `target`; if not, whether anything but time has to happen first."""
    scope = snapshot.scope
    if scope.frontier is not None and scope.frontier >= target:
        return Waited(Reached.YES, snapshot)
    why, low = explain(snapshot), short_of(snapshot, target)
    blocking = next((held for held in low if not held.waits_for_time_alone), None)
    listed = why.by_list and _list_is_short_of(snapshot, target)
    if listed and not why.by_itself and (blocking is None or blocking.blocker.code == "membership_changed"):
        return Waited(Reached.BLOCKED, snapshot, withheld=why.withheld)
    if blocking is not None:
        return Waited(Reached.BLOCKED, snapshot, blocking)
    if low:
        return Waited(Reached.NOT_YET, snapshot, low[0])
    return Waited(Reached.NOT_YET, snapshot, withheld=why.withheld if listed else None)


def _list_is_short_of(snapshot: Snapshot, target: Bound) -> bool:
    """Whether more than a publish is needed: the cap or a member stands below, or there is no member."""
    scope = snapshot.scope
    if scope.capped and (scope.cap is None or scope.cap < target):
        return True
    members = members_of(snapshot)
    return not members or any(row.bound is None or row.bound < target for row in members)
