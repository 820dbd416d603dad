"""What is open of one chain that is settled in the pipeline: pages, their outcomes, what waits for its page, reasons to stop.

Pages and outcomes may come in any order, more than once, late, under another attempt's page boundaries, and after a fence. The
durable row is the truth: what is here can always be dropped and costs no more than reading it again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from gapless.emitted_page import EmittedPage, LetterOf, Outcome
from gapless.progress import Bound, ChainState, Checkpoint, Offer, Position, Run, Terminal
from gapless.store.records import ChainRow
from gapless.tracking.log_entry import LogEntry, weight_of
from gapless.tracking.open_attempts import OpenAttempts
from gapless.updates import ReadTask

_LIVE = (ChainState.OPEN, ChainState.HELD)


class Intake(str, Enum):
    """What became of something the tracker was told. Anything but KEPT has changed nothing that lasts.

    >>> Intake("kept") is Intake.KEPT
    True
    """

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
        self._open = OpenAttempts(_checkpoint(row))
        self._waiting: dict[str, dict[Outcome, None]] = {}
        self._waits = 0
        self._stops: dict[str | None, EmittedPage] = {}
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
        return len(self._open)

    @property
    def settled_pages(self) -> int:
        """How many of the open pages are settled."""
        return self._open.settled

    @property
    def weight(self) -> int:
        """What `live` comes to in a log, at most. Nothing is open where it is 0."""
        return self._open.weight + self._waits + len(self._stops)

    def is_behind(self, said: EmittedPage | Outcome) -> bool:
        """Whether this tells that the row has moved since it was read: it is to be read again first."""
        if isinstance(said, Outcome):
            return False
        row = self._row
        if said.task.fencing_token > row.fencing_token or row.state is not ChainState.OPEN:
            # Whoever reads on has taken the chain since, or opened it again.
            return True
        # What would be next, and does not follow: somebody has promoted other pages, or restarted the chain.
        return said.number == row.sequence and said.is_page and not self._open.leads_to(said.start_token)

    def take(self, said: EmittedPage | Outcome) -> Intake:
        """Take in one thing; it is to be kept only where it is KEPT."""
        if isinstance(said, Outcome):
            return self._take_outcome(said)
        if said.task.fencing_token < self._row.fencing_token:
            self._waited(said.attempt)
            return Intake.FENCED
        if said.stop is not None:
            return self._take_stop(said, said.stop.at_token)
        return self._take_page(said) if said.is_page else Intake.REPEATED

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
        yield from map(LogEntry, self._open.live())
        for outcomes in self._waiting.values():
            yield from map(LogEntry, outcomes)
        yield from map(LogEntry, self._stops.values())

    def adopt(self, row: ChainRow, stored: Mapping[str, str] | None = None) -> None:
        """Go on from the row as reread, and from its receipts: what it has passed, fenced or closed is dropped."""
        fenced = row.fencing_token > self._row.fencing_token
        self._row = row
        self._open.adopt(_checkpoint(row))
        if stored is not None:
            self._stored = dict(stored)
        if fenced:
            for page in self._open:
                if page.task.fencing_token < row.fencing_token:
                    self._open.withdraw(page.attempt)
            self._stops = {t: s for t, s in self._stops.items() if s.task.fencing_token >= row.fencing_token}
        self.tidy()
        if self._stored:
            for page in self._open:
                self._open.settle_known(page, self._stored)

    def tidy(self) -> None:
        """Drop what the row has gone past."""
        if self._row.state not in _LIVE:
            self._open.clear()
            self._waiting.clear()
            self._waits = 0
            self._stops.clear()
            return
        self._open.tidy()
        for page in self._open.beside_the_path():
            if self._is_passed(page):
                self._open.withdraw(page.attempt)
        self._tidy_outcomes()

    def head_is_settled(self) -> bool:
        """Whether a page that starts at the committed token is settled: there is something to promote."""
        return self._row.state in _LIVE and self._open.head_is_settled()

    def has_head(self) -> bool:
        """Whether an open page starts at the committed token."""
        return bool(self._open.heads())

    def promotable(self) -> Run | None:
        """The longest run of settled pages from the committed token that goes into one promotion."""
        return self._open.promotable(self._row.page_token) if self._row.state in _LIVE else None

    def pages_of(self, run: Run) -> list[EmittedPage]:
        """In the order of their tokens."""
        return self._open.pages_of(run)

    def letters_of(self, page: EmittedPage) -> list[LetterOf]:
        """The dead letters of an open page."""
        return self._open.letters_of(page.attempt)

    def outcomes_of(self, page: EmittedPage) -> Mapping[str, Terminal]:
        """Event id -> outcome, of those of an open page's events that have one."""
        return self._open.outcomes_of(page.attempt)

    def settled_before(self, page: EmittedPage) -> list[str]:
        """The events of a page whose receipts are in the store."""
        known = page.settled or {}
        if not known and not self._stored:
            return []
        return [event for event in page.ids if event in known or event in self._stored]

    def promoted(self, run: Run, row: ChainRow) -> None:
        """The run is durable and the row stands at `row`: forget its pages."""
        for page in self._open.pages_of(run):
            for event in self.settled_before(page):
                self._stored.pop(event, None)
        self._row = row
        self._open.promoted(run, _checkpoint(row))
        if row.state in _LIVE:
            self._tidy_outcomes()
        else:
            self.tidy()

    def stop_due(self) -> EmittedPage | None:
        """Why a reader stopped here, once everything before is promoted."""
        stop = self._stops.get(self._row.page_token)
        if stop is None or self._row.state is not ChainState.OPEN:
            return None
        return None if any(page.number < stop.number for page in self._open.heads()) else stop

    def stopped(self, stop: EmittedPage) -> None:
        """What it says is durable, or has been overtaken."""
        self._stops = {token: kept for token, kept in self._stops.items() if kept is not stop}

    def waits_for(self) -> tuple[EmittedPage, Sequence[tuple[str, Position]]] | None:
        """An open page at the committed token, and its events without an outcome; None where there is none or it has them all."""
        for page in self._open.heads():
            if not self._open.is_settled(page.attempt):
                return page, self._open.missing(page)
        return None

    def parts_of(self, page: EmittedPage, event: str) -> Sequence[tuple[int, int]]:
        """Those parts (i, n) that have come of an outcome which is not whole."""
        return self._open.parts_of(page.attempt, event)

    def unsettled_events(self) -> set[str]:
        """The events of all open pages that have no outcome there."""
        return {event for page in self._open for event, _ in self._open.missing(page)}

    def pages_in_order(self) -> Iterator[EmittedPage]:
        """The open pages along the path from the committed token, one attempt of each start token."""
        return self._open.path(self._row.page_token)

    def recorded(self, receipts: Mapping[str, str], row: ChainRow) -> None:
        """These receipts are in the store now; the row as it stands since."""
        self._stored.update(receipts)
        self.adopt(row)

    def _take_page(self, page: EmittedPage) -> Intake:
        if page.attempt in self._open:
            return Intake.REPEATED
        if self._row.state not in _LIVE or self._is_passed(page):
            self._waited(page.attempt)
            return Intake.LATE_PAGE
        offer = self._open.open(page)
        if offer is not Offer.TAKEN:
            self._waited(page.attempt)
            return Intake.STALE_GENERATION if offer is Offer.STALE_GENERATION else Intake.LATE_PAGE
        if self._task is None or page.task.epoch >= self._task.epoch:
            self._task = page.task
        if self._stored:
            self._open.settle_known(page, self._stored)
        for outcome in self._waited(page.attempt):
            self._open.apply(outcome)
        return Intake.KEPT

    def _take_stop(self, said: EmittedPage, at_token: str | None) -> Intake:
        if self._row.state not in _LIVE or said.number < self._row.sequence:
            return Intake.LATE_PAGE
        if self._stops.get(at_token) == said:
            return Intake.REPEATED
        self._stops[at_token] = said
        if self._task is None:
            self._task = said.task
        return Intake.KEPT

    def _take_outcome(self, outcome: Outcome) -> Intake:
        if not outcome.attempt:
            return Intake.REPEATED
        if outcome.attempt in self._open:
            return Intake.KEPT if self._open.apply(outcome) else Intake.REPEATED
        if self._is_late(outcome):
            return Intake.LATE_OUTCOME
        waiting = self._waiting.setdefault(outcome.attempt, {})
        if outcome in waiting:
            return Intake.REPEATED
        waiting[outcome] = None
        self._waits += weight_of(outcome)
        return Intake.KEPT

    def _waited(self, attempt: str) -> Iterable[Outcome]:
        """The outcomes that have waited for this attempt, which wait no longer."""
        outcomes = self._waiting.pop(attempt, {})
        self._waits -= sum(map(weight_of, outcomes))
        return outcomes

    def _is_passed(self, page: EmittedPage) -> bool:
        """Whether the row has gone past this page: nothing leads to where it starts, and as many pages and all of its positions
        are promoted.

        A page that leads back to its own start, as the tail of a stream may, cannot be told from one that was promoted: it is
        read again."""
        if page.number >= self._row.sequence:
            return False
        if page.next_token == page.start_token:
            return True
        return self._has_read(max(page.positions, default=None)) and not self._open.leads_to(page.start_token)

    def _is_late(self, outcome: Outcome) -> bool:
        """Whether the page it is of will not come any more, as far as can be told."""
        if self._row.state not in _LIVE:
            return True
        if outcome.number is not None and outcome.number >= self._row.sequence:
            return False
        return self._has_read(outcome.read_through)

    def _has_read(self, position: Position | None) -> bool:
        read_to = self._row.read_to
        return position is None or (read_to is not None and read_to >= Bound.through(position))

    def _tidy_outcomes(self) -> None:
        if self._waiting:
            self._waiting = {
                attempt: left
                for attempt, outcomes in self._waiting.items()
                if (left := {outcome: None for outcome in outcomes if not self._is_late(outcome)})
            }
            self._waits = sum(weight_of(outcome) for each in self._waiting.values() for outcome in each)
        if self._stops:
            held = self._row.state is ChainState.HELD
            self._stops = {
                token: stop
                for token, stop in self._stops.items()
                # Where the chain is held, it is so by a twin's word, or that of the run before.
                if stop.number >= self._row.sequence and not (held and token == self._row.page_token)
            }


def _checkpoint(row: ChainRow) -> Checkpoint:
    """As the ledger goes by it. What holds a chain is no matter of its pages: whoever has settled ones opens it again."""
    return Checkpoint(
        fencing_token=row.fencing_token,
        sequence=row.sequence,
        page_token=row.page_token,
        bound=row.bound,
        state=ChainState.OPEN if row.state is ChainState.HELD else row.state,
        generation=row.generation,
        asserted=row.basis == "asserted",
    )
