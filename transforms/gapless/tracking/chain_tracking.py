"""What is open of one chain that is settled in the pipeline: pages, their outcomes, what waits for its page.

Pages and outcomes may come in any order, more than once, late, under another attempt's page boundaries, and after a fence. The
durable row is the truth: what is here can always be dropped and costs no more than reading it again.

An outcome speaks of its own attempt. The same event in another attempt is another matter: each page that leaves a reader comes
to whoever applies it, and gets outcomes of its own.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from gapless.emitted_page import EmittedPage, LetterOf, Outcome
from gapless.progress import (
    Assertion,
    Bound,
    Certificate,
    ChainState,
    Checkpoint,
    Ledger,
    Offer,
    PageAttempt,
    Position,
    Run,
    Terminal,
)
from gapless.store.records import ChainRow
from gapless.tracking.log_entry import LogEntry
from gapless.tracking.parts import Parts
from gapless.updates import ReadTask

MOST_DEAD = 4096
"""A run is promoted with so many dead letters at most: they go into the store in the promotion's own transaction."""
_LIVE = (ChainState.OPEN, ChainState.HELD)


class Intake(str, Enum):
    """What became of something the tracker was told. Anything but KEPT has changed nothing."""

    KEPT = "kept"
    REPEATED = "repeated"
    """Known already, or it says nothing."""
    LATE_OUTCOME = "late_outcomes"
    """Of a page that is promoted, or that will not be."""
    LATE_PAGE = "late_pages"
    """Promoted already, or passed by another attempt, or its chain is closed."""
    FENCED = "fenced_pages"
    """Read by a run that is not the chain's any more."""
    STALE_GENERATION = "stale_generation_pages"
    """Read under another routing generation than the chain's."""

    def __str__(self) -> str:
        return self.value


