"""A frontier is the minimum of the members' certified bounds in one membership epoch, or the reason why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import TypeAlias

from gapless.progress.blockers import MemberBlocker
from gapless.progress.bound import Bound, Position, alike
from gapless.progress.membership import Membership

_SMALLEST_BATCH = 1024


@dataclass(frozen=True, slots=True)
class Scalar:
    """Everything inside `bound` has a terminal outcome in every member. `capped`: only the member list holds it there.

    >>> Scalar(Bound.through(90)).bound
    Bound.through(90)
    """

    bound: Bound
    capped: bool = False


@dataclass(frozen=True, slots=True)
class Vector:
    """The members' bounds share no order: each stands for its own member, and there is no scalar.

    >>> sorted(Vector({"a": Bound.before(200), "b": Bound.through("x")}).bounds)
    ['a', 'b']
    """

    bounds: Mapping[str, Bound]


@dataclass(frozen=True, slots=True)
class Withheld:
    """No claim, and what is missing for one.

    >>> Withheld((MemberBlocker("no_bound", "a"),)).blockers[0].partition
    'a'
    """

    blockers: tuple[MemberBlocker, ...]


FrontierValue: TypeAlias = Scalar | Vector | Withheld


class Frontier:
    """The minimum over the full membership, in memory. Bounds only rise.

    `axes` says what a member's bound is measured on (domain, routing generation); members on different axes give a
    vector. `cap` is how far the member list itself is certified, None where it is not.

    A move of a member costs O(1); the minimum is repaired when it is asked for, O(log members) amortised for each
    member that has left the bottom since.

    >>> frontier = Frontier(Membership(1, "", frozenset({"a", "b"})))
    >>> frontier.advance("a", Bound.through(120)), frontier.minimum()
    (True, None)
    >>> frontier.advance("b", Bound.through(90)), frontier.advance("b", Bound.through(80)), frontier.minimum()
    (True, False, Bound.through(90))
    """

    __slots__ = (
        *("_bounds", "_cap", "_like", "_lowest", "_membership", "_missing", "_no_ops"),
        *("_repaired", "_sorted", "_sorted_next", "_unlike"),
    )

    def __init__(
        self, membership: Membership, axes: Mapping[str, str] | None = None, cap: Bound | None = None
    ) -> None:
        self._membership = membership
        self._bounds: dict[str, Bound | None] = dict.fromkeys(sorted(membership.members))
        self._missing = len(self._bounds)
        self._unlike = len({(axes or {}).get(name, "") for name in membership.members}) > 1
        self._like: Position | None = None
        self._cap = cap
        self._no_ops = 0
        # One entry a member. Its bound may be out of date, but then only too low: `_sorted` ascending from
        # `_sorted_next` on, and a heap of those brought up to date since. `_lowest` holds the frontier, until it moves.
        self._lowest: str | None = None
        self._sorted: list[_Entry] | None = None
        self._sorted_next = 0
        self._repaired: list[_Entry] = []

    @property
    def membership(self) -> Membership:
        """Whose minimum this is.

        >>> Frontier(Membership(4, "", frozenset("a"))).membership.epoch
        4
        """
        return self._membership

    @property
    def no_ops(self) -> int:
        """How many bounds came late: not above the one already known, and so without effect.

        >>> frontier = Frontier(Membership(1, "", frozenset("a")))
        >>> _ = frontier.advance("a", Bound.through(90)), frontier.advance("a", Bound.through(90)); frontier.no_ops
        1
        """
        return self._no_ops

    def advance(self, partition: str, bound: Bound) -> bool:
        """Raise a member's bound; False (and counted) where it is not above the known one.

        Raises KeyError for a partition that is no member, NotComparable where it changes what its bound is made of.

        Law: order and repetition of advances do not matter; no advance lowers a bound or the minimum.

        >>> Frontier(Membership(1, "", frozenset("a"))).advance("a", Bound.through(90))
        True
        """
        known = self._bounds[partition]
        if known is None:
            self._enter(partition, bound)
            return True
        position, before = bound.position, known.position
        if position.__class__ is before.__class__ and position.__class__ is not tuple:
            moved = position > before or (  # type: ignore[operator]
                position == before and bound.inclusive and not known.inclusive
            )
        else:
            moved = known < bound
        if moved:
            self._bounds[partition] = bound
            if partition == self._lowest:
                self._lowest = None
        else:
            self._no_ops += 1
        return moved

    def raise_cap(self, cap: Bound) -> bool:
        """The member list is certified further now; False (and counted) where it was already.

        >>> frontier = Frontier(Membership(1, "", frozenset("a")), cap=Bound.before(40))
        >>> frontier.raise_cap(Bound.before(30)), frontier.raise_cap(Bound.before(50))
        (False, True)
        """
        if self._cap is not None and cap <= self._cap:
            self._no_ops += 1
            return False
        self._cap = cap
        return True

    def minimum(self) -> Bound | None:
        """The lowest of the members' bounds and the cap; None where there is no scalar to claim.

        >>> Frontier(Membership(1, "", frozenset())).minimum() is None
        True
        """
        lowest = self._lowest_bound()
        if lowest is None or self._cap is None:
            return lowest
        return min(lowest, self._cap)

    def withheld(self) -> tuple[str, ...]:
        """The members that have no bound yet, by name. Law: there is a minimum or a vector only where there are none.

        >>> Frontier(Membership(1, "", frozenset("ba"))).withheld()
        ('a', 'b')
        """
        if not self._missing:
            return ()
        return tuple(name for name, bound in self._bounds.items() if bound is None)

    def vector(self) -> dict[str, Bound | None]:
        """Every member's own bound, by name.

        >>> Frontier(Membership(1, "", frozenset("ba"))).vector()
        {'a': None, 'b': None}
        """
        return dict(self._bounds)

    def value(self) -> FrontierValue:
        """What can be claimed now.

        >>> Frontier(Membership(1, "", frozenset({"a"}))).value()
        Withheld(blockers=(MemberBlocker(code='no_bound', partition='a', detail=''),))
        """
        if not self._bounds:
            return Withheld(
                (MemberBlocker("member_list_unproven", "", "the membership epoch has no members"),)
            )
        if self._missing:
            return Withheld(tuple(MemberBlocker("no_bound", name) for name in self.withheld()))
        lowest = self._lowest_bound()
        if lowest is None:
            return Vector({name: bound for name, bound in self._bounds.items() if bound is not None})
        if self._cap is not None and self._cap < lowest:
            return Scalar(self._cap, capped=True)
        return Scalar(lowest)

    def _enter(self, partition: str, bound: Bound) -> None:
        if self._like is None:
            self._like = bound.position
        elif not self._unlike:
            self._unlike = not alike(self._like, bound.position)
        self._bounds[partition] = bound
        self._missing -= 1

    def _lowest_bound(self) -> Bound | None:
        if self._lowest is not None:
            return self._bounds[self._lowest]
        if self._missing or self._unlike or not self._bounds:
            return None
        if self._sorted is None:
            self._sorted = sorted(
                (bound.position, bound.inclusive, name, bound)
                for name, bound in self._bounds.items()
                if bound is not None
            )
        return self._repair(self._sorted, self._repaired)

    def _repair(self, ordered: "list[_Entry]", repaired: "list[_Entry]") -> Bound:
        """Bring entries up to date from the lowest on, until the lowest is."""
        bounds = self._bounds
        while True:
            from_sorted = self._sorted_next < len(ordered)
            if from_sorted and repaired:
                from_sorted = ordered[self._sorted_next] < repaired[0]
            _, _, name, known = ordered[self._sorted_next] if from_sorted else repaired[0]
            bound = bounds[name]
            if bound is known:
                self._lowest = name
                return known
            if bound is None:
                raise AssertionError("a bound is never taken back")
            entry = (bound.position, bound.inclusive, name, bound)
            if not from_sorted:
                heapreplace(repaired, entry)
                continue
            self._sorted_next += 1
            heappush(repaired, entry)
            if len(repaired) > max(_SMALLEST_BATCH, (len(ordered) - self._sorted_next) >> 2):
                self._merge(ordered, repaired)

    def _merge(self, ordered: "list[_Entry]", repaired: "list[_Entry]") -> None:
        """Sort the repaired entries back in: seldom, since there is one only for each member that left the bottom."""
        del ordered[: self._sorted_next]
        self._sorted_next = 0
        repaired.sort()
        above_all = not ordered or ordered[-1] < repaired[0]
        ordered += repaired
        repaired.clear()
        if not above_all:
            ordered.sort()


_Entry: TypeAlias = tuple[Position, bool, str, Bound]
"""Compares by bound, then by name, and never further."""
