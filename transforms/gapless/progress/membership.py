"""A membership epoch is a frozen set of partitions under one routing generation; a cutover leads to the next, by proofs.

Entering and leaving are separate. A newcomer enters when it is complete through the published frontier from an explicit
start. A leaver leaves sealed, drained through its seal, with its successors accounted for. All of this is decided here
from what is passed in; nothing is changed where the answer is not OK.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from gapless.progress.bound import Bound


class MembershipCode(str, Enum):
    """What a step of membership came to."""

    OK = "OK"
    NOT_DRAINED = "NOT_DRAINED"
    """The member's own bound is below its seal: what lies between has not been promoted."""
    NO_SUCCESSOR = "NO_SUCCESSOR"
    """Who carries on is unknown: an end with none is stated, never inferred."""
    GATED = "GATED"
    """A parent is not sealed yet."""
    OVERLAPS_UNSEALED = "OVERLAPS_UNSEALED"
    """Another partition that has not ended still serves part of the newcomer's range."""
    NO_INHERITED_TOKEN = "NO_INHERITED_TOKEN"
    """No explicit start is known, so that what came before it cannot be known to be read."""
    FLOOR_BELOW_PUBLISHED = "FLOOR_BELOW_PUBLISHED"
    """Complete through less than what has been published already."""
    UNSEALED_MEMBER = "UNSEALED_MEMBER"
    MISSING_SUCCESSOR = "MISSING_SUCCESSOR"
    NOT_JOINED = "NOT_JOINED"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Membership:
    """`epoch` numbers start at 1 and never start again; `members` are partition ids.

    >>> Membership(1, "r1", frozenset({"a"})).members
    frozenset({'a'})
    """

    epoch: int
    generation: str
    members: frozenset[str]

    def __post_init__(self) -> None:
        if not isinstance(self.members, frozenset):
            object.__setattr__(self, "members", frozenset(self.members))
