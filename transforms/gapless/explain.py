"""Who holds the frontier, and what would release it: pure, from one snapshot of the durable rows.

A chain is *holding* where it will not get on, or cannot be proved, as it stands; each has one blocker of the closed list.
The frontier is *withheld* where whoever stands lowest is holding, or where the member list itself is proved no further.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gapless.membership_change import Change, blocker_of, change_of
from gapless.progress import Bound, ChainState, Domain, bound_text
from gapless.store.records import PARTITION, TRANSIT, Blocker, ChainRow, Snapshot

_STOPPED = (ChainState.HELD, ChainState.GAP)
_RELEASED_BY_READING = frozenset({"not_started", "no_bound"})
_OF_THE_LIST = frozenset({"membership_changed", "handoff_unproven"})
_SKIPPABLE = frozenset({"unsettled_event", "schema_drift"})
_COMMANDS = {
    "not_started": "gapless backfill JOB",
    "no_bound": "gapless backfill JOB",
    "source_unavailable": "gapless backfill JOB",
    "not_joined": "gapless backfill JOB",
    "violation": "gapless violations",
    "membership_changed": "gapless epoch show",
    "missing_successor": "gapless epoch show",
    "handoff_unproven": "gapless epoch show",
}


@dataclass(frozen=True, slots=True)
class Holding:
    """A chain that does not get on as it stands, and why. `by_itself`: a change of membership that nobody has to do anything
    for; `proved`: it only waits for the cutover."""

    row: ChainRow
    blocker: Blocker
    by_itself: bool = False
    proved: bool = False

    @property
    def waits_for_time_alone(self) -> bool:
        """Whether it may be released without anybody doing anything: by its retry, or by the reading that goes on.

        A chain that was held and is open again is being tried at this moment."""
        if self.row.state is ChainState.GAP:
            return False
        if self.by_itself:
            return True
        if self.row.state is ChainState.HELD:
            return self.blocker.retry_at is not None
        return self.row.blocker is not None or self.blocker.code in _RELEASED_BY_READING

    @property
    def command(self) -> str | None:
        """The command that helps, None where none of gapless's own does."""
        code, event = self.blocker.code, self.blocker.event_id
        if code in _SKIPPABLE and event is not None:
            return _command("gapless skip", "--reason ...", self.row.partition, event)
        if code == "unsealed_member" and self.row.seal is None:
            return _command("gapless epoch seal", "--at ... --reason ...", self.row.partition)
        if self.proved:
            return "gapless epoch cutover"
        return _COMMANDS.get(self.blocker.code)


def _command(verb: str, options: str, *names: str) -> str:
    """For a shell; with `--` where a name looks like an option."""
    if any(name.startswith("-") for name in names):
        return f"{verb} {options} {shlex.join(('--', *names))}"
    return f"{verb} {shlex.join(names)} {options}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """`withheld`: why the frontier stands where it does, or is not there at all; None where nothing holds it but the
    reading itself. `holding`: every chain that holds, members first, the lowest bound first. `by_list`: the member list
    withholds, no chain. `by_itself`: what withholds needs nobody but the reading that goes on."""

    withheld: Blocker | None
    holding: Sequence[Holding]
    by_list: bool = False
    by_itself: bool = False

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
    """The partitions' chains that were seen and have not entered."""
    return [row for row in snapshot.chains if row.is_candidate and row.kind == PARTITION]


def explain(snapshot: Snapshot) -> Explanation:
    """Every chain that holds, by name, and what holds the frontier itself."""
    change = change_of(snapshot)
    members = sorted(members_of(snapshot), key=lowest_first)
    outside = sorted((row for row in snapshot.chains if row.is_candidate), key=lowest_first)
    holding = list(_holding(members, snapshot, change))
    lowest = _who_withholds(members, snapshot, holding, change)
    everybody = (*holding, *_holding(outside, snapshot, change))
    if lowest is not None:
        named = replace(lowest.blocker, hint=f"partition {lowest.row.partition}: {lowest.blocker.hint}")
        return Explanation(named, everybody, by_itself=lowest.waits_for_time_alone)
    withheld, by_itself = _list_withholds(members, snapshot, change)
    return Explanation(withheld, everybody, by_list=withheld is not None, by_itself=by_itself)


def lowest_first(row: ChainRow) -> tuple[bool, Bound, bool, str]:
    """Sort key: nothing at all is proved about who has no bound; among equals, who is stopped comes first."""
    return (row.bound is not None, row.bound or Bound.before(0), row.state not in _STOPPED, row.partition)


