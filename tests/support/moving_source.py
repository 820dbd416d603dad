"""A source in memory that cuts its pages elsewhere at each fetch, and certifies when it likes; what it says is true."""

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from gapless.paging.page import Page, Partition
from gapless.paging.source import Assignment, ListedPartition, Range
from gapless.progress import Bound, Certificate, Domain, IntegerDomain

Events = Sequence[tuple[str, int]]
LARGEST_PAGE = 4


class MovingSource:
    """`universe` is partition -> (id, position) in order. Everything else is drawn, by the seed, at each fetch."""

    scope = "scripted"
    range = Range()

    def __init__(self, universe: Mapping[str, Events], seed: int) -> None:
        self.universe = universe
        self.draw = random.Random(seed)
        self.fetched = 0

    @property
    def domain(self) -> Domain:
        return IntegerDomain()

    def identity(self) -> Mapping[str, object]:
        return {"type": "moving"}

    def basis(self) -> str:
        return "certified"

    def restart_token(self, bound: Bound) -> str | None:
        return None

    def open(self) -> "MovingSession":
        return MovingSession(self)


class MovingSession:
    """An open MovingSource. A page token is where the page begins, and a number, so that none comes twice."""

    def __init__(self, source: MovingSource) -> None:
        self._source = source

    def assignment(self) -> Assignment:
        return Assignment([ListedPartition(Partition(name, {})) for name in self._source.universe])

    def generation(self) -> str:
        return ""

    def fetch(self, partition: Partition, page_token: str | None) -> Page:
        source = self._source
        events = source.universe[partition.id]
        start = 0 if page_token is None else int(page_token.partition(".")[0])
        stop = min(len(events), start + source.draw.randint(0, LARGEST_PAGE))
        source.fetched += 1
        end = stop == len(events) and source.draw.random() < 0.7
        page = events[start:stop]
        return Page(
            start_token=page_token,
            next_token=None if end else f"{stop}.{source.fetched}",
            end=end,
            ids=[event for event, _ in page],
            positions=[position for _, position in page],
            rows=[{"id": event} for event, _ in page],
            certificate=self._certificate(events, stop, end),
        )

    def _certificate(self, events: Events, stop: int, end: bool) -> Certificate | None:
        if end:
            return Certificate(Bound.through(10**6), "moving")
        if self._source.draw.random() < 0.4 or stop == 0:
            return None
        positions = [position for _, position in events]
        if stop == len(events):
            return Certificate(Bound.through(positions[-1]), "moving")
        # Everything below the next event is there; through its last position only where no tie is still to come. Where a page
        # ends says which of the two, so that a certificate never goes back.
        if positions[stop - 1] == positions[stop] or stop % 2:
            return Certificate(Bound.before(positions[stop]), "moving")
        return Certificate(Bound.through(positions[stop - 1]), "moving")

    def close(self) -> None:
        """Nothing is open."""


def universe_of(draw: random.Random, partitions: int, events: int) -> dict[str, list[tuple[str, int]]]:
    """Events with ties."""
    made: dict[str, list[tuple[str, int]]] = {}
    for n in range(partitions):
        position, made[f"p{n}"] = 0, []
        for k in range(events):
            position += draw.choice((0, 1, 1, 3))
            made[f"p{n}"].append((f"p{n}-{k}", position))
    return made


def through(events: Events, bound: Bound) -> list[str]:
    """The events inside the bound."""
    cut = bound.position if bound.inclusive else bound.position - 1  # type: ignore[operator]
    return [event for event, _ in events[: bisect_right([position for _, position in events], cut)]]
