"""Which events of an ordered chain are new, known in constant memory: by the highest position met, and the
ids there."""

from collections.abc import Sequence
from itertools import islice

from gapless.progress import Position

DEFAULT_LIMIT = 100_000


class Novelty:
    """The highest position a read has met and the ids met at it. `limit` is how many of these are remembered.

    Where more events than that share one position, further ones there do not count as new. Nothing is lost
    by it: it only means that they excuse no repeated page token."""

    __slots__ = ("_ids", "_limit", "highest")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.highest: Position | None = None
        self._ids: set[str] = set()
        self._limit = limit

    def knows(self, event_id: str, position: Position) -> bool:
        """Whether this very event, at the highest position so far, was met."""
        return position == self.highest and event_id in self._ids

    def take(self, ids: Sequence[str], positions: Sequence[Position]) -> bool:
        """Take in a page's events, in any order; whether one of them is new."""
        if not positions:
            return False
        top, highest = max(positions), self.highest
        if highest is not None and top < highest:  # type: ignore[operator]
            return False
        if top != highest:
            self.highest, self._ids = top, set()
        at_top = {one for one, position in zip(ids, positions, strict=True) if position == top} - self._ids
        room = self._limit - len(self._ids)
        self._ids.update(islice(at_top, max(room, 0)))
        return top != highest or (bool(at_top) and room > 0)
