"""Open pages are fetched and not promoted; receipts are the terminal outcomes of their events.

Pages are found by name and by start token, events by id in every attempt that holds them. A receipt lives as long as a
page that holds its event is open, or until that page comes.
"""

from collections.abc import Container, Iterable, Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias

from gapless.progress.bound import Position
from gapless.progress.checkpoint import PageAttempt
from gapless.progress.gaps import Gaps


class Terminal(str, Enum):
    """The two terminal outcomes. A failure that will be tried again is none.

    >>> [outcome.value for outcome in Terminal]
    ['delivered', 'dead_lettered']
    """

    DELIVERED = "delivered"
    DEAD_LETTERED = "dead_lettered"

    def __str__(self) -> str:
        return self.value


class OpenPage:
    """An open page: which of its events have a receipt, by their index."""

    __slots__ = ("dead_lettered", "page", "settled")

    def __init__(self, page: PageAttempt) -> None:
        self.page = page
        self.settled = Gaps()
        self.dead_lettered: set[int] = set()

    @property
    def terminal(self) -> bool:
        return self.settled.through == len(self.page.events)

    def settle(self, index: int, outcome: Terminal) -> bool:
        if not self.settled.complete(index):
            return False
        if outcome is Terminal.DEAD_LETTERED:
            self.dead_lettered.add(index)
        return True

    def settle_rest(self) -> int:
        """Every event without a receipt is delivered; how many these were."""
        events = len(self.page.events)
        if self.settled.through == events:
            return 0
        missing = events if not self.settled.through and self.settled.settled else self._missing()
        self.settled.complete_range(0, events)
        return missing

    def _missing(self) -> int:
        return sum(1 for _ in self.settled.open(len(self.page.events)))

    def receipt(self, index: int) -> Terminal | None:
        if index not in self.settled:
            return None
        return Terminal.DEAD_LETTERED if index in self.dead_lettered else Terminal.DELIVERED


_Place: TypeAlias = tuple[OpenPage, int]
"""An event's page and its index there."""


class Settled(NamedTuple):
    """What became of receipts: new; known already; and refused, because too many wait for a page that has not come."""

    fresh: int
    repeated: int
    refused: int