def _holding(rows: Sequence[ChainRow], snapshot: Snapshot, change: Change | None) -> Iterator[Holding]:
    for row in rows:
        blocker = _blocker(row, snapshot, change)
        if blocker is None:
            continue
        if change is None:
            yield Holding(row, blocker)
            continue
        proved = blocker.code == "membership_changed" and change.waits_for_cutover(row)
        yield Holding(row, blocker, _comes_by_itself(row, blocker, change), proved)


def _blocker(row: ChainRow, snapshot: Snapshot, change: Change | None) -> Blocker | None:
    """What keeps a chain's bound from rising, a newcomer from entering, or a leaver from leaving; None where nothing does."""
    if row.blocker is not None:
        return row.blocker
    if row.state is ChainState.HELD:
        return Blocker("unsettled_event", "held; the store names no event")
    if row.state is ChainState.GAP:
        return Blocker("range_trimmed", "stopped at a gap; the store does not say why")
    if change is None:
        return _unproved(row, snapshot.scope.domain)
    if row.kind == TRANSIT:
        return _in_transit(row)
    if row.is_candidate:
        return change.of_newcomer(row)
    if change.stops(row):
        return change.of_stopped(row)
    return change.of_leaver(row) or _unproved(row, snapshot.scope.domain)


def _in_transit(row: ChainRow) -> Blocker | None:
    if row.state is not ChainState.OPEN:
        return None
    read = "no run has asked for them yet" if row.sequence == 0 else f"{row.events} of them have an outcome"
    return Blocker("handoff_unproven", f"the events in transit are to be settled first: {read}")


def _comes_by_itself(row: ChainRow, blocker: Blocker, change: Change) -> bool:
    """Whether the reading that goes on, and a run's own cutover, release it."""
    if row.blocker is not None:
        # One that was answered under the new routing goes on with the cutover; what else holds a chain is no matter of the list.
        return blocker.code == "membership_changed" and change.rerouted and change.comes_by_itself
    if row.kind == TRANSIT:
        return change.by_cutover
    if blocker.code in _OF_THE_LIST:
        return change.by_cutover and (change.waits_for_cutover(row) or change.comes_by_itself)
    lack = change.missing.get(row.partition)
    return (
        lack is not None and lack.code == blocker.code and change.by_cutover and change.comes_by_reading(lack)
    )


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


def _who_withholds(
    members: Sequence[ChainRow], snapshot: Snapshot, holding: Sequence[Holding], change: Change | None
) -> Holding | None:
    """The chain that holds the frontier: it stands lowest, and does not get on. None where it is the member list, or nobody."""
    if not members or _cap_is_below(snapshot, members[0].bound):
        return None
    for held in holding:
        # A chain that stands still because of the routing is not what is missing.
        stopped = change is not None and held.row.blocker is None and change.stops(held.row)
        if held.row.bound == members[0].bound and not stopped:
            return held
    return None


def _list_withholds(
    members: Sequence[ChainRow], snapshot: Snapshot, change: Change | None
) -> tuple[Blocker | None, bool]:
    """What about the list of members holds the frontier, and whether it is released without anybody doing anything."""
    scope = snapshot.scope
    if not members:
        return _nobody(snapshot), False
    below = _cap_is_below(snapshot, members[0].bound)
    at_cap = below or (scope.capped and scope.cap == members[0].bound)
    if change is not None and (change.rerouted or (at_cap and candidates_of(snapshot))):
        return blocker_of(change.reason), change.comes_by_itself
    if not below:
        return None, False
    certified = "nowhere yet" if scope.cap is None else f"{bound_text(scope.cap, scope.domain)} only"
    # A run looks at the list again and again.
    read = snapshot.run is not None and snapshot.run.state == "running"
    return Blocker("member_list_unproven", f"the list of partitions is certified {certified}"), read


def _cap_is_below(snapshot: Snapshot, lowest: Bound | None) -> bool:
    scope = snapshot.scope
    return scope.capped and lowest is not None and (scope.cap is None or scope.cap < lowest)


def _nobody(snapshot: Snapshot) -> Blocker:
    """No members: the minimum of nothing is no claim."""
    if not snapshot.frozen:
        return Blocker("not_started", "no run has frozen the list of partitions yet")
    return Blocker(
        "member_list_unproven", "every member has left in order: nobody is left who could raise the frontier"
    )


def short_of(snapshot: Snapshot, target: Bound) -> list[Holding]:
    """Who keeps the frontier below `target`, also those that hold only because of it: a chain that has ended short of it.

    Whoever stands at or above `target` is not in the list, whatever holds it there."""
    explanation = explain(snapshot)
    named = {held.row.chain for held in explanation.holding}
    low = [
        held
        for held in explanation.holding
        if held.row.kind == PARTITION and (held.row.bound is None or held.row.bound < target)
    ]
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
