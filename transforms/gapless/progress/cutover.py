"""A cutover: one step from a membership epoch towards the source's latest list, as far as proofs reach.

Pure: the store passes in where every live chain stands, and carries out what is decided here in one transaction. Entering and
leaving are separate, so that a step takes whoever is proved and names what is missing for the others; but another routing
generation comes in whole or not at all.
"""

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace

from gapless.progress.blockers import MemberBlocker
from gapless.progress.bound import Bound, highest
from gapless.progress.membership import MembershipCode, Seal, judge_join, judge_seal, reaches


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one live chain stands. `chain` tells it from the others; `member`: its bound counts, else it is a candidate;
    `listed`: the latest list names it. `seal` None: it has no certified end.

    >>> Standing(1, "a", "r1", True, True, Bound.through(9), seal=Seal(Bound.through(9), ())).drained
    True
    """

    chain: int
    partition: str
    generation: str
    member: bool
    listed: bool
    bound: Bound | None
    read_to: Bound | None = None
    seal: Seal | None = None
    parents: tuple[str, ...] = ()

    @property
    def drained(self) -> bool:
        """It has ended, and is promoted through its end."""
        return self.seal is not None and judge_seal(self.bound, self.seal) is not MembershipCode.NOT_DRAINED


@dataclass(frozen=True, slots=True)
class Moves:
    """The source's own promise: an event never moves behind a certified bound, so that certificates stay cumulative."""

    reason: str


@dataclass(frozen=True, slots=True)
class Handoff:
    """The source's handoff certificate: every event at or below `complete` whose partition differs was named as in transit.

    `complete` None: it has not been read. `settled`: each of those events has its outcome."""

    complete: Bound | None
    settled: bool


@dataclass(frozen=True, slots=True)
class ReadingAgain:
    """The new generation is read from its explicit start, and its files replace the old one's."""


RoutingProof = Moves | Handoff | ReadingAgain


