"""A list of partitions is sound: nobody descends from itself, and no two that are open serve the same keys.

>>> descent_fault({"a": ["b"], "b": ["a"]}, {})
'a, b and a descend from each other in a circle'
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from gapless.progress.bound import alike
from gapless.progress.membership import KeyRange


def descent_fault(
    successors: Mapping[str, Sequence[str]], parents: Mapping[str, Sequence[str]]
) -> str | None:
    """What is wrong with who descends from whom, by `successors` and by `parents` of each partition; None: nothing.

    >>> descent_fault({"s0": ["s1", "s2"]}, {"s1": ["s0"], "s2": ["s0"]}) is None
    True
    >>> descent_fault({"s0": ["s0"]}, {})
    's0 is its own successor'
    """
    children: dict[str, list[str]] = {}
    for parent, names in successors.items():
        children.setdefault(parent, []).extend(names)
    for child, names in parents.items():
        for parent in names:
            children.setdefault(parent, []).append(child)
    done: set[str] = set()
    for first in children:
        circle = _circle(first, children, done)
        if circle is not None:
            return _told(circle)
    return None


def _circle(first: str, children: Mapping[str, Sequence[str]], done: set[str]) -> list[str] | None:
    """Depth first, without recursion: a line of descent may be long."""
    path: list[str] = []
    on_path: set[str] = set()
    stack: list[tuple[str, bool]] = [(first, True)]
    while stack:
        name, enters = stack.pop()
        if not enters:
            path.pop()
            on_path.discard(name)
            done.add(name)
            continue
        if name in on_path:
            return path[path.index(name) :]
        if name in done:
            continue
        path.append(name)
        on_path.add(name)
        stack.append((name, False))
        stack.extend((child, True) for child in children.get(name, ()))
    return None


def _told(circle: Sequence[str]) -> str:
    if len(circle) == 1:
        return f"{circle[0]} is its own successor"
    return f"{', '.join(circle)} and {circle[0]} descend from each other in a circle"


def overlap_fault(ranges: Mapping[str, KeyRange]) -> str | None:
    """Two open partitions that serve the same keys, or keys of which nobody can tell; None where there are none.

    >>> overlap_fault({"a": KeyRange(0, 5), "b": KeyRange(4, 9)})
    'a and b serve the same keys'
    >>> overlap_fault({"a": KeyRange(0, 5), "b": KeyRange(5, 9)}) is None
    True
    >>> overlap_fault({"a": KeyRange("", "m"), "b": KeyRange(5, None)})
    'the keys of a and b share no order'
    """
    ends = [(name, end) for name, one in ranges.items() for end in (one.low, one.high) if end is not None]
    for (name, end), (other, following) in pairwise(ends):
        if not alike(end, following):
            return f"the keys of {name} and {other} share no order"
    from_below = [item for item in ranges.items() if item[1].low is None]
    bounded = [item for item in ranges.items() if item[1].low is not None]
    # Sorted by where they begin, ranges that overlap at all overlap next to each other: each holds a key.
    ordered = [*from_below, *sorted(bounded, key=_low)]
    for (name, one), (other, next_one) in pairwise(ordered):
        if one.overlaps(next_one):
            return f"{name} and {other} serve the same keys"
    return None


def _low(item: tuple[str, KeyRange]) -> Any:
    """Sort key of a range that does begin somewhere."""
    return item[1].low
