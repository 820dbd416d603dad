"""How long the next pass is, and how many readers it has: pure, from what the passes before it measured.

A pass costs something by itself (Beam builds its workers anew), so slices begin small, for every partition and with it the
frontier to move early, and grow until the passes cost next to nothing.
"""

from dataclasses import dataclass, replace

from gapless.settling.worker import Slice, Tally

FIRST_PAGES = 2
FIRST_SECONDS = 1.0
SHORTEST_SLICE = 0.25
LONGEST_PASS = 30.0
COST_SHARE = 25
"""A pass is planned to be this many times as long as what it costs by itself."""
GROWTH = 2.0
FAST_PAGE = 0.01
"""A page that is fetched in so many seconds is mostly this process's own work: more readers would not help."""
FAST_LIST = 0.025
"""The same for the list of partitions, with a connection made for it."""
PATIENCE = 0.5
LONGEST_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Pace:
    """One pass: `seconds` it should take, `workers` that read at once, `patience` with one slow page."""

    seconds: float
    workers: int
    patience: float = PATIENCE
    pages: int | None = None

    def limit(self, chains: int, feeds: int) -> Slice:
        """The slice of each of `chains` chains, where the feeds of `feeds` of them are kept from pass to pass."""
        share = self.seconds * self.workers / max(1, chains)
        return Slice(
            pages=self.pages,
            seconds=max(SHORTEST_SLICE, share),
            patience=max(self.patience, 0.0),
            goes_on=chains <= feeds,
        )


def workers_for(fetching: float, pages: int, most: int) -> int:
    """How many readers serve, where `pages` pages took `fetching` seconds to fetch: one, or as many as may be.

    Where pages come fast, Python's work on them is what takes time, and threads would only take turns at it. Where the source
    takes its time, those that wait cost nothing.

    >>> workers_for(fetching=5.0, pages=100, most=8)
    8
    >>> workers_for(fetching=0.2, pages=100, most=8)
    1
    """
    return 1 if pages and fetching / pages < FAST_PAGE else most


def first_pace(list_seconds: float, most: int) -> Pace:
    """The first pass reads a little of everything. How long the source took to list its partitions tells how long it waits."""
    workers = 1 if list_seconds < FAST_LIST else most
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
        seconds=seconds,
        workers=workers_for(tally.fetching, tally.pages, most),
        patience=PATIENCE,
    )
