"""An open run: pages of one chain that were applied and wait to be promoted together."""

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from gapless.effects.protocol import (
    DeadLetterRecord,
    EffectSession,
    EventFailure,
    RunOutput,
    RunStart,
    RunWriter,
)
from gapless.paging.chain import CheckedPage
from gapless.progress import Assertion, Bound, Domain
from gapless.store.records import ChainRow, DeadLetter, Promotion, Violation


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
    """Collects checked pages from `row`'s committed token on. `opened` is monotonic seconds; used by one thread."""

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
        self._violations: list[Violation] = []
        self._opened: float | None = None
        self._bound: Bound | None = None
        self._basis = row.basis
        self._evidence: Mapping[str, object] | None = None
        self._read_to: Bound | None = None
        self._token_out = row.page_token
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
        return self.rows >= self._target_rows or now - self._opened >= self._max_seconds

    def apply(self, checked: CheckedPage, skip: Set[str]) -> Sequence[EventFailure]:
        """Give a page to the effect, all but `skip`; the events that failed, and then nothing of the page is in the run."""
        if not checked.page.ids:
            return ()
        if self._writer is None:
            self._writer = self._effect.begin(self._start)
        return self._writer.add(checked.page, self.next_sequence, skip)

    def _dead_letter(self, failure: EventFailure, checked: CheckedPage) -> None:
        record = DeadLetterRecord(
            partition=self._row.partition,
            sequence=self.next_sequence,
            event_id=failure.event_id,
            position=failure.position,
            reason=failure.reason,
            row=checked.page.rows[failure.index],
        )
        if self._dead_letter_session is None:
            raise AssertionError("an event may only be dead-lettered where the job says so")
        if self._dead_writer is None:
            self._dead_writer = self._dead_letter_session.begin(self._start)
        payload = self._dead_writer.add(record)
        self._dead.append(
            DeadLetter(
                record.partition, record.sequence, record.event_id, record.position, record.reason, payload
            )
        )

    def accept(self, checked: CheckedPage, now: float, dead: Sequence[EventFailure] = ()) -> None:
        """The page is applied, all but the events in `dead`, whose outcome is `dead_lettered`: durable with the promotion."""
        page = checked.page
        for failure in dead:
            self._dead_letter(failure, checked)
        if self._opened is None:
            self._opened = now
        sequence = self.next_sequence
        self.pages += 1
        self.events += len(page.ids)
        self.rows = self._writer.rows if self._writer is not None else 0
        self._violations.extend(
            Violation(
                partition=self._row.partition,
                kind=broken.kind,
                sequence=sequence,
                detail=broken.detail,
                event_id=broken.event_id,
                position=broken.position,
                bound=broken.bound,
            )
            for broken in checked.violations
        )
        self._token_out = page.next_token
        if page.generation is None:
            self.unproven_generation = True
        if page.positions:
            self._read_to = Bound.through(page.positions[-1])
        self._certify(checked, sequence)
        self.ends = page.end
        self.done = checked.done

    def _certify(self, checked: CheckedPage, sequence: int) -> None:
        certificate = checked.page.certificate
        if certificate is None:
            return
        asserted = isinstance(certificate, Assertion)
        if self._bound is None or certificate.bound > self._bound:
            self._bound = certificate.bound
            if asserted:
                self._basis = "asserted"
            self._evidence = {
                "position": self._domain.text(certificate.bound.position),
                "inclusive": certificate.bound.inclusive,
                "sequence": sequence,
                **(
                    {"reason": certificate.reason}
                    if isinstance(certificate, Assertion)
                    else {"issuer": certificate.issuer}
                ),
            }

    def promotion(self) -> Promotion:
        """Make the run durable and say how to promote it. Raises EffectError; then the run is to be abandoned."""
        output = self._writer.finish() if self._writer is not None else RunOutput(None, None, 0)
        self._writer = None
        letters = self._dead
        if self._dead_writer is not None:
            where = self._dead_writer.finish().path
            self._dead_writer = None
            letters = [
                DeadLetter(d.partition, d.sequence, d.event_id, d.position, d.reason, d.payload, path=where)
                for d in self._dead
            ]
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
            evidence=self._evidence,
            dead_letters=letters,
            violations=self._violations,
        )

    def abandon(self) -> None:
        """Leave nothing of it behind."""
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None
        if self._dead_writer is not None:
            self._dead_writer.abandon()
            self._dead_writer = None
