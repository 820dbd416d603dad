"""Long lists as parameters: split, since a statement takes only so many."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

PER_STATEMENT = 5000
"""SQLite takes 32,766 parameters in one statement, PostgreSQL 65,535."""


def batches(items: Sequence[T], size: int = PER_STATEMENT) -> Iterator[Sequence[T]]:
    """`items` in order, at most `size` at a time.

    >>> [list(some) for some in batches([1, 2, 3], 2)], list(batches([]))
    ([[1, 2], [3]], [])
    """
    for start in range(0, len(items), size):
        yield items[start : start + size]
