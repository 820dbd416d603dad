"""A log entry is one thing the tracker of a chain was told: a page without its rows, why a reader stopped, or an outcome."""

from dataclasses import dataclass, replace

from gapless.effects.lossless_json import NotJson, event_json
from gapless.emitted_page import EmittedPage, LetterOf, Outcome
from gapless.progress import Terminal


@dataclass(frozen=True, slots=True)
class LogEntry:
    """`said` is what came. The state of a chain is what its entries come to, in whatever order they are read."""

    said: EmittedPage | Outcome

    @property
    def chain(self) -> int:
        return self.said.chain if isinstance(self.said, Outcome) else self.said.task.chain

    @property
    def key(self) -> str:
        """By chain, not by the partition's name: one that is read under another routing generation is another chain."""
        scope = self.said.scope if isinstance(self.said, Outcome) else self.said.task.scope
        return f"{scope}\n{self.chain}"


def weight_of(said: EmittedPage | Outcome) -> int:
    """How much room it takes in a log, in outcomes of one event.

    >>> weight_of(Outcome("s", 1, "g", None)), weight_of(Outcome("s", 1, "g", tuple("abcdefgh")))
    (1, 2)
    """
    ids = said.ids if isinstance(said, EmittedPage) else said.event_ids or ()
    return 1 + len(ids) // 8


def entries_of(page: EmittedPage) -> list[LogEntry]:
    """What the tracker is told of an emitted element: the page without its rows, and the data of those of its events that an
    operator gave up on before it was there. Nothing where it only tells of progress."""
    if page.progress is not None:
        return []
    entries = [LogEntry(replace(page, rows=()))]
    letters = tuple(_skipped(page)) if page.settled else ()
    if letters:
        entries.append(
            LogEntry(
                Outcome(
                    scope=page.task.scope,
                    chain=page.task.chain,
                    attempt=page.attempt,
                    event_ids=tuple(letter.event_id for letter in letters),
                    letters=letters,
                    read_through=max(page.positions, default=None),
                    number=page.number,
                )
            )
        )
    return entries


def _skipped(page: EmittedPage) -> list[LetterOf]:
    known = page.settled or {}
    letters = []
    for event_id, position, row in zip(page.ids, page.positions, page.rows, strict=True):
        if known.get(event_id) is not Terminal.DEAD_LETTERED:
            continue
        try:
            payload = event_json(row)
        except NotJson:
            # The event was given up on; that its data cannot be kept does not hold what was released.
            continue
        letters.append(LetterOf(event_id, position, "skipped by an operator", payload))
    return letters
