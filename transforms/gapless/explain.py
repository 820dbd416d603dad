"""Who holds the frontier, and what would release it: pure, from one snapshot of the durable rows.

A chain is *holding* where it will not get on, or cannot be proved, as it stands; each has one blocker of the closed list.
The frontier is *withheld* where whoever stands lowest is holding, or where the member list itself is proved no further.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gapless.progress import Bound, ChainState, Domain, bound_text
from gapless.store.records import Blocker, ChainRow, FrontierRow, Snapshot

_STOPPED = (ChainState.HELD, ChainState.GAP)
_RELEASED_BY_READING = frozenset({"not_started", "no_bound"})
"""Not `not_joined`: a newcomer enters by a cutover, which somebody decides."""
_SKIPPABLE = frozenset({"unsettled_event", "schema_drift"})
_COMMANDS = {
    "not_started": "gapless backfill JOB",
    "no_bound": "gapless backfill JOB",
    "source_unavailable": "gapless backfill JOB",
    "violation": "gapless violations",
}


@dataclass(frozen=True, slots=True)
class Holding:
    """A chain that does not get on as it stands, and why."""

    row: ChainRow
    blocker: Blocker

    @property
    def waits_for_time_alone(self) -> bool:
        """Whether it may be released without anybody doing anything: by its retry, or by the reading that goes on.

        A chain that was held and is open again is being tried at this moment."""
        if self.row.state is ChainState.GAP:
            return False
        if self.row.state is ChainState.HELD:
            return self.blocker.retry_at is not None
        return self.row.blocker is not None or self.blocker.code in _RELEASED_BY_READING

    @property
    def command(self) -> str | None:
        """The command that helps, None where none of gapless's own does."""
        event = self.blocker.event_id
        if self.blocker.code in _SKIPPABLE and event is not None:
            # `--` where an id looks like an option.
            dashed = self.row.partition.startswith("-") or event.startswith("-")
            names = shlex.join((*(("--",) if dashed else ()), self.row.partition, event))
            return f"gapless skip --reason ... {names}" if dashed else f"gapless skip {names} --reason ..."
        return _COMMANDS.get(self.blocker.code)


@dataclass(frozen=True, slots=True)
class Explanation:
    """`withheld`: why the frontier stands where it does, or is not there at all; None where nothing holds it but the
    reading itself. `holding`: every chain that holds, members first, the lowest bound first."""

    withheld: Blocker | None
    holding: Sequence[Holding]

    @property
    def blockers(self) -> list[tuple[str, Blocker]]:
        """The same as (partition, blocker)."""
        return [(held.row.partition, held.blocker) for held in self.holding]

    @property
    def settled(self) -> bool:
        """Nothing holds, neither the frontier nor a partition above it."""
        return self.withheld is None and not self.holding


def members_of(snapshot: Snapshot) -> list[ChainRow]:
    """The chains whose minimum the frontier is."""
    return [row for row in snapshot.chains if row.is_member]


def candidates_of(snapshot: Snapshot) -> list[ChainRow]:
    """The chains that were seen and have not entered."""
    return [row for row in snapshot.chains if row.is_candidate]


def routed_generations(snapshot: Snapshot) -> frozenset[str]:
    """The routing generation of the source's latest list; empty where it names none of the live chains."""
    latest = snapshot.scope.observation
    return frozenset(row.generation for row in snapshot.chains if row.is_live and row.listed == latest)


def explain(snapshot: Snapshot) -> Explanation:
    """Every chain that holds, by name, and what holds the frontier itself."""
    members = sorted(members_of(snapshot), key=lowest_first)
    routed = routed_generations(snapshot)
    holding = list(_holding(members, snapshot, routed))
    outside = list(_holding(sorted(candidates_of(snapshot), key=lowest_first), snapshot, routed))
    if not members:
        withheld: Blocker | None = Blocker("not_started", "no run has frozen the list of partitions yet")
    else:
        withheld = _withheld(snapshot.scope, members[0].bound, holding, outside)
    return Explanation(withheld, (*holding, *outside))


def lowest_first(row: ChainRow) -> tuple[bool, Bound, bool, str]:
    """Sort key: nothing at all is proved about who has no bound; among equals, who is stopped comes first."""
    return (row.bound is not None, row.bound or Bound.before(0), row.state not in _STOPPED, row.partition)


def _holding(rows: Sequence[ChainRow], snapshot: Snapshot, routed: frozenset[str]) -> Iterator[Holding]:
    for row in rows:
        blocker = _blocker(row, snapshot, routed)
        if blocker is not None:
            yield Holding(row, blocker)


