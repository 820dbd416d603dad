"""A line of small bars: how high something stood over time."""

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta

WIDTH = 40
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN = "_.-=+*#@"


def can_draw() -> bool:
    """Whether standard error takes the bars; else plain characters stand for them."""
    try:
        _BARS.encode(getattr(sys.stderr, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def sparkline(points: Sequence[tuple[datetime, int]], *, width: int = WIDTH, plain: bool = False) -> str:
    """A bar for each slice of the time from the first point to the last, as high as what was reached in it.

    Heights are whole numbers of any size: no float comes near them. Raises ValueError for no points.

    >>> at = lambda second: datetime(2026, 1, 1, 0, 0, second)
    >>> sparkline([(at(0), 0), (at(1), 10), (at(4), 100)], width=5), sparkline([(at(0), 7)], width=2)
    ('▁▁▁▁█', '██')
    >>> sparkline([(at(0), -(10**400)), (at(4), 10**400)], width=3, plain=True)
    '__@'
    """
    if not points:
        raise ValueError("nothing was reached")
    bars = _PLAIN if plain else _BARS
    heights = [height for _, height in points]
    low, high = min(heights), max(heights)
    begun, span = points[0][0], points[-1][0] - points[0][0]
    line, index = [], 0
    for slot in range(1, width + 1):
        while index + 1 < len(points) and _within(points[index + 1][0] - begun, span, slot, width):
            index += 1
        level = (heights[index] - low) * (len(bars) - 1) // (high - low) if high > low else len(bars) - 1
        line.append(bars[level])
    return "".join(line)


def _within(passed: timedelta, span: timedelta, slot: int, width: int) -> bool:
    return slot == width or passed * width <= span * slot