class ChainTracking:
    """Over the durable `row`; `stored` are the receipts that the store has of events of the chain. Used by one thread."""

    def __init__(self, row: ChainRow, stored: Mapping[str, str] | None = None) -> None:
        self._row = row
        self._stored = dict(stored or {})
        self._ledger = Ledger(
            _checkpoint(row), limit=sys.maxsize, early_limit=0, remember=1, accept_assertions=True
        )
        self._pages: dict[str, EmittedPage] = {}
        self._letters: dict[str, dict[str, LetterOf]] = {}
        self._parts: dict[str, Parts] = {}
        self._waiting: dict[str, list[Outcome]] = {}
        self._stops: dict[str | None, EmittedPage] = {}
        self._settled_pages: set[str] = set()
        self._task: ReadTask | None = None

    @property
    def row(self) -> ChainRow:
        """The durable row as it was last seen."""
        return self._row

    @property
    def task(self) -> ReadTask | None:
        """What the newest page was read for; None before there was one."""
        return self._task

    @property
    def stored(self) -> Mapping[str, str]:
        """Event id -> outcome, of the receipts that are known to be in the store."""
        return self._stored

    @property
    def open_pages(self) -> int:
        return len(self._pages)

    @property
    def size(self) -> int:
        """How many log entries `live` comes to, at most."""
        waiting = sum(map(len, self._waiting.values())) if self._waiting else 0
        parts = sum(len(parts.said) for parts in self._parts.values()) if self._parts else 0
        return 2 * len(self._pages) + waiting + parts + len(self._stops)

    def is_behind(self, said: EmittedPage | Outcome) -> bool:
        """Whether this tells that the row has moved since it was read: it is to be read again first."""
        if isinstance(said, Outcome):
            return False
        row = self._row
        if said.task.fencing_token > row.fencing_token or row.state is ChainState.HELD:
            return True
        # What would be next, and does not follow: somebody has promoted other pages, or restarted the chain.
        return said.number == row.sequence and said.is_page and not self._ledger.leads_to(said.start_token)

    def take(self, said: EmittedPage | Outcome) -> Intake:
        """Take in one thing; it changes something only where it is KEPT."""
        if isinstance(said, Outcome):
            return self._take_outcome(said)
        if said.task.fencing_token < self._row.fencing_token:
            self._drop_waiting(said.attempt)
            return Intake.FENCED
        if said.stop is not None:
            return self._take_stop(said)
        return self._take_page(said) if said.is_page else Intake.REPEATED

    def adopt(self, row: ChainRow, stored: Mapping[str, str] | None = None) -> None:
        """Go on from the row as reread: what it has passed, fenced or closed is dropped."""
        fenced = row.fencing_token > self._row.fencing_token
        self._row = row
        self._ledger.adopt(_checkpoint(row))
        if stored is not None:
            self._stored = dict(stored)
            for event, outcome in self._stored.items():
                self._ledger.settle((event,), Terminal(outcome))
        if fenced:
            for attempt, page in list(self._pages.items()):
                if page.task.fencing_token < row.fencing_token:
                    self._ledger.withdraw(attempt)
            self._stops = {t: s for t, s in self._stops.items() if s.task.fencing_token >= row.fencing_token}
        self.tidy()

    def receive(self, entries: Iterable[LogEntry]) -> None:
        """Take in the log of a chain, read in any order. What is over by now is left out."""
        outcomes = []
        for entry in entries:
            if isinstance(entry.said, Outcome):
                outcomes.append(entry.said)
            else:
                self.take(entry.said)
        for outcome in outcomes:
            self.take(outcome)
        self.tidy()

    def live(self) -> Iterator[LogEntry]:
        """What is still open, as few entries: together they come to this very state."""
        for attempt, page in self._pages.items():
            yield LogEntry(page)
            outcome = self._outcome_so_far(attempt, page)
            if outcome is not None:
                yield LogEntry(outcome)
        for parts in self._parts.values():
            yield from map(LogEntry, parts.said)
        for outcomes in self._waiting.values():
            yield from map(LogEntry, outcomes)
        yield from map(LogEntry, self._stops.values())

    def head_is_settled(self) -> bool:
        """Whether a page that starts at the committed token is settled: there is something to promote."""
        return self._row.state in _LIVE and self._ledger.heads_settled()

    def has_head(self) -> bool:
        """Whether an open page starts at the committed token."""
        return bool(self._ledger.heads())

    @property
    def all_settled(self) -> bool:
        """Whether every open page is settled."""
        return len(self._settled_pages) == len(self._pages)

    @property
    def settled_pages(self) -> int:
        return len(self._settled_pages)

    def promotable(self) -> Run | None:
        """The longest run of settled pages from the committed token that goes into one promotion."""
        run = self._ledger.promotable() if self._row.state in _LIVE else None
        if run is None:
            return None
        names: list[str] = []
        letters = 0
        for name in run.names:
            letters += len(self._letters.get(name, ()))
            if names and letters > MOST_DEAD:
                break
            names.append(name)
        if len(names) == len(run.names):
            return run
        return self._ledger.decide(names, token=self._row.page_token).run

    def pages_of(self, run: Run) -> list[EmittedPage]:
        return [self._pages[name] for name in run.names]

    def letters_of(self, attempt: str) -> list[LetterOf]:
        """The dead letters of an open page. An event that was delivered before it was given up on is none."""
        letters = self._letters.get(attempt)
        if not letters:
            return []
        dead = self._ledger.settled_of(attempt)
        return [letter for event, letter in letters.items() if dead.get(event) is Terminal.DEAD_LETTERED]

    def settled_before(self, page: EmittedPage) -> list[str]:
        """The events of a page whose receipts are in the store."""
        known = page.settled or {}
        if not known and not self._stored:
            return []
        return [event for event in page.ids if event in known or event in self._stored]

    def promoted(self, run: Run, row: ChainRow) -> None:
        """The run is durable and the row stands at `row`: forget its pages."""
        for page in self.pages_of(run):
            for event in self.settled_before(page):
                self._stored.pop(event, None)
        self._ledger.promoted(run)
        self._row = row
        self._ledger.adopt(_checkpoint(row))
        for attempt in run.names:
            self._close(attempt)
        if row.state not in _LIVE or self._ledger.open_pages < len(self._pages):
            self.tidy()
        else:
            self._tidy_outcomes()

    def stop_due(self) -> EmittedPage | None:
        """Why a reader stopped here, once everything before is promoted."""
        stop = self._stops.get(self._row.page_token)
        if stop is None or self._row.state is not ChainState.OPEN:
            return None
        before = (page for page in self._pages.values() if page.start_token == self._row.page_token)
        return None if any(page.number < stop.number for page in before) else stop

    def stopped(self, stop: EmittedPage) -> None:
        """What it says is durable."""
        assert stop.stop is not None
        del self._stops[stop.stop.at_token]

    def waits_for(self) -> tuple[EmittedPage, Sequence[tuple[str, Position]]] | None:
        """An open page at the committed token, and its events without an outcome; None where there is none or it has them all."""
        for attempt in self._ledger.heads():
            page = self._pages[attempt]
            if attempt not in self._settled_pages:
                known = self._ledger.settled_of(page.attempt)
                missing = [
                    (event, position)
                    for event, position in zip(page.ids, page.positions, strict=True)
                    if event not in known
                ]
                return page, missing
        return None

    def pages_in_order(self) -> Iterator[EmittedPage]:
        """The open pages along the path from the committed token, one attempt of each start token."""
        by_start: dict[str | None, EmittedPage] = {}
        for page in self._pages.values():
            by_start.setdefault(page.start_token, page)
        token = self._row.page_token
        while token in by_start:
            following = by_start.pop(token)
            yield following
            if following.next_token is None:
                return
            token = following.next_token

    def outcomes_of(self, page: EmittedPage) -> Mapping[str, Terminal]:
        """Event id -> outcome, of those of an open page's events that have one."""
        return self._ledger.settled_of(page.attempt)

    def record(self, receipts: Mapping[str, str], row: ChainRow) -> None:
        """These receipts are in the store now; the row as it stands since."""
        self._stored.update(receipts)
        self._row = row
        self._ledger.adopt(_checkpoint(row))

    def _take_page(self, page: EmittedPage) -> Intake:
        row = self._row
        if page.attempt in self._pages:
            return Intake.REPEATED
        if row.state not in _LIVE or self._is_passed(page):
            self._drop_waiting(page.attempt)
            return Intake.LATE_PAGE
        offer = self._ledger.offer(_attempt(page))
        if offer is not Offer.TAKEN:
            self._drop_waiting(page.attempt)
            return Intake.STALE_GENERATION if offer is Offer.STALE_GENERATION else Intake.LATE_PAGE
        self._pages[page.attempt] = page
        if self._task is None or page.task.epoch >= self._task.epoch:
            self._task = page.task
        for event, terminal in (page.settled or {}).items():
            self._ledger.settle((event,), terminal, page.attempt)
        if self._stored:
            for event in page.ids:
                if event in self._stored:
                    self._ledger.settle((event,), Terminal(self._stored[event]), page.attempt)
        for outcome in self._waiting.pop(page.attempt, ()):
            self._apply(outcome)
        self._note_settled(page.attempt)
        return Intake.KEPT

    def _is_passed(self, page: EmittedPage) -> bool:
        """Whether the row has gone past this page: nothing leads to where it starts, and what it was to follow is promoted.

        A page that leads back to its own start, as the tail of a stream may, cannot be told from one that was promoted: it is
        read again."""
        if page.number >= self._row.sequence:
            return False
        return page.next_token == page.start_token or not self._ledger.leads_to(page.start_token)

    def _take_stop(self, said: EmittedPage) -> Intake:
        assert said.stop is not None
        if self._row.state not in _LIVE or said.number < self._row.sequence:
            return Intake.LATE_PAGE
        if self._stops.get(said.stop.at_token) == said:
            return Intake.REPEATED
        self._stops[said.stop.at_token] = said
        if self._task is None:
            self._task = said.task
        return Intake.KEPT

    def _take_outcome(self, outcome: Outcome) -> Intake:
        if not outcome.attempt or (outcome.read_through is None and outcome.event_ids is None):
            return Intake.REPEATED
        if outcome.attempt in self._pages:
            if not self._apply(outcome):
                return Intake.REPEATED
            self._note_settled(outcome.attempt)
            return Intake.KEPT
        if self._is_late(outcome):
            return Intake.LATE_OUTCOME
        waiting = self._waiting.setdefault(outcome.attempt, [])
        if outcome in waiting:
            return Intake.REPEATED
        waiting.append(outcome)
        return Intake.KEPT

    def _is_late(self, outcome: Outcome) -> bool:
        """Whether the page it is of will not come any more, as far as can be told."""
        row = self._row
        if row.state not in _LIVE:
            return True
        if outcome.number is not None and outcome.number >= row.sequence:
            return False
        through = outcome.read_through
        return through is None or (row.read_to is not None and row.read_to >= Bound.through(through))

    def _apply(self, outcome: Outcome) -> bool:
        """An outcome of an open page; whether it says anything new."""
        attempt = outcome.attempt
        if outcome.part[1] == 1:
            return self._settle(attempt, outcome.event_ids, outcome.letters)
        parts = self._parts.setdefault(attempt, Parts())
        if not parts.add(outcome):
            return False
        if parts.whole:
            self._settle(attempt, None, tuple(parts.letters.values()))
        else:
            ids = outcome.event_ids if outcome.event_ids is not None else self._pages[attempt].ids
            complete = parts.complete(tuple(ids))
            letters = tuple(parts.letters[event] for event in complete if event in parts.letters)
            self._settle(attempt, tuple(complete), letters)
        return True

    def _settle(self, attempt: str, ids: tuple[str, ...] | None, letters: tuple[LetterOf, ...]) -> bool:
        dead = [letter.event_id for letter in letters]
        if ids is None:
            fresh = self._ledger.settle_page(attempt, dead)
        else:
            fresh = self._ledger.settle(dead, Terminal.DEAD_LETTERED, attempt) if dead else 0
            fresh += self._ledger.settle(ids, Terminal.DELIVERED, attempt)
        if not letters:
            return fresh > 0
        kept = self._letters.setdefault(attempt, {})
        known = len(kept)
        for letter in letters:
            kept.setdefault(letter.event_id, letter)
        return fresh > 0 or len(kept) > known

    def _note_settled(self, attempt: str) -> None:
        if self._ledger.is_settled(attempt):
            self._settled_pages.add(attempt)
            self._parts.pop(attempt, None)

    def _outcome_so_far(self, attempt: str, page: EmittedPage) -> Outcome | None:
        letters = tuple(self._letters.get(attempt, {}).values())
        ids: tuple[str, ...] | None = None
        if attempt not in self._settled_pages:
            ids = tuple(self._ledger.settled_of(attempt))
            if not ids:
                return None
        elif not page.ids:
            return None
        return Outcome(
            scope=page.task.scope,
            chain=page.task.chain,
            attempt=attempt,
            event_ids=ids,
            letters=letters,
            read_through=max(page.positions, default=None),
            number=page.number,
        )

    def _drop_waiting(self, attempt: str) -> None:
        self._waiting.pop(attempt, None)

    def tidy(self) -> None:
        """Drop what the row has gone past, and forget what belongs to pages that are not open any more."""
        if self._row.state not in _LIVE:
            self._ledger.forget()
            self._waiting.clear()
            self._stops.clear()
        for attempt in self._ledger.beside_the_path():
            if self._pages[attempt].number < self._row.sequence:
                self._ledger.withdraw(attempt)
        for attempt in [attempt for attempt in self._pages if not self._ledger.has(attempt)]:
            self._close(attempt)
        self._tidy_outcomes()

    def _tidy_outcomes(self) -> None:
        if self._waiting:
            self._waiting = {
                attempt: left
                for attempt, outcomes in self._waiting.items()
                if (left := [outcome for outcome in outcomes if not self._is_late(outcome)])
            }
        if self._stops:
            self._stops = {t: s for t, s in self._stops.items() if s.number >= self._row.sequence}
            if self._row.state is ChainState.HELD:
                # It is held where the reader stopped: by a twin's word, or that of the run before.
                self._stops = {t: s for t, s in self._stops.items() if t != self._row.page_token}

    def _close(self, attempt: str) -> None:
        self._pages.pop(attempt, None)
        self._settled_pages.discard(attempt)
        self._letters.pop(attempt, None)
        self._parts.pop(attempt, None)


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


def _checkpoint(row: ChainRow) -> Checkpoint:
    """As the ledger goes by it. What holds a chain is no matter of its pages: whoever has settled ones opens it again."""
    state = ChainState.OPEN if row.state is ChainState.HELD else row.state
    return Checkpoint(
        fencing_token=row.fencing_token,
        sequence=row.sequence,
        page_token=row.page_token,
        bound=row.bound,
        state=state,
        generation=row.generation,
        asserted=row.basis == "asserted",
    )
