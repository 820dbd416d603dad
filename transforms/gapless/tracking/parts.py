"""Parts are outcomes that fan-out has cut: an event has its outcome when all parts of it have come."""

from collections.abc import Iterable

from gapless.emitted_page import LetterOf, Outcome


class Parts:
    """The parts that have come for one attempt. Order and repetition do not matter.

    >>> parts = Parts()
    >>> parts.add(Outcome("s", 1, "g", None, part=(0, 2))), parts.add(Outcome("s", 1, "g", ("a",), part=(1, 2)))
    (True, True)
    >>> parts.complete(["a", "b"])
    ['a']
    """

    def __init__(self) -> None:
        self._whole: dict[int, int] = {}
        self._events: dict[int, dict[str, int]] = {}
        self.letters: dict[str, LetterOf] = {}
        self.said: list[Outcome] = []

    def add(self, outcome: Outcome) -> bool:
        """Take one in; False where it says nothing that was not known."""
        number, of = outcome.part
        bit = 1 << number
        new = False
        if outcome.event_ids is None:
            known = self._whole.get(of, 0)
            new = not known & bit
            self._whole[of] = known | bit
        else:
            events = self._events.setdefault(of, {})
            for event in outcome.event_ids:
                known = events.get(event, 0)
                new = new or not known & bit
                events[event] = known | bit
        for letter in outcome.letters:
            new = new or letter.event_id not in self.letters
            self.letters.setdefault(letter.event_id, letter)
        if new:
            self.said.append(outcome)
        return new

    @property
    def whole(self) -> bool:
        """Whether all parts have come for every event of the attempt."""
        return any(come == (1 << of) - 1 for of, come in self._whole.items())

    def of(self, event: str) -> list[tuple[int, int]]:
        """The parts (i, n) that have come for this event."""
        return sorted(
            {one.part for one in self.said if one.event_ids is None or event in one.event_ids},
            key=lambda part: (part[1], part[0]),
        )

    def complete(self, events: Iterable[str]) -> list[str]:
        """Those of `events` for which all parts have come."""
        if self.whole:
            return list(events)
        complete = []
        for event in events:
            for of, come in self._events.items():
                if come.get(event, 0) | self._whole.get(of, 0) == (1 << of) - 1:
                    complete.append(event)
                    break
        return complete
