"""A cutover: one step from a membership epoch towards the source's latest list, as far as proofs reach.

Pure: the store passes in where every live chain stands, and carries out what is decided here in one transaction. Entering and
leaving are separate, so that a step takes whoever is proved and names what is missing for the others; but another routing
generation comes in whole or not at all.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace

from gapless.progress.blockers import MemberBlocker
from gapless.progress.bound import Bound, highest
from gapless.progress.leaving import Show, in_order, unsealed, waiting_for_successors
from gapless.progress.membership import MembershipCode, judge_join, reaches
from gapless.progress.standing import Standing


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
    `generation`. `read_again`: the new chains stand in for whoever had their names before, also the departed. `missing` is
    what the latest list still lacks.

    >>> Step("r1").changes
    False
    """

    generation: str
    entering: tuple[int, ...] = ()
    leaving: tuple[int, ...] = ()
    replaced: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    rerouted: tuple[int, ...] = ()
    read_again: bool = False
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
    show: Callable[[Bound | None], str] = repr,
    somebody_stays: bool = True,
) -> Step:
    """The step that is proved now. `generation` is the epoch's, `observed` the latest list's; `frontier` is published,
    `list_bound` is how far the latest list is certified; `departed` left in order at an earlier cutover. `show` spells a bound.

    A membership of nobody claims nothing: with `somebody_stays`, where everybody would leave, whoever is proved furthest is kept.

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
        step = _same_routing(observed, standings, frontier, departed, show)
        return _with_a_last_member(step, standings) if somebody_stays else step
    if isinstance(proof, ReadingAgain):
        step = _read_again(generation, observed, standings, frontier, list_bound, departed, show)
        return _with_a_last_member(step, standings) if somebody_stays else step
    spoken_of = [one for one in standings if _is_spoken_of(one, generation, observed, proof)]
    lack = _lack_of_handoff(generation, observed, standings, proof, show)
    step = _rerouted(observed, standings, spoken_of, frontier, departed, show)
    read_between = _read_between(standings, {one.partition for one in spoken_of})
    if lack is None and not read_between:
        return _with_a_last_member(step, standings) if somebody_stays else step
    unproven = () if lack is None else (MemberBlocker("handoff_unproven", "", lack),)
    return Step(generation, missing=in_order_of_weight((*step.missing, *read_between, *unproven)))


def _with_a_last_member(step: Step, standings: Iterable[Standing]) -> Step:
    """The same step, less the leaving of whoever is proved furthest, where nobody else would be left."""
    leaving, gone = set(step.leaving), {*step.leaving, *step.replaced, *step.dropped}
    entering = set(step.entering)
    members = [one for one in standings if one.member or one.chain in entering]
    under_it = {*step.rerouted}
    last = [
        one
        for one in members
        if one.chain in leaving and (one.generation == step.generation or one.chain in under_it)
    ]
    if not last or any(one.chain not in gone for one in members):
        return step
    kept = max(last, key=_proved_furthest).chain
    return replace(step, leaving=tuple(chain for chain in step.leaving if chain != kept))


def _proved_furthest(one: Standing) -> tuple[Bound, int]:
    """Sort key of chains that are drained, and so have a bound."""
    if one.bound is None:
        raise AssertionError(f"chain {one.chain} is drained without a bound")
    return one.bound, -one.chain


def _same_routing(
    generation: str,
    standings: Iterable[Standing],
    frontier: Bound | None,
    departed: Container[str],
    show: Show,
) -> Step:
    live, dropped = [], []
    for one in standings:
        if one.generation == generation:
            live.append(one)
        elif not one.member:
            # A candidate of a generation that never came to count: whatever replaced it has read its events.
            dropped.append(one.chain)
    open_ones = {one.partition for one in live if one.seal is None}
    lacks = {one.chain: _lack_of_join(one, open_ones, frontier, show) for one in live if not one.member}
    staying = {one.partition for one in live if not one.drained and lacks.get(one.chain) is None}
    leaving = in_order(live, staying, departed)
    present = {*staying, *(one.partition for one in leaving.values())}
    entering = {chain for chain, lack in lacks.items() if lack is None or chain in leaving}
    missing = []
    for one in live:
        if one.chain in leaving:
            continue
        if one.drained:
            missing.append(waiting_for_successors(one, present, departed))
        elif not one.listed or one.seal is not None:
            missing.append(unsealed(one, show))
        elif (lack := lacks.get(one.chain)) is not None:
            missing.append(MemberBlocker("not_joined", one.partition, lack))
    return Step(
        generation,
        entering=tuple(sorted(entering)),
        leaving=tuple(sorted(leaving)),
        dropped=tuple(dropped),
        missing=in_order_of_weight(missing),
    )


def _is_spoken_of(one: Standing, generation: str, observed: str, proof: RoutingProof | None) -> bool:
    """Whether the proof says what this chain lacks under `observed`.

    A handoff certificate compares the epoch's generation with the observed one. What was read under a third, between them, may
    have come and gone: an event that was away just then lies where it lay before, and is in transit for nobody."""
    if isinstance(proof, Moves) or one.generation in (generation, observed):
        return True
    return one.seal is not None and one.seal.decommissioned


def _read_between(standings: Iterable[Standing], spoken_of: Container[str]) -> list[MemberBlocker]:
    """Candidates of a generation that the proof says nothing of, where nobody has begun to read their partition anew."""
    return [
        MemberBlocker(
            "not_joined",
            one.partition,
            f"it was read under routing generation {one.generation!r}, of which nothing proves what moved since",
        )
        for one in standings
        if one.partition not in spoken_of
    ]


def _rerouted(
    observed: str,
    standings: Sequence[Standing],
    spoken_of: Iterable[Standing],
    frontier: Bound | None,
    departed: Container[str],
    show: Show,
) -> Step:
    """Tokens and bounds go on under the new generation as far as the proof speaks of them: of several chains of a partition the
    member's, else the oldest one's."""
    carried: dict[str, Standing] = {}
    for one in sorted(spoken_of, key=lambda one: (not one.member, one.chain)):
        carried.setdefault(one.partition, one)
    rerouted = [one for one in carried.values() if one.generation != observed]
    dropped = [one.chain for one in standings if carried.get(one.partition) is not one]
    listed = {one.partition for one in standings if one.listed}
    view = [replace(one, generation=observed, listed=one.partition in listed) for one in carried.values()]
    step = _same_routing(observed, view, frontier, departed, show)
    return replace(
        step, dropped=tuple(sorted(dropped)), rerouted=tuple(sorted(one.chain for one in rerouted))
    )


def _lack_of_handoff(
    generation: str, observed: str, standings: Iterable[Standing], proof: RoutingProof | None, show: Show
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
        if one.generation == generation and read is not None and read > proof.complete:
            return (
                f"{changed}, and the handoff certificate covers {show(proof.complete)}, less than partition {one.partition}"
                f" was promoted through: {show(read)}"
            )
    return None if proof.settled else f"{changed}, and the events in transit between them are not settled yet"


def _read_again(
    generation: str,
    observed: str,
    standings: Sequence[Standing],
    frontier: Bound | None,
    list_bound: Bound | None,
    departed: Container[str],
    show: Show,
) -> Step:
    new = [one for one in standings if one.generation == observed]
    old = [one for one in standings if one.generation != observed]
    names = {one.partition for one in new}
    everything_is_listed = list_bound is not None and reaches(list_bound, frontier)
    # An old member with an end keeps what it has: nothing says that the new generation holds it too.
    ended = [one for one in old if one.partition not in names and one.drained]
    staying = {one.partition for one in new if not one.drained}
    leaving = in_order([*new, *ended], staying, departed)
    present = {*staying, *(one.partition for one in leaving.values())}
    missing = []
    for one in new:
        unread = _lack_of_reading(one, frontier, present, departed, show)
        if unread is not None and one.chain not in leaving:
            missing.append(unread)
    replaced: list[int] = []
    dropped: list[int] = []
    for one in old:
        if one.chain in leaving:
            continue
        (replaced if one.member else dropped).append(one.chain)
        if one.partition in names:
            continue
        if one.listed:
            lack = f"it has not been read under routing generation {observed!r}"
            missing.append(MemberBlocker("not_joined", one.partition, lack))
        elif one.drained:
            missing.append(waiting_for_successors(one, present, departed))
        elif not everything_is_listed:
            missing.append(unsealed(one, show))
    if not new:
        lack = f"nothing has been read under routing generation {observed!r}"
        missing.append(MemberBlocker("handoff_unproven", "", lack))
    if missing:
        return Step(generation, missing=in_order_of_weight(missing))
    enter_to_leave = [one.chain for one in ended if one.chain in leaving and not one.member]
    return Step(
        observed,
        entering=tuple(sorted([*(one.chain for one in new), *enter_to_leave])),
        leaving=tuple(sorted(leaving)),
        replaced=tuple(replaced),
        dropped=tuple(dropped),
        read_again=True,
    )


def _lack_of_reading(
    one: Standing, frontier: Bound | None, present: Container[str], departed: Container[str], show: Show
) -> MemberBlocker | None:
    """What keeps a chain of the new generation, which does not leave at once, from standing in for the old one."""
    if not one.listed and not one.drained:
        return unsealed(one, show)
    if reaches(one.bound, frontier):
        return None
    if one.drained:
        # It ended behind the frontier: what lies between is with whoever carries on.
        return waiting_for_successors(one, present, departed)
    return MemberBlocker("not_joined", one.partition, _short(one.bound, frontier, show))


def _lack_of_join(one: Standing, open_ones: Container[str], frontier: Bound | None, show: Show) -> str | None:
    """What keeps a candidate out, which is read from its explicit start; None where it enters."""
    if not one.listed:
        return "it is no longer listed"
    gating = [parent for parent in one.parents if parent in open_ones]
    code = judge_join(one.bound, "", published=frontier, parents=gating)
    if code is MembershipCode.GATED:
        return f"its parent {gating[0]} has not ended"
    return None if code is MembershipCode.OK else _short(one.bound, frontier, show)


def _short(bound: Bound | None, frontier: Bound | None, show: Show) -> str:
    return f"it is complete: {show(bound)}; published: {show(frontier)}"


_ORDER = ("unsealed_member", "missing_successor", "not_joined", "handoff_unproven")


def in_order_of_weight(missing: Iterable[MemberBlocker]) -> tuple[MemberBlocker, ...]:
    """Leavers first: where one may not go, who comes in its place is the lesser question."""
    return tuple(sorted(missing, key=lambda one: (_ORDER.index(one.code), one.partition)))
