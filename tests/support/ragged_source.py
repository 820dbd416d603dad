"""A source whose pages are cut anew at each fetch: a token is how many events lie before it. Its certificates lag at random."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from gapless.paging.page import Page, Partition
from gapless.paging.source import Assignment, ListedPartition, Range
from gapless.progress import Bound, Certificate, Domain, IntegerDomain

MOST_EVENTS = 4
"""On a page."""


class RaggedSource:
    """Partition -> its events in order, as in `scripted_universe`. The last page certifies `end`."""

    def __init__(self, events: Mapping[str, Sequence[Mapping[str, Any]]], seed: int = 0) -> None:
        self._events = {name: list(each) for name, each in events.items()}
        self._random = Random(seed)
        self.end = Bound.through(max(each[-1]["position"] for each in self._events.values()))

    scope = "ragged"

    @property
    def domain(self) -> Domain:
        return IntegerDomain()

    @property
    def range(self) -> Range:
        return Range()

    def identity(self) -> Mapping[str, object]:
        return {"type": "ragged"}

    def basis(self) -> str:
        return "certified"

    def restart_token(self, bound: Bound) -> str | None:
        return None

    def open(self) -> "RaggedSource":
        return self

    def close(self) -> None:
        """Nothing is open."""

    def assignment(self) -> Assignment:
        return Assignment([ListedPartition(Partition(name, {})) for name in self._events], "")

    def generation(self) -> str:
        return ""

    def fetch(self, partition: Partition, page_token: str | None) -> Page:
        there = self._events[partition.id]
        begun = int(page_token or 0)
        stop = min(len(there), begun + self._random.randint(0 if begun else 1, MOST_EVENTS))
        page = there[begun:stop]
        ends = stop == len(there)
        following = None if ends else str(stop)
        if following == page_token:
            # Nothing new at the same token would be a circle.
            return self.fetch(partition, page_token)
        certified = self.end if ends else Bound.before(there[self._random.randint(0, stop)]["position"])
        if self._random.random() < 0.3 and not ends:
            certified = Bound.before(there[stop]["position"])
        return Page(
            start_token=page_token,
            next_token=following,
            end=ends,
            ids=[event["id"] for event in page],
            positions=[event["position"] for event in page],
            rows=page,
            certificate=Certificate(certified, "page"),
        )
