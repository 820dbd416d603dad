"""What was seen lately, in bounded space: old items go, a generation at a time, when new ones come."""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Recent(Generic[T]):
    """A set that holds at least the `capacity` items added last, and at most twice as many and one addition more.

    >>> recent = Recent(2)
    >>> recent.update("ab"); recent.update("cd"); recent.update("ef"); "a" in recent, "d" in recent
    (False, True)
    """

    __slots__ = ("_capacity", "_new", "_old")

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a capacity is a positive number, not {capacity}")
        self._capacity = capacity
        self._new: set[T] = set()
        self._old: set[T] = set()

    def update(self, items: Iterable[T]) -> None:
        """Add items. Law: what is among the last `capacity` items added is held.

        >>> recent = Recent(1); recent.update(["a", "b"]); "b" in recent
        True
        """
        if len(self._new) >= self._capacity:
            self._old, self._new = self._new, set()
        self._new.update(items)

    def __contains__(self, item: object) -> bool:
        return item in self._new or item in self._old

    def __len__(self) -> int:
        return len(self._new | self._old)
