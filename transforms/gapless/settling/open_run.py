"""An open run: pages of one chain that were applied and wait to be promoted together."""

from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from typing import Final, Protocol

from gapless.effects.lossless_json import NotJson, event_json
from gapless.effects.protocol import (
    DeadLetterRecord,
    EffectSession,
    EventFailure,
    RunOutput,
    RunStart,
    RunWriter,
)
from gapless.errors import EffectError
from gapless.paging.chain import CheckedPage
from gapless.progress import Assertion, Bound, Domain, highest
from gapless.settling.foreign_errors import of_effect
from gapless.settling.promotion_evidence import evidence_of, violations_of, with_resume
from gapless.store.records import ChainRow, DeadLetter, Promotion, Violation

MOST_DEAD: Final = 4096
"""A run is promoted with so many dead letters: they go into the store in the promotion's own transaction."""


class DeadLetterWriter(Protocol):
    """The dead letters of one run: durable when `finish` returns."""

    def add(self, record: DeadLetterRecord) -> str:
        """Keep one; its payload as lossless JSON text."""

    def finish(self) -> RunOutput: ...

    def abandon(self) -> None: ...


class DeadLetterSession(Protocol):
    def begin(self, start: RunStart) -> DeadLetterWriter: ...

    def close(self) -> None: ...


class DeadLetterEffect(Protocol):
    """Where dead letters go; picklable, `open` on the worker gives the session."""

    def open(self, scope: str, domain: Domain) -> DeadLetterSession: ...


