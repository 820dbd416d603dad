"""A membership epoch is a frozen set of partitions under one routing generation; a cutover leads to the next, by proofs.

Entering and leaving are separate. A newcomer enters when it is complete through the published frontier from an explicit
start. A leaver leaves sealed, drained through its seal, with its successors accounted for. What is decided of one partition
stands here; how a list is reached, as far as is proved, in `cutover_step`.
"""

from collections.abc import Collection, Container
from dataclasses import dataclass
from enum import Enum

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


def reaches(bound: Bound | None, published: Bound | None) -> bool:
    """Whether a claim through `bound` includes all that is published; it always does where nothing is.

    >>> reaches(Bound.before(10), Bound.through(10)), reaches(None, None)
    (False, True)
    """
    return published is None or (bound is not None and bound >= published)


def _below(low: Position | None, high: Position | None) -> bool:
    if low is None or high is None:
        return True
    require_alike(low, high)
    return low < high  # type: ignore[operator]
