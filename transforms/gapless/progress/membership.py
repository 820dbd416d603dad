"""A membership epoch is a frozen set of partitions under one routing generation; a cutover leads to the next, by proofs.

Entering and leaving are separate. A newcomer enters when it is complete through the published frontier from an explicit
start. A leaver leaves sealed, drained through its seal, with its successors accounted for. All of this is decided here
from what is passed in; where the answer is not OK, the old epoch stands.
"""

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from enum import Enum

from gapless.progress.blockers import MemberBlocker
from gapless.progress.bound import Bound, Position, require_alike


class MembershipCode(str, Enum):
    """What a step of membership came to.

    >>> MembershipCode("GATED") is MembershipCode.GATED
    True
    """

    OK = "OK"
    NOT_DRAINED = "NOT_DRAINED"
    """The member's own bound is below its seal: what lies between has not been promoted."""
    NO_SUCCESSOR = "NO_SUCCESSOR"
    """Who carries on is unknown: an end with none is stated, never inferred."""
    GATED = "GATED"
    """A parent is not sealed yet."""
    OVERLAPS_UNSEALED = "OVERLAPS_UNSEALED"
    """Another partition that has not ended still serves part of the newcomer's range."""
    NO_INHERITED_TOKEN = "NO_INHERITED_TOKEN"  # noqa: S105 - a page token's absence, no secret
    """No explicit start is known, so that nobody knows what lies before it."""
    FLOOR_BELOW_PUBLISHED = "FLOOR_BELOW_PUBLISHED"
    """Complete through less than what has been published already."""
    UNSEALED_MEMBER = "UNSEALED_MEMBER"
    """A partition would leave without a certified end, or has not been read through it."""
    MISSING_SUCCESSOR = "MISSING_SUCCESSOR"
    """A leaver's successors are unknown, or neither enter nor have left in order themselves."""
    NOT_JOINED = "NOT_JOINED"
    """A newcomer has not been proved complete through the published frontier."""
    HANDOFF_UNPROVEN = "HANDOFF_UNPROVEN"
    """Routing changed, and nothing proves what moved."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Membership:
    """`epoch` numbers start at 1 and never start again; `members` are partition ids.

    >>> sorted(Membership(1, "r1", frozenset({"b", "a"})).members)
    ['a', 'b']
    """

    epoch: int
    generation: str
    members: frozenset[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", frozenset(self.members))


@dataclass(frozen=True, slots=True)
class Seal:
    """A partition's certified end: it holds nothing beyond `at`. `successors`: () is an end with none, None is unknown.

    `decommissioned`: an operator's word, which needs no successors and makes the frontier asserted.

    >>> Seal(Bound.through(100), successors=("c1", "c2")).decommissioned
    False
    """

    at: Bound
    successors: tuple[str, ...] | None
    decommissioned: bool = False


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The part of the key space a partition serves: low <= key < high; None is open.

    >>> KeyRange("a", "m").high
    'm'
    """

    low: Position | None
    high: Position | None

    def overlaps(self, other: "KeyRange") -> bool:
        """Whether some key belongs to both. Raises NotComparable.

        >>> KeyRange(0, 5).overlaps(KeyRange(5, 9)), KeyRange(0, None).overlaps(KeyRange(5, 9))
        (False, True)
        """
        return _below(self.low, other.high) and _below(other.low, self.high)


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


def judge_seal(bound: Bound | None, seal: Seal) -> MembershipCode:
    """Whether a partition whose own bound is `bound` may end so.

    >>> judge_seal(Bound.before(103), Seal(Bound.through(105), ("c1",)))
    <MembershipCode.NOT_DRAINED: 'NOT_DRAINED'>
    """
    if bound is None or bound < seal.at:
        return MembershipCode.NOT_DRAINED
    if seal.successors is None and not seal.decommissioned:
        return MembershipCode.NO_SUCCESSOR
    return MembershipCode.OK


def judge_join(
    floor: Bound | None,
    start_token: str | None,
    *,
    published: Bound | None,
    parents: Collection[str] = (),
    sealed: Container[str] = frozenset(),
    key_range: KeyRange | None = None,
    unsealed_ranges: Collection[KeyRange] = (),
) -> MembershipCode:
    """Whether a newcomer counts as complete through `floor`, read from `start_token` on.

    `sealed` are the partitions that ended in order; `unsealed_ranges` what those that have not still serve.

    >>> judge_join(Bound.through(100), "c1", published=None, parents=["s0"])
    <MembershipCode.GATED: 'GATED'>
    >>> judge_join(Bound.through(100), "c1", published=Bound.through(100), parents=["s0"], sealed={"s0"})
    <MembershipCode.OK: 'OK'>
    """
    if any(parent not in sealed for parent in parents):
        return MembershipCode.GATED
    if key_range is not None and any(key_range.overlaps(other) for other in unsealed_ranges):
        return MembershipCode.OVERLAPS_UNSEALED
    if start_token is None:
        return MembershipCode.NO_INHERITED_TOKEN
    if not reaches(floor, published):
        return MembershipCode.FLOOR_BELOW_PUBLISHED
    return MembershipCode.OK