class OpenRun:
    """Collects checked pages from `row`'s committed token on. `opened` is monotonic seconds; used by one thread.

    Whatever the effect raises is an EffectError here."""

    def __init__(
        self,
        row: ChainRow,
        domain: Domain,
        effect: EffectSession,
        dead_letters: DeadLetterSession | None,
        target_rows: int,
        max_seconds: float,
    ) -> None:
        self._row = row
        self._domain = domain
        self._effect = effect
        self._dead_letter_session = dead_letters
        self._target_rows = target_rows
        self._max_seconds = max_seconds
        self._start = RunStart(row.chain, row.partition, row.sequence, row.fencing_token)
        self._writer: RunWriter | None = None
        self._dead_writer: DeadLetterWriter | None = None
        self._dead: list[DeadLetter] = []
        self._settled: list[str] = []
        self._violations: list[Violation] = []
        self._opened: float | None = None
        self._bound: Bound | None = None
        self._basis = row.basis
        self._evidence: Mapping[str, object] | None = None
        self._read_to: Bound | None = None
        self._token_out = row.page_token
        self._resume: str | None = None
        self.pages = 0
        self.events = 0
        self.rows = 0
        self.ends = False
        self.done = False
        self.unproven_generation = False

    @property
    def next_sequence(self) -> int:
        return self._row.sequence + self.pages

    @property
    def finishes_chain(self) -> bool:
        """The source ended the chain, or the range's end is proved: there is nothing to read after this run."""
        return self.ends or self.done

    def full(self, now: float) -> bool:
        """Whether the run is to be promoted: enough events, or old enough."""
        if self._opened is None:
            return False
        dead = len(self._dead)
        return self.rows + dead >= self._target_rows or dead >= MOST_DEAD or self.seconds_left(now) == 0

    def seconds_left(self, now: float) -> float | None:
        """Until the run is old enough to be promoted; None while no page is in it."""
        return None if self._opened is None else max(0.0, self._opened + self._max_seconds - now)

    def apply(self, checked: CheckedPage, skip: Set[str]) -> Sequence[EventFailure]:
        """Give a page to the effect, all but `skip`; the events that failed, and then nothing of the page is in the run.

        After an EffectError the page is not in the run either; whether the pages before it are, `promotion` tells."""
        if not checked.page.ids:
            return ()
        with of_effect():
            if self._writer is None:
                self._writer = self._effect.begin(self._start)
            return self._writer.add(checked.page, self.next_sequence, skip)

    def dead_letter(self, failure: EventFailure, checked: CheckedPage) -> DeadLetter:
        """Keep an event of the page, to be given to `accept` with it. Raises EffectError."""
        row = checked.page.rows[failure.index]
        with of_effect():
            if self._dead_letter_session is None:
                return self._letter(failure, event_json(row))
            if self._dead_writer is None:
                self._dead_writer = self._dead_letter_session.begin(self._start)
            record = DeadLetterRecord(
                partition=self._row.partition,
                sequence=self.next_sequence,
                event_id=failure.event_id,
                position=failure.position,
                reason=failure.reason,
                row=row,
            )
            return self._letter(failure, self._dead_writer.add(record))

    def skipped_letters(self, checked: CheckedPage, receipts: Mapping[str, str]) -> list[DeadLetter]:
        """The events of the page that were given up on by an operator's word before their data was there.

        The store knows them by name only: it is given the data now. Where that cannot be written to the files, it does not
        hold what was released."""
        letters = []
        for index, event_id in enumerate(checked.page.ids):
            if receipts.get(event_id) != "dead_lettered":
                continue
            skipped = EventFailure(index, event_id, checked.page.positions[index], "skipped by an operator")
            try:
                letters.append(self.dead_letter(skipped, checked))
            except EffectError:
                with suppress(NotJson):
                    letters.append(self._letter(skipped, event_json(checked.page.rows[index])))
        return letters

    def _letter(self, failure: EventFailure, payload: str) -> DeadLetter:
        return DeadLetter(
            self._row.partition,
            self.next_sequence,
            failure.event_id,
            failure.position,
            failure.reason,
            payload,
        )

    def accept(
        self,
        checked: CheckedPage,
        now: float,
        dead_letters: Sequence[DeadLetter] = (),
        receipts: Collection[str] = (),
    ) -> None:
        """The page is applied, all but its dead letters, whose outcome is durable with the promotion.

        `receipts` are the events on it that had their outcome before: their receipts end with this run."""
        page = checked.page
        if self._opened is None:
            self._opened = now
        sequence = self.next_sequence
        self.pages += 1
        self.events += len(page.ids)
        self.rows = self._writer.rows if self._writer is not None else 0
        self._dead.extend(dead_letters)
        self._settled.extend(receipts)
        self._violations.extend(violations_of(self._row.partition, sequence, checked.violations))
        self._token_out = page.next_token
        self._resume = page.resume
        if page.generation is None:
            self.unproven_generation = True
        if page.positions:
            # Not the last one's: behind a certified bound, events may come in any order.
            self._read_to = highest(self._read_to, Bound.through(max(page.positions)))
        self._certify(checked, sequence)
        self.ends = page.end
        self.done = checked.done

    def _certify(self, checked: CheckedPage, sequence: int) -> None:
        certificate = checked.page.certificate
        if certificate is None:
            return
        if self._bound is None or certificate.bound > self._bound:
            self._bound = certificate.bound
            if isinstance(certificate, Assertion):
                self._basis = "asserted"
            self._evidence = evidence_of(certificate, self._domain, sequence)

    def promotion(self) -> Promotion:
        """Make the run durable and say how to promote it. Raises EffectError; then the run is to be abandoned."""
        with of_effect():
            output = self._writer.finish() if self._writer is not None else RunOutput(None, None, 0)
            self._writer = None
            letters = self._finished_letters()
        return Promotion(
            expected=self._row,
            pages=self.pages,
            token_in=self._row.page_token,
            token_out=self._token_out,
            bound=self._bound,
            basis=self._basis,
            read_to=self._read_to,
            end=self.ends,
            events=self.events,
            path=output.path,
            digest=output.digest,
            rows=output.rows,
            size=output.size,
            drift=output.drifted,
            evidence=with_resume(self._evidence, self._resume),
            dead_letters=letters,
            violations=self._violations,
            settled=self._settled,
        )

    def _finished_letters(self) -> list[DeadLetter]:
        if self._dead_writer is None:
            return self._dead
        where = self._dead_writer.finish().path
        self._dead_writer = None
        return [
            DeadLetter(d.partition, d.sequence, d.event_id, d.position, d.reason, d.payload, path=where)
            for d in self._dead
        ]

    def abandon(self) -> None:
        """Leave nothing of it behind."""
        writer, self._writer = self._writer, None
        dead_writer, self._dead_writer = self._dead_writer, None
        if writer is not None:
            writer.abandon()
        if dead_writer is not None:
            dead_writer.abandon()