@dataclass(frozen=True, slots=True)
class Step:
    """What a cutover does, by chain: `entering` become members, `leaving` go in order (whoever is in both enters and leaves at
    once), `replaced` were read again, `dropped` are candidates that nobody needs any more, `rerouted` go on under
    `generation`. `missing` is what the latest list still lacks.

    >>> Step("r1").changes
    False
    """

    generation: str
    entering: tuple[int, ...] = ()
    leaving: tuple[int, ...] = ()
    replaced: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    rerouted: tuple[int, ...] = ()
    missing: tuple[MemberBlocker, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return any((self.entering, self.leaving, self.replaced, self.dropped, self.rerouted))


def step_towards_list(
    generation: str,
    standings: Sequence[Standing],
    *,
    observed: str,
    frontier: Bound | None,
    list_bound: Bound | None = None,
    departed: Container[str] = frozenset(),
    proof: RoutingProof | None = None,
) -> Step:
    """The step that is proved now. `generation` is the epoch's, `observed` the latest list's; `frontier` is published,
    `list_bound` is how far the latest list is certified; `departed` left in order at an earlier cutover.

    >>> member = Standing(1, "a", "r1", True, True, Bound.through(100))
    >>> newcomer = Standing(2, "n", "r1", False, True, Bound.through(40))
    >>> step_towards_list("r1", [member, newcomer], observed="r1", frontier=Bound.through(50)).missing[0].code
    'not_joined'
    >>> step_towards_list("r1", [member, newcomer], observed="r1", frontier=Bound.through(40)).entering
    (2,)
    >>> step_towards_list("r1", [member], observed="r2", frontier=Bound.through(40)).missing[0].code
    'handoff_unproven'
    """
    if observed == generation:
        return _same_routing(observed, standings, frontier, departed)
    if isinstance(proof, ReadingAgain):
        return _read_again(observed, standings, frontier, list_bound, departed)
    lack = _lack_of_handoff(generation, observed, standings, proof)
    if lack is not None:
        return Step(generation, missing=(MemberBlocker("handoff_unproven", "", lack),))
    return _rerouted(observed, standings, frontier, departed)


def _same_routing(
    generation: str, standings: Iterable[Standing], frontier: Bound | None, departed: Container[str]
) -> Step:
    live = [one for one in standings if one.generation == generation]
    # Candidates of a generation that never came to count: whatever replaced it has read their events.
    dropped = tuple(one.chain for one in standings if one.generation != generation and not one.member)
    lacks = {one.chain: _lack_of_join(one, live, frontier) for one in live if not one.member}
    entering = [one for one in live if not one.member and lacks[one.chain] is None]
    staying = [one for one in live if one.member or one in entering]
    leaving = _in_order(live, {one.partition for one in staying if not one.drained}, departed)
    enters = {one.chain for one in entering} | {one.chain for one in leaving if not one.member}
    missing = [
        blocker
        for one in sorted(live, key=lambda one: one.partition)
        if one not in leaving
        for blocker in _lacks(one, lacks.get(one.chain), _accountable(live, departed))
    ]
    return Step(
        generation,
        entering=tuple(sorted(enters)),
        leaving=tuple(one.chain for one in leaving),
        dropped=dropped,
        missing=_ordered(missing),
    )


def _rerouted(
    observed: str, standings: Sequence[Standing], frontier: Bound | None, departed: Container[str]
) -> Step:
    """Tokens and bounds go on under the new generation: of several chains of a partition the member's, else the oldest one's."""
    carried: dict[str, Standing] = {}
    for one in sorted(standings, key=lambda one: (not one.member, one.chain)):
        carried.setdefault(one.partition, one)
    rerouted = [one for one in carried.values() if one.generation != observed]
    dropped = [one.chain for one in standings if carried[one.partition] is not one]
    listed = {one.partition for one in standings if one.listed}
    view = [replace(one, generation=observed, listed=one.partition in listed) for one in carried.values()]
    step = _same_routing(observed, view, frontier, departed)
    return replace(
        step, dropped=tuple(sorted(dropped)), rerouted=tuple(sorted(one.chain for one in rerouted))
    )


def _lack_of_handoff(
    generation: str, observed: str, standings: Iterable[Standing], proof: RoutingProof | None
) -> str | None:
    if isinstance(proof, Moves):
        return None
    changed = f"routing generation {observed!r} follows {generation!r}"
    if not isinstance(proof, Handoff):
        return f"{changed} without a proof of what moved"
    if proof.complete is None:
        return f"{changed}, and no handoff certificate between them has been read"
    for one in standings:
        read = highest(one.bound, one.read_to)
        if one.generation != observed and read is not None and read > proof.complete:
            return (
                f"{changed}, and the handoff certificate covers {proof.complete!r}, less than partition {one.partition}"
                f" was promoted through: {read!r}"
            )
    return None if proof.settled else f"{changed}, and the events in transit between them are not settled yet"


def _read_again(
    observed: str,
    standings: Sequence[Standing],
    frontier: Bound | None,
    list_bound: Bound | None,
    departed: Container[str],
) -> Step:
    new = [one for one in standings if one.generation == observed]
    old = [one for one in standings if one.generation != observed]
    names = {one.partition for one in new}
    everything_is_listed = list_bound is not None and reaches(list_bound, frontier)
    staying = {one.partition for one in new if not one.drained}
    # An old member with an end keeps what it has: nothing says that the new generation holds it too.
    ended = [one for one in old if one.partition not in names and one.drained]
    leaving = _in_order([*new, *ended], staying, departed)
    missing: list[MemberBlocker] = []
    for one in new:
        if not one.drained and not one.listed:
            missing.append(_unsealed(one))
        elif not one.drained and not reaches(one.bound, frontier):
            missing.append(MemberBlocker("not_joined", one.partition, _short(one.bound, frontier)))
    for one in old:
        if one.partition in names or (one in ended and one in leaving):
            continue
        if one.listed:
            lack = f"it has not been read under routing generation {observed!r}"
            missing.append(MemberBlocker("not_joined", one.partition, lack))
        elif one in ended:
            missing.extend(_lacks(one, None, _accountable([*new, *ended], departed)))
        elif not everything_is_listed:
            missing.append(_unsealed(one))
    if missing or not new:
        return Step("", missing=_ordered(missing) or (_nothing_read(observed),))
    leaves = {one.chain for one in leaving}
    gone = [one for one in old if one.chain not in leaves]
    return Step(
        observed,
        entering=tuple(sorted([*(one.chain for one in new), *(one.chain for one in ended if not one.member)])),
        leaving=tuple(sorted(leaves)),
        replaced=tuple(sorted(one.chain for one in gone if one.member)),
        dropped=tuple(sorted(one.chain for one in gone if not one.member)),
    )


def _nothing_read(observed: str) -> MemberBlocker:
    return MemberBlocker(
        "handoff_unproven", "", f"nothing has been read under routing generation {observed!r}"
    )


def _in_order(
    standings: Iterable[Standing], staying: Collection[str], departed: Container[str]
) -> list[Standing]:
    """Who has ended, is drained, and has everybody who carries on from it accounted for, at any depth.

    Partitions that name each other as successors never get in: nobody carries on from them."""
    pending = [one for one in standings if one.drained]
    accounted: list[Standing] = []
    while True:
        present = {*staying, *(one.partition for one in accounted)}
        more = [one for one in pending if _missing_successor(one, present, departed) is None]
        if not more:
            return sorted(accounted, key=lambda one: one.chain)
        accounted += more
        pending = [one for one in pending if one not in more]


def _missing_successor(one: Standing, present: Container[str], departed: Container[str]) -> str | None:
    if one.seal is None or one.seal.decommissioned:
        return None
    if one.seal.successors is None:
        return f"the successors of {one.partition} are unknown"
    for successor in one.seal.successors:
        if successor not in present and successor not in departed:
            return f"{successor}, which carries on from it, neither enters nor has left in order"
    return None


@dataclass(frozen=True, slots=True)
class _Names:
    """A partition's name counts as accounted for where it is a member, and not itself waiting to leave."""

    present: frozenset[str]
    departed: Container[str]


def _accountable(live: Iterable[Standing], departed: Container[str]) -> _Names:
    return _Names(frozenset(one.partition for one in live if one.member and not one.drained), departed)


def _lacks(one: Standing, lack_of_join: str | None, names: _Names) -> list[MemberBlocker]:
    """What keeps a chain from where the latest list wants it."""
    if one.drained:
        lack = _missing_successor(one, names.present, names.departed)
        return [] if lack is None else [MemberBlocker("missing_successor", one.partition, lack)]
    if not one.listed or one.seal is not None:
        return [_unsealed(one)]
    return [] if lack_of_join is None else [MemberBlocker("not_joined", one.partition, lack_of_join)]


def _unsealed(one: Standing) -> MemberBlocker:
    detail = (
        "it is not listed, and nobody stated where it ends"
        if one.seal is None
        else f"it ends at {one.seal.at!r}, and has been promoted through {one.bound!r} only"
    )
    return MemberBlocker("unsealed_member", one.partition, detail)


def _lack_of_join(one: Standing, live: Sequence[Standing], frontier: Bound | None) -> str | None:
    """What keeps a candidate out; None where it enters."""
    if not one.listed:
        return "it is no longer listed"
    unsealed = {other.partition for other in live if other.seal is None}
    gating = [parent for parent in one.parents if parent in unsealed]
    code = judge_join(
        one.bound, "", published=frontier, parents=gating
    )  # a candidate is read from its explicit start
    if code is MembershipCode.GATED:
        return f"its parent {gating[0]} has not ended"
    return None if code is MembershipCode.OK else _short(one.bound, frontier)


def _short(bound: Bound | None, frontier: Bound | None) -> str:
    return f"it is complete through {bound!r}, the published frontier is {frontier!r}"


_ORDER = ("unsealed_member", "missing_successor", "not_joined", "handoff_unproven")


def _ordered(missing: Iterable[MemberBlocker]) -> tuple[MemberBlocker, ...]:
    """Leavers first: where one may not go, who comes in its place is the lesser question."""
    return tuple(sorted(missing, key=lambda one: (_ORDER.index(one.code), one.partition)))