class OpenPages:
    """The open pages of one chain. `early_limit` bounds the receipts kept for events whose page has not come."""

    def __init__(self, early_limit: int) -> None:
        self._early_limit = early_limit
        self._pages: dict[str, OpenPage] = {}
        self._by_start: dict[str | None, list[OpenPage]] = {}
        self._places: dict[str, _Place] = {}
        self._more_places: dict[str, list[_Place]] = {}
        self._early: dict[str, Terminal] = {}

    def __len__(self) -> int:
        return len(self._pages)

    def __iter__(self) -> Iterator[OpenPage]:
        return iter(tuple(self._pages.values()))

    def get(self, name: str) -> OpenPage | None:
        return self._pages.get(name)

    def holds(self, event: str) -> bool:
        return event in self._places

    def starting_at(self, token: str | None) -> tuple[OpenPage, ...]:
        """The attempts of one start token, in the order in which they came."""
        return tuple(self._by_start.get(token, ()))

    def add(self, page: PageAttempt, seen: Container[tuple[str, Position]]) -> None:
        """Open a page. Events with a receipt, and those of `seen`, which were promoted before, are settled at once."""
        place = self._open(page)
        for index, event in enumerate(page.events):
            receipt = Terminal.DELIVERED if event in seen else self._receipt(event)
            if receipt is not None:
                place.settle(index, receipt)
            if self._places.setdefault(event[0], (place, index)) != (place, index):
                self._more_places.setdefault(event[0], []).append((place, index))

    def settle(self, events: Iterable[str], outcome: Terminal, page: str | None) -> "Settled":
        """Record outcomes by event id, in the page of that name only, or in every attempt."""
        places, more_places, early = self._places, self._more_places, self._early
        fresh = repeated = refused = 0
        for event in events:
            place = places.get(event)
            if place is None:
                if event in early:
                    repeated += 1
                elif len(early) >= self._early_limit:
                    refused += 1
                else:
                    early[event] = outcome
                    fresh += 1
                continue
            everywhere = (place,) if event not in more_places else self._all_places(event)
            new = False
            for opened, index in everywhere:
                if page is None or opened.page.name == page:
                    new = opened.settle(index, outcome) or new
            if new:
                fresh += 1
            else:
                repeated += 1
        return Settled(fresh, repeated, refused)

    def receipts(self) -> dict[str, Terminal]:
        """Event id -> outcome, of all open pages and of the events whose page has not come."""
        found = dict(self._early)
        for event in self._places:
            for place, index in self._all_places(event):
                receipt = place.receipt(index)
                if receipt is not None:
                    found.setdefault(event, receipt)
        return found

    def settled_unit(self, token: str | None, used: Container[str]) -> list[PageAttempt]:
        """Settled pages from `token` on, up to the first one that is not provisional; empty where there are none."""
        paths: list[list[OpenPage]] = [[place] for place in reversed(self.starting_at(token))]
        tried: set[str] = set()
        while paths:
            path = paths.pop()
            last = path[-1]
            if last.page.name in used or last.page.name in tried or not last.terminal:
                continue
            tried.add(last.page.name)
            if not last.page.provisional:
                return [place.page for place in path]
            if last.page.next_token is not None:
                paths += [[*path, place] for place in reversed(self.starting_at(last.page.next_token))]
        return []

    def path(self, start: str | None, end: str | None) -> list[str | None]:
        """The start tokens of open pages that lead from `start` to `end`; only `start` where none do."""
        before: dict[str | None, str | None] = {start: None}
        tokens = [start]
        for token in tokens:
            for place in self.starting_at(token):
                following = place.page.next_token
                if following is not None and following not in before:
                    before[following] = token
                    tokens.append(following)
        if end not in before or end == start:
            return [start]
        passed: list[str | None] = []
        while end != start:
            end = before[end]
            passed.append(end)
        return passed

    def reachable(self, start: str | None) -> set[str | None]:
        """`start`, and every token to which open pages lead from there."""
        found: set[str | None] = {start}
        tokens = [start]
        for token in tokens:
            for place in self._by_start.get(token, ()):
                following = place.page.next_token
                if following is not None and following not in found:
                    found.add(following)
                    tokens.append(following)
        return found

    def remove(self, place: OpenPage, over: Container[tuple[str, Position]] | None = None) -> None:
        """Close a page. Its outcomes that no other page holds are kept for pages to come, but for events that are `over`;
        None: all are."""
        self._take_page(place)
        for index, event in enumerate(place.page.events):
            if self._take_out(event[0], (place, index)) or over is None or event in over:
                continue
            receipt = place.receipt(index)
            if receipt is not None and len(self._early) < self._early_limit:
                self._early[event[0]] = receipt

    def remove_passed(
        self,
        tokens: Iterable[str | None],
        committed: str | None,
        over: Container[tuple[str, Position]],
    ) -> int:
        """Close every attempt that starts at a passed token, and what could be reached only through it; how many.

        Receipts are kept as in `remove`."""
        removed = 0
        doomed = [token for token in tokens if token != committed]
        while doomed:
            for place in self.starting_at(doomed.pop()):
                self.remove(place, over)
                removed += 1
                following = place.page.next_token
                if following not in (None, committed) and not self._leads_to(following):
                    doomed.append(following)
        return removed

    def clear(self) -> None:
        self._pages.clear()
        self._by_start.clear()
        self._places.clear()
        self._more_places.clear()
        self._early.clear()

    def receipt(self, place: OpenPage, event: str) -> Terminal | None:
        """The outcome of an event in one of the open pages, None where there is none."""
        found = (index for opened, index in self._all_places(event) if opened is place)
        return next((receipt for index in found if (receipt := place.receipt(index)) is not None), None)

    def _open(self, page: PageAttempt) -> OpenPage:
        place = OpenPage(page)
        self._pages[page.name] = place
        self._by_start.setdefault(page.start_token, []).append(place)
        return place

    def _take_page(self, place: OpenPage) -> None:
        del self._pages[place.page.name]
        attempts = self._by_start[place.page.start_token]
        attempts.remove(place)
        if not attempts:
            del self._by_start[place.page.start_token]

    def _receipt(self, event: tuple[str, Position]) -> Terminal | None:
        """What is known of this event: a receipt that came early, or one in another attempt at the same position."""
        for place, index in self._all_places(event[0]):
            if place.page.events[index] == event:
                receipt = place.receipt(index)
                if receipt is not None:
                    return receipt
        return self._early.pop(event[0], None)

    def _all_places(self, event: str) -> "tuple[_Place, ...]":
        if event not in self._places:
            return ()
        return (self._places[event], *self._more_places.get(event, ()))

    def _take_out(self, event: str, place: "_Place") -> bool:
        """Whether another page still holds the event."""
        others = [other for other in self._all_places(event) if other != place]
        self._more_places.pop(event, None)
        if not others:
            del self._places[event]
            return False
        self._places[event] = others[0]
        if len(others) > 1:
            self._more_places[event] = others[1:]
        return True

    def _leads_to(self, token: str | None) -> bool:
        return any(place.page.next_token == token for place in self._pages.values())
