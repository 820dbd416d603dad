"""A cutover to exactly one list in one step, or all that is missing for it: the step towards a list, as a whole."""

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass

from gapless.progress.blockers import MemberBlocker
from gapless.progress.bound import Bound
from gapless.progress.cutover_step import RoutingProof, in_order_of_weight, step_towards_list
from gapless.progress.membership import Membership, MembershipCode, Seal
from gapless.progress.standing import Standing


@dataclass(frozen=True, slots=True)
class Cutover:
    """`membership` is the next epoch's, None where `missing` names what lacks proof: nothing changes then.

    >>> Cutover(None, (MemberBlocker("not_joined", "c"),)).code
    <MembershipCode.NOT_JOINED: 'NOT_JOINED'>
    """

    membership: Membership | None
    missing: tuple[MemberBlocker, ...] = ()

    @property
    def code(self) -> MembershipCode:
        """OK, or the first thing that is missing.

        >>> Cutover(Membership(2, "", frozenset("a"))).code
        <MembershipCode.OK: 'OK'>
        """
        return MembershipCode(self.missing[0].code.upper()) if self.missing else MembershipCode.OK


def cutover(
    current: Membership,
    listed: Collection[str],
    *,
    bounds: Mapping[str, Bound | None],
    seals: Mapping[str, Seal],
    departed: Container[str] = frozenset(),
    published: Bound | None = None,
    generation: str | None = None,
    proof: RoutingProof | None = None,
) -> Cutover:
    """The next membership epoch, made of exactly `listed` and reached in one step, or all that is missing for it.

    `bounds` holds the members, and the candidates that are read from an explicit start: whoever is in it must be
    listed or leave in order, whoever is listed must be in it. `departed` left in order at an earlier cutover. Another
    `generation` than the current one needs a `proof`.

    >>> was = Membership(1, "", frozenset({"p0", "p1"}))
    >>> bounds = {"p0": Bound.through(100), "p1": Bound.through(20)}
    >>> cutover(was, ["p0"], bounds=bounds, seals={}).missing
    (MemberBlocker(code='unsealed_member', partition='p1', detail='it is not listed, and nobody stated where it ends'),)
    >>> cutover(was, ["p0"], bounds=bounds, seals={"p1": Seal(Bound.through(20), ())}).membership.epoch
    2
    """
    wanted = frozenset(listed)
    names = sorted(current.members | bounds.keys())
    following = current.generation if generation is None else generation
    standings = [
        Standing(
            chain,
            name,
            current.generation,
            member=name in current.members,
            listed=name in wanted,
            bound=bounds.get(name),
            # Whoever is wanted stays, also where it has ended.
            seal=None if name in wanted else seals.get(name),
        )
        for chain, name in enumerate(names)
    ]
    heirs = {heir for seal in seals.values() for heir in seal.successors or ()}
    step = step_towards_list(
        current.generation,
        standings,
        observed=following,
        frontier=published,
        # Whoever is wanted is accounted for: where it does not get in, that is what is missing.
        departed={heir for heir in heirs if heir in wanted or heir in departed},
        proof=proof,
        somebody_stays=False,
    )
    left = {names[chain] for chain in step.leaving}
    reached = (current.members | {names[chain] for chain in step.entering}) - left
    missing = [*step.missing]
    named = {blocker.partition for blocker in missing}
    for name in sorted(wanted - reached - named):
        missing.append(MemberBlocker("not_joined", name, "it has not been read from an explicit start"))
    if reached == wanted and reached | left == frozenset(names) and following == step.generation:
        return Cutover(Membership(current.epoch + 1, following, wanted))
    return Cutover(None, in_order_of_weight(missing))
