"""How long the next pass is, and how many readers it has: pure, from what the passes before it measured.

A pass costs something by itself (Beam builds its workers anew), so slices begin small, for every partition and with it the
frontier to move early, and grow until the passes cost next to nothing.
"""

import math
from dataclasses import dataclass, replace

from gapless.settling.worker import Slice, Tally

FIRST_PAGES = 2
FIRST_SECONDS = 1.0
SHORTEST_SLICE = 0.25
LONGEST_PASS = 30.0
COST_SHARE = 25
"""A pass is planned to be this many times as long as what it costs by itself."""
GROWTH = 2.0
FAST_PAGE = 0.005
"""Seconds of waiting for a page below which the wait is mostly this process's own work: more readers would not help."""
PATIENCE = 0.5
LONGEST_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Pace:
    """One pass: `seconds` it should take, `workers` that read at once, `patience` with one slow page."""

    seconds: float
    workers: int
    patience: float = PATIENCE
    pages: int | None = None

    def limit(self, chains: int) -> Slice:
        """The slice of each of `chains` chains."""
        share = self.seconds * self.workers / max(1, chains)
        return Slice(pages=self.pages, seconds=max(SHORTEST_SLICE, share), patience=max(self.patience, 0.0))


def workers_for(waited: float, worked: float, pages: int, most: int) -> int:
    """How many readers keep one processor busy: those that wait cost nothing.

    >>> workers_for(waited=5.0, worked=0.5, pages=100, most=8)
    8
    >>> workers_for(waited=0.2, worked=0.2, pages=100, most=8)
    1
    >>> workers_for(waited=2.0, worked=1.0, pages=100, most=8)
    3
    """
    if pages == 0:
        return most
    if waited / pages < FAST_PAGE:
        return 1
    return max(1, min(most, math.ceil((waited + worked) / max(worked, 1e-6))))


def first_pace(list_seconds: float, most: int) -> Pace:
    """The first pass reads a little of everything. How long the source took to list its partitions tells how long it waits."""
    workers = 1 if list_seconds < 4 * FAST_PAGE else most
    return Pace(seconds=FIRST_SECONDS, workers=workers, pages=FIRST_PAGES)


def next_pace(last: Pace, wall: float, tally: Tally, most: int) -> Pace:
    """The pass after one that took `wall` seconds and did `tally` with `last.workers` readers."""
    if tally.pages == 0:
        # Nothing came: whoever is still read is slow. Wait longer for each, with as many readers as may be.
        return replace(last, workers=most, patience=min(LONGEST_PATIENCE, last.patience * 2), pages=None)
    reading = (tally.waited + tally.worked) / last.workers
    cost = min(2.0, max(0.05, wall - reading))
    grown = last.seconds * GROWTH if last.pages is None else 0.0
    seconds = min(LONGEST_PASS, max(cost * COST_SHARE, grown))
    return Pace(
        seconds=seconds, workers=workers_for(tally.waited, tally.worked, tally.pages, most), patience=PATIENCE
    )
