"""Pace is when settled pages are promoted: at once where that costs little, together where they come fast."""

from typing import Final

from gapless.tracking.chain_tracking import ChainTracking

ENOUGH_PAGES: Final = 100
"""So many settled pages are promoted, whatever else is open."""
OLD_SECONDS: Final = 1.0
"""Settled pages wait no longer than this for others to be promoted with."""
REST: Final = 20
"""Promoting takes at most one part in so many of the time, but for what is enough or old."""


class Pace:
    """Of one chain; `now` is monotonic seconds.

    >>> Pace().rests_until
    0.0
    """

    def __init__(self) -> None:
        self._enough = ENOUGH_PAGES
        self._since: float | None = None
        self.rests_until = 0.0

    def due(self, tracking: ChainTracking, now: float) -> bool:
        """Whether to promote now what is settled; the rest can wait until the end of the bundle."""
        if not tracking.head_is_settled():
            self._since = None
            return tracking.open_pages == 0 and tracking.stop_due() is not None
        if self._since is None:
            self._since = now
        if tracking.settled_pages >= self._enough or now - self._since >= OLD_SECONDS:
            return True
        return tracking.settled_pages == tracking.open_pages and now >= self.rests_until

    def promoted(self, tracking: ChainTracking, began: float, ended: float) -> None:
        """What could be promoted is; what is settled beyond a gap is no reason to try again."""
        self._enough = tracking.settled_pages + ENOUGH_PAGES
        self._since = None
        self.rests_until = ended + REST * (ended - began)