def _blocker(row: ChainRow, snapshot: Snapshot, routed: frozenset[str]) -> Blocker | None:
    """What keeps a chain's bound from rising, a newcomer from entering, or a leaver from leaving; None where nothing does."""
    if row.blocker is not None:
        return row.blocker
    if row.state is ChainState.HELD:
        return Blocker("unsettled_event", "held; the store names no event")
    if row.state is ChainState.GAP:
        return Blocker("range_trimmed", "stopped at a gap; the store does not say why")
    if row.is_candidate:
        return _newcomer(row, snapshot.scope)
    if routed and row.generation not in routed:
        now = ", ".join(map(repr, sorted(routed)))
        return Blocker(
            "membership_changed",
            f"the source now routes under generation {now}; this chain is of {row.generation!r}, and is read no further",
        )
    if row.listed < snapshot.scope.observation:
        return _leaver(row, snapshot)
    return _unproved(row, snapshot.scope.domain)


def _newcomer(row: ChainRow, scope: FrontierRow) -> Blocker:
    if row.generation != scope.generation:
        return Blocker(
            "membership_changed",
            f"the source now routes under generation {row.generation!r}, the epoch is of {scope.generation!r}",
        )
    return Blocker("not_joined", "in the source's list since the epoch was frozen; not yet proved complete")


def _leaver(row: ChainRow, snapshot: Snapshot) -> Blocker | None:
    if row.seal is None:
        return Blocker(
            "unsealed_member", "no longer in the source's list, and the source has certified no end for it"
        )
    if row.successors is None:
        return Blocker(
            "missing_successor", "sealed and no longer listed, and the source does not name its successors"
        )
    known = {chain.partition for chain in snapshot.chains}
    missing = [name for name in row.successors if name not in known]
    if missing:
        return Blocker(
            "missing_successor", f"its successor {missing[0]!r} has not been seen in the source's list"
        )
    if row.bound is None or row.bound < row.seal:
        return _unproved(row, snapshot.scope.domain)
    return None


def _unproved(row: ChainRow, domain: Domain) -> Blocker | None:
    if row.fencing_token == 0 and row.state is ChainState.OPEN:
        return Blocker("not_started", "no run has taken this partition yet")
    if row.state is ChainState.ENDED:
        # The end of the pages is no evidence: only what was certified on the way counts.
        if row.bound is None:
            return Blocker(
                "no_certificate", "the source ended the partition and has certified nothing on its pages"
            )
        if row.read_to is not None and row.read_to > row.bound:
            return Blocker(
                "no_certificate",
                f"the source ended the partition at {domain.text(row.read_to.position)} and has certified only"
                f" {bound_text(row.bound, domain)}",
            )
        return None
    if row.bound is not None:
        return None
    if row.sequence == 0:
        return Blocker("not_started", "taken by a run; no page of it has been promoted yet")
    return Blocker("no_bound", f"{row.sequence} pages promoted; none of them has brought a certificate")


def _withheld(
    scope: FrontierRow, lowest: Bound | None, holding: Sequence[Holding], outside: Sequence[Holding]
) -> Blocker | None:
    for held in holding:
        if held.row.bound == lowest:
            return replace(held.blocker, hint=f"partition {held.row.partition}: {held.blocker.hint}")
    if not scope.capped or lowest is None:
        return None
    if scope.cap is not None and not (scope.cap < lowest or (scope.cap == lowest and outside)):
        return None
    if outside:
        first = outside[0]
        return replace(first.blocker, hint=f"partition {first.row.partition}: {first.blocker.hint}")
    if scope.cap is None:
        return Blocker("member_list_unproven", "the source has certified its list of partitions nowhere yet")
    return Blocker(
        "member_list_unproven",
        f"the list of partitions is certified {bound_text(scope.cap, scope.domain)} only",
    )


def short_of(snapshot: Snapshot, target: Bound) -> list[Holding]:
    """Who keeps the frontier below `target`, also those that hold only because of it: a chain that has ended short of it.

    Whoever stands at or above `target` is not in the list, whatever holds it there."""
    explanation = explain(snapshot)
    named = {held.row.chain for held in explanation.holding}
    low = [held for held in explanation.holding if held.row.bound is None or held.row.bound < target]
    for row in members_of(snapshot):
        if (
            row.chain in named
            or row.state is not ChainState.ENDED
            or row.bound is None
            or row.bound >= target
        ):
            continue
        through = bound_text(row.bound, snapshot.scope.domain)
        low.append(
            Holding(row, Blocker("no_certificate", f"the source ended the partition, certified {through}"))
        )
    return low
