"""Open attempts are the pages of one chain that have come and are not promoted, with what has been said of their events.

An outcome speaks of its own attempt. The same event in another attempt is another matter: each page that leaves a reader comes
to whoever applies it, and gets outcomes of its own.
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from gapless.emitted_page import EmittedPage, LetterOf, Outcome
from gapless.progress import (
    Assertion,
    Certificate,
    Checkpoint,
    Ledger,
    Offer,
    PageAttempt,
    Position,
    Run,
    Terminal,
)
from gapless.tracking.log_entry import weight_of
from gapless.tracking.parts import Parts

MOST_DEAD = 4096
"""A run is promoted with so many dead letters at most: they go into the store in the promotion's own transaction."""


class OpenAttempts:
    """Over the committed checkpoint. Used by one thread."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._ledger = Ledger(checkpoint, limit=sys.maxsize, remember=1, accept_assertions=True, apart=True)
        self._pages: dict[str, EmittedPage] = {}
        self._letters: dict[str, dict[str, LetterOf]] = {}
        self._parts: dict[str, Parts] = {}
        self._settled: set[str] = set()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, attempt: str) -> bool:
        return attempt in self._pages

    def __iter__(self) -> Iterator[EmittedPage]:
        return iter(tuple(self._pages.values()))

    @property
    def settled(self) -> int:
        """How many are settled: every event of theirs has its outcome."""
        return len(self._settled)

    @property
    def weight(self) -> int:
        """What they come to in a log, at most."""
        return self._weight

    def open(self, page: EmittedPage) -> Offer:
        """Take a page in that is not open yet."""
        offer = self._ledger.offer(_attempt(page))
        if offer is Offer.TAKEN:
            self._pages[page.attempt] = page
            self._weight += 2 * weight_of(page)
            for event, terminal in (page.settled or {}).items():
                self._ledger.settle((event,), terminal, page.attempt)
            self._note(page.attempt)
        return offer

    def settle_known(self, page: EmittedPage, receipts: Mapping[str, str]) -> None:
        """Events that have a receipt in the store are settled: by a run before, or by an operator who gave up on them."""
        for event in page.ids:
            if event in receipts:
                self._ledger.settle((event,), Terminal(receipts[event]), page.attempt)
        self._note(page.attempt)

    def apply(self, outcome: Outcome) -> bool:
        """An outcome of an open attempt; whether it says anything new. The first one of an event stands."""
        attempt = outcome.attempt
        new = self._apply(outcome)
        if new:
            self._note(attempt)
        return new

    def adopt(self, checkpoint: Checkpoint) -> None:
        """Go on from the row as reread."""
        self._ledger.adopt(checkpoint)

    def withdraw(self, attempt: str) -> None:
        """Drop one that will not be promoted."""
        self._ledger.withdraw(attempt)
        self._close(attempt)

    def tidy(self) -> None:
        """Forget what is kept of attempts that the ledger has closed."""
        if self._ledger.open_pages < len(self._pages):
            for attempt in [attempt for attempt in self._pages if not self._ledger.has(attempt)]:
                self._close(attempt)

    def clear(self) -> None:
        """Drop all."""
        self._ledger.forget()
        self.tidy()

    def leads_to(self, token: str | None) -> bool:
        """Whether a page that starts there may be promoted once those before it are."""
        return self._ledger.leads_to(token)

    def beside_the_path(self) -> list[EmittedPage]:
        """Those to which no open page leads from the committed token: others may come that do."""
        return [self._pages[attempt] for attempt in self._ledger.beside_the_path()]

    def heads(self) -> list[EmittedPage]:
        """Those that start at the committed token."""
        return [self._pages[attempt] for attempt in self._ledger.heads()]

    def head_is_settled(self) -> bool:
        """Whether one that starts at the committed token is settled."""
        return self._ledger.heads_settled()

    def is_settled(self, attempt: str) -> bool:
        return attempt in self._settled

    def missing(self, page: EmittedPage) -> Sequence[tuple[str, Position]]:
        """The (id, position) pairs of its events without an outcome."""
        if page.attempt in self._settled:
            return ()
        known = self.outcomes_of(page.attempt)
        return [each for each in zip(page.ids, page.positions, strict=True) if each[0] not in known]

    def outcomes_of(self, attempt: str) -> Mapping[str, Terminal]:
        """Event id -> outcome, of those events that have one."""
        return self._ledger.settled_of(attempt)

    def parts_of(self, attempt: str, event: str) -> Sequence[tuple[int, int]]:
        """Those parts (i, n) of the event's outcome that have come, where it has none yet."""
        parts = self._parts.get(attempt)
        return () if parts is None else parts.of(event)

    def letters_of(self, attempt: str) -> list[LetterOf]:
        """Its dead letters. An event that was delivered before it was given up on is none."""
        return [
            letter
            for event, letter in self._letters.get(attempt, {}).items()
            if self._ledger.receipt(attempt, event) is Terminal.DEAD_LETTERED
        ]

    def promotable(self, token: str | None) -> Run | None:
        """The longest run of settled attempts from the committed `token` on that goes into one promotion."""
        run = self._ledger.promotable()
        if run is None or not self._letters:
            return run
        names: list[str] = []
        letters = 0
        for name in run.names:
            letters += len(self._letters.get(name, ()))
            if names and letters > MOST_DEAD:
                return self._ledger.decide(names, token=token).run
            names.append(name)
        return run

    def pages_of(self, run: Run) -> list[EmittedPage]:
        return [self._pages[name] for name in run.names]

    def promoted(self, run: Run, checkpoint: Checkpoint) -> None:
        """The run is durable: forget its attempts, and go on from the row as it stands now."""
        self._ledger.promoted(run)
        self._ledger.adopt(checkpoint)
        for attempt in run.names:
            self._close(attempt)
        self.tidy()

    def path(self, token: str | None) -> Iterator[EmittedPage]:
        """Along the tokens from `token` on, one attempt of each start token."""
        by_start: dict[str | None, EmittedPage] = {}
        for page in self._pages.values():
            by_start.setdefault(page.start_token, page)
        while token in by_start:
            page = by_start.pop(token)
            yield page
            if page.next_token is None:
                return
            token = page.next_token

    def live(self) -> Iterator[EmittedPage | Outcome]:
        """The pages and outcomes, as few as say all of this."""
        for attempt, page in self._pages.items():
            yield page
            if page.ids and attempt in self._settled:
                yield self._so_far(page, None)
            elif ids := tuple(self.outcomes_of(attempt)):
                yield self._so_far(page, ids)
        for parts in self._parts.values():
            yield from parts.said

    def _so_far(self, page: EmittedPage, ids: tuple[str, ...] | None) -> Outcome:
        return Outcome(
            scope=page.task.scope,
            chain=page.task.chain,
            attempt=page.attempt,
            event_ids=ids,
            letters=tuple(self._letters.get(page.attempt, {}).values()),
            read_through=max(page.positions, default=None),
            number=page.number,
        )

    def _apply(self, outcome: Outcome) -> bool:
        attempt = outcome.attempt
        if outcome.part[1] == 1:
            return self._settle(attempt, outcome.event_ids, outcome.letters)
        if attempt in self._settled:
            return False
        parts = self._parts.setdefault(attempt, Parts())
        if not parts.add(outcome):
            return False
        self._weight += weight_of(outcome)
        if parts.whole:
            self._settle(attempt, None, tuple(parts.letters.values()))
        else:
            ids = outcome.event_ids if outcome.event_ids is not None else self._pages[attempt].ids
            complete = parts.complete(ids)
            letters = tuple(parts.letters[event] for event in complete if event in parts.letters)
            self._settle(attempt, complete, letters)
        return True

    def _settle(self, attempt: str, ids: Collection[str] | None, letters: Iterable[LetterOf]) -> bool:
        dead = {letter.event_id: letter for letter in letters}
        if ids is None:
            fresh = self._ledger.settle_page(attempt, dead)
        else:
            fresh = self._ledger.settle(dead, Terminal.DEAD_LETTERED, attempt) if dead else 0
            fresh += self._ledger.settle(ids, Terminal.DELIVERED, attempt)
        if not dead:
            return fresh > 0
        kept = self._letters.setdefault(attempt, {})
        known = len(kept)
        for event, letter in dead.items():
            kept.setdefault(event, letter)
        return fresh > 0 or len(kept) > known

    def _note(self, attempt: str) -> None:
        if self._ledger.is_settled(attempt):
            self._settled.add(attempt)
            self._drop_parts(attempt)

    def _close(self, attempt: str) -> None:
        page = self._pages.pop(attempt, None)
        if page is not None:
            self._weight -= 2 * weight_of(page)
        self._settled.discard(attempt)
        self._letters.pop(attempt, None)
        self._drop_parts(attempt)

    def _drop_parts(self, attempt: str) -> None:
        parts = self._parts.pop(attempt, None)
        if parts is not None:
            self._weight -= sum(map(weight_of, parts.said))


def _attempt(page: EmittedPage) -> PageAttempt:
    certificate = page.certificate
    return PageAttempt(
        name=page.attempt,
        start_token=page.start_token,
        next_token=page.next_token,
        events=tuple(zip(page.ids, page.positions, strict=True)),
        certificate=certificate if isinstance(certificate, Certificate) else None,
        generation=page.generation,
        assertion=certificate if isinstance(certificate, Assertion) else None,
    )
