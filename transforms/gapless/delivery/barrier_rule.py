"""Whose end has to come before what they left is settled: the rule, without a database.

A transaction that was given an id holds a lock on the sequence until it ends. Prepared for a two-phase commit it goes on
without its session: so when a session's holder vanishes, each prepared transaction that appeared since may be it, and
its end is awaited too. A prepared one is never prepared again: when it vanishes, it has ended, and so the waiting itself
ends however many others are prepared meanwhile.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holder:
    """A transaction that holds the sequence's lock: its virtual id, and its session's pid, None where it is prepared."""

    transaction: str
    pid: int | None

    @property
    def prepared(self) -> bool:
        return self.pid is None


@dataclass(frozen=True, slots=True)
class Awaited:
    """The holders whose end is awaited, and every prepared transaction met since the waiting began.

    >>> writer, other = Holder("3/17", 4711), Holder("4/9", 4712)
    >>> begun = Awaited.at_first({writer})
    >>> begun.later({writer, other}).holders == {writer}          # who came later is not waited for
    True
    >>> renamed = Holder("-1/740", None)
    >>> begun.later({renamed}).holders == {renamed}               # the writer may have become this one
    True
    >>> begun.later({renamed}).later(set()).over
    True
    """

    holders: frozenset[Holder]
    prepared: frozenset[Holder]

    @classmethod
    def at_first(cls, seen: Iterable[Holder]) -> "Awaited":
        """Everyone who held the lock in a statement that began after the last given-out id was read."""
        holders = frozenset(seen)
        return cls(holders, _prepared(holders))

    def later(self, seen: Set[Holder]) -> "Awaited":
        """After a later look at all holders."""
        left = self.holders & seen
        prepared = _prepared(seen)
        if any(not vanished.prepared for vanished in self.holders - seen):
            left |= prepared - self.prepared
        return Awaited(left, self.prepared | prepared)

    @property
    def over(self) -> bool:
        """Nobody is awaited any more: a statement that begins from now on sees whatever they left."""
        return not self.holders


def _prepared(holders: Iterable[Holder]) -> frozenset[Holder]:
    return frozenset(holder for holder in holders if holder.prepared)
