"""Open pages whose attempts stand apart: an outcome speaks of the events of its own attempt, and of no other page that has them.

So it is where every attempt is applied by somebody who says so. Nothing is kept of events, and no event is looked at before
an outcome names it: a page as a whole costs the same however many events it has.
"""

from collections.abc import Container, Iterable

from gapless.progress.bound import Position
from gapless.progress.checkpoint import PageAttempt
from gapless.progress.open_pages import OpenPage, OpenPages, Settled, Terminal


class ApartPages(OpenPages):
    """The open pages of one chain, attempts apart. An outcome of an attempt that is not open is refused, and so is one of no
    attempt.

    >>> pages = ApartPages()
    >>> pages.add(PageAttempt("g", "t0", "t1", (("a", 1),)), ()); pages.add(PageAttempt("h", "t0", "t2", (("a", 1),)), ())
    >>> pages.settle(["a", "b"], Terminal.DELIVERED, "g"), pages.receipts()
    (Settled(fresh=1, repeated=0, refused=1), {'a': <Terminal.DELIVERED: 'delivered'>})
    >>> [place.terminal for place in pages]
    [True, False]
    """

    def __init__(self) -> None:
        super().__init__(early_limit=0)
        self._indexes: dict[str, dict[str, int]] = {}

    def holds(self, event: str) -> bool:
        return any(event == name for place in self for name, _ in place.page.events)

    def add(self, page: PageAttempt, seen: Container[tuple[str, Position]]) -> None:
        """Open a page, none of whose events has an outcome, whatever was promoted before."""
        self._open(page)

    def settle(self, events: Iterable[str], outcome: Terminal, page: str | None) -> Settled:
        place = None if page is None else self.get(page)
        if place is None:
            return Settled(0, 0, len(list(events)))
        fresh = repeated = refused = 0
        index = self._index(place)
        for event in events:
            number = index.get(event)
            if number is None:
                refused += 1
            elif place.settle(number, outcome):
                fresh += 1
            else:
                repeated += 1
        return Settled(fresh, repeated, refused)

    def receipt(self, place: OpenPage, event: str) -> Terminal | None:
        number = self._index(place).get(event)
        return None if number is None else place.receipt(number)

    def receipts(self) -> dict[str, Terminal]:
        found: dict[str, Terminal] = {}
        for place in self:
            for number, (event, _) in enumerate(place.page.events):
                receipt = place.receipt(number)
                if receipt is not None:
                    found.setdefault(event, receipt)
        return found

    def remove(self, place: OpenPage, over: Container[tuple[str, Position]] | None = None) -> None:
        """Close a page. Its outcomes go with it."""
        self._take_page(place)
        self._indexes.pop(place.page.name, None)

    def remove_passed(
        self,
        tokens: Iterable[str | None],
        committed: str | None,
        over: Container[tuple[str, Position]],
    ) -> int:
        """Close every attempt that starts at a passed token; how many. What they lead to stays: others may lead there that have
        not come yet."""
        passed = [
            place
            for token in dict.fromkeys(tokens)
            if token != committed
            for place in self.starting_at(token)
        ]
        for place in passed:
            self.remove(place)
        return len(passed)

    def clear(self) -> None:
        super().clear()
        self._indexes.clear()

    def _index(self, place: OpenPage) -> dict[str, int]:
        index = self._indexes.get(place.page.name)
        if index is None:
            index = {event: number for number, (event, _) in enumerate(place.page.events)}
            if len(index) < len(place.page.events):
                raise ValueError(f"page {place.page.name!r} has an event twice")
            self._indexes[place.page.name] = index
        return index