def cutover(
    current: Membership,
    listed: Collection[str],
    *,
    bounds: Mapping[str, Bound | None],
    seals: Mapping[str, Seal],
    departed: Container[str] = frozenset(),
    published: Bound | None = None,
    generation: str | None = None,
    routing_proven: bool = False,
) -> Cutover:
    """The next membership epoch, made of exactly `listed`, or all that is missing for it.

    `bounds` holds the members, and the candidates that are read from an explicit start: whoever is in it must be
    listed or leave in order, whoever is listed must be in it. `departed` left in order at an earlier cutover. Another
    `generation` than the current one needs `routing_proven`.

    >>> was = Membership(1, "", frozenset({"p0", "p1"}))
    >>> bounds = {"p0": Bound.through(100), "p1": Bound.through(20)}
    >>> cutover(was, ["p0"], bounds=bounds, seals={}).missing
    (MemberBlocker(code='unsealed_member', partition='p1', detail='it is not listed, and nobody stated where it ends'),)
    >>> cutover(was, ["p0"], bounds=bounds, seals={"p1": Seal(Bound.through(20), ())}).membership.epoch
    2
    """
    entering = frozenset(listed)
    missing: list[MemberBlocker] = []
    leaving = sorted((current.members | bounds.keys()) - entering)
    for partition in leaving:
        lack = _lack_of_end(bounds.get(partition), seals.get(partition))
        if lack is not None:
            missing.append(MemberBlocker("unsealed_member", partition, lack))
    gone_in_order = _accounted_for(entering, departed, bounds, seals)
    for partition in leaving:
        lack = _lack_of_successor(partition, seals.get(partition), gone_in_order | entering, departed)
        if lack is not None:
            missing.append(MemberBlocker("missing_successor", partition, lack))
    for partition in sorted(entering - current.members):
        lack = _lack_of_join(partition, bounds, seals, published)
        if lack is not None:
            missing.append(MemberBlocker("not_joined", partition, lack))
    following = current.generation if generation is None else generation
    if following != current.generation and not routing_proven:
        detail = (
            f"routing generation {following!r} follows {current.generation!r} without a proof of what moved"
        )
        missing.append(MemberBlocker("handoff_unproven", "", detail))
    if missing:
        return Cutover(None, tuple(missing))
    return Cutover(Membership(current.epoch + 1, following, entering))


def reaches(bound: Bound | None, published: Bound | None) -> bool:
    """Whether a claim through `bound` includes all that is published; it always does where nothing is.

    >>> reaches(Bound.before(10), Bound.through(10)), reaches(None, None)
    (False, True)
    """
    return published is None or (bound is not None and bound >= published)


def _lack_of_end(bound: Bound | None, seal: Seal | None) -> str | None:
    if seal is None:
        return "it is not listed, and nobody stated where it ends"
    if judge_seal(bound, seal) is MembershipCode.NOT_DRAINED:
        return f"it ends at {seal.at!r}, and has been promoted through {bound!r} only"
    return None


def _accounted_for(
    entering: frozenset[str],
    departed: Container[str],
    bounds: Mapping[str, Bound | None],
    seals: Mapping[str, Seal],
) -> frozenset[str]:
    """Who has ended in order with everybody who carries on from it accounted for, at any depth.

    Partitions that name each other as successors never get in: nobody carries on from them."""
    pending = {name: seal for name, seal in seals.items() if _lack_of_end(bounds.get(name), seal) is None}
    accounted: frozenset[str] = frozenset()
    while True:
        more = {
            name
            for name, seal in pending.items()
            if _lack_of_successor(name, seal, accounted | entering, departed) is None
        }
        if not more:
            return accounted
        accounted |= more
        pending = {name: seal for name, seal in pending.items() if name not in more}


def _lack_of_successor(
    partition: str, seal: Seal | None, present: frozenset[str], departed: Container[str]
) -> str | None:
    if seal is None or seal.decommissioned:
        return None
    if seal.successors is None:
        return f"the successors of {partition} are unknown"
    for successor in seal.successors:
        if successor not in present and successor not in departed:
            return f"{successor}, which carries on from it, neither enters nor has left in order"
    return None


def _lack_of_join(
    partition: str,
    bounds: Mapping[str, Bound | None],
    seals: Mapping[str, Seal],
    published: Bound | None,
) -> str | None:
    if partition not in bounds:
        return "it has not been read from an explicit start"
    if partition in seals:
        return "it has ended: a partition that returns is read as a new candidate"
    if not reaches(bounds[partition], published):
        return f"it is complete through {bounds[partition]!r}, the published frontier is {published!r}"
    return None


def _below(low: Position | None, high: Position | None) -> bool:
    if low is None or high is None:
        return True
    require_alike(low, high)
    return low < high  # type: ignore[operator]
