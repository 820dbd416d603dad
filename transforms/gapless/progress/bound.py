"""A bound is a cut in an ordered domain: everything below a position, or everything up to and including it.

    before(p) < through(p),  and for q > p:  through(p) < before(q)

Positions are integers, text, or tuples of these; a bound never converts between them.
"""

from dataclasses import dataclass
from typing import TypeAlias

from gapless.errors import NotComparable, PositionError

Position: TypeAlias = int | str | tuple["Position", ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """A cut at `position`: inclusive, everything <= position; else everything < position.

    Raises PositionError where `position` is no position (bool, float, None, a list) or `inclusive` is no bool.

    >>> Bound.before(10) < Bound.through(10) < Bound.before(11)
    True
    >>> min(Bound.through(10), Bound.before(10))
    Bound.before(10)
    """

    position: Position
    inclusive: bool

    def __post_init__(self) -> None:
        require_position(self.position)
        if type(self.inclusive) is not bool:
            raise PositionError(f"a bound's endpoint is true or false, not {self.inclusive!r}")

    @classmethod
    def before(cls, position: Position) -> "Bound":
        """The cut below `position`: everything < position.

        >>> Bound.before(10).covers(10)
        False
        """
        return cls(position, False)

    @classmethod
    def through(cls, position: Position) -> "Bound":
        """The cut above `position`: everything <= position.

        >>> Bound.through(10).covers(10)
        True
        """
        return cls(position, True)

    def covers(self, position: Position) -> bool:
        """Whether `position` lies inside the cut. Raises NotComparable for a position of another kind.

        Law: a <= b and a.covers(p) imply b.covers(p).

        >>> Bound.before(10).covers(9), Bound.before(10).covers(11)
        (True, False)
        """
        mine = self.position
        require_alike(mine, position)
        return position < mine or (self.inclusive and position == mine)  # type: ignore[operator]

    def __lt__(self, other: "Bound") -> bool:
        if other.__class__ is not Bound:
            return NotImplemented
        mine, theirs = self.position, other.position
        require_alike(mine, theirs)
        if mine == theirs:
            return other.inclusive and not self.inclusive
        return mine < theirs  # type: ignore[operator]

    def __le__(self, other: "Bound") -> bool:
        if other.__class__ is not Bound:
            return NotImplemented
        return not other < self

    def __gt__(self, other: "Bound") -> bool:
        if other.__class__ is not Bound:
            return NotImplemented
        return other < self

    def __ge__(self, other: "Bound") -> bool:
        if other.__class__ is not Bound:
            return NotImplemented
        return not self < other

    def __repr__(self) -> str:
        return f"Bound.{'through' if self.inclusive else 'before'}({self.position!r})"


def highest(first: Bound | None, second: Bound | None) -> Bound | None:
    """The higher of two claims; None claims nothing. Raises NotComparable.

    Law: associative, commutative, idempotent; None is neutral.

    >>> highest(Bound.before(10), Bound.through(10)), highest(None, Bound.before(1))
    (Bound.through(10), Bound.before(1))
    """
    if first is None:
        return second
    if second is None or second <= first:
        return first
    return second


def require_position(value: object) -> None:
    """Raises PositionError unless `value` is an int, text or a non-empty tuple of positions."""
    kind = value.__class__
    if kind is int or kind is str:
        return
    if isinstance(value, tuple) and kind is tuple and value:
        for item in value:
            require_position(item)
        return
    raise PositionError(
        f"{value!r} is no position: positions are integers, text, or tuples of these, never {kind.__name__}"
    )


def alike(first: Position, second: Position) -> bool:
    """Whether both positions have the same type, item by item in tuples: only then do they share an order.

    >>> alike((1, "a"), (2, "b")), alike((1, "a"), (2, 3)), alike(9, "10")
    (True, False, False)
    """
    if first.__class__ is not second.__class__:
        return False
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(alike, first, second))
    return True


def require_alike(first: Position, second: Position) -> None:
    """Raises NotComparable unless the positions share an order."""
    if first.__class__ is second.__class__ and first.__class__ is not tuple:
        return
    if not alike(first, second):
        raise NotComparable(
            f"{first!r} ({type(first).__name__}) and {second!r} ({type(second).__name__}) share no order",
            remedy="positions compare only within one domain: read both through the same one",
        )
