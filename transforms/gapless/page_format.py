"""Byte formats of settling in the pipeline: pages, outcomes, and the tracker's state; by the rules of `state_format`.

Rows are JSON, whose integers have any size. Where that would not say exactly what a row was (a date, bytes, NaN, a tuple), the
rows of that page are pickled instead: a source of one's own may give such.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from apache_beam.coders.typecoders import registry

from gapless.emitted_page import EmittedPage, LetterOf, Outcome, ReaderStop
from gapless.paging.chain import PageViolation
from gapless.paging.page import Row
from gapless.progress import Assertion, Bound, Certificate, ChainState, Domain, Position, Terminal
from gapless.state_format import (
    Deterministic,
    PartitionProgressCoder,
    ReadTaskCoder,
    pack,
    position_from,
    position_value,
    unpack,
)
from gapless.tracking.log_entry import LogEntry

_TASK: Final = ReadTaskCoder()
_PROGRESS: Final = PartitionProgressCoder()
_AS_JSON, _AS_PICKLE = 0, 1
_PLAIN, _STRUCTURED = 0, 1
_JSON: Final = msgspec.json.Encoder()
_FROM_JSON: Final = msgspec.json.Decoder(list[dict[str, Any]])


class EmittedPageCoder(Deterministic):
    """`[task, attempt, number, start token, next token, ids, form, positions, form, rows, certificate, generation, violations,
    settled, progress, stop]`, and the token for a stream to resume with where the page has one.

    Positions: form 0 as they are, 1 as in a dead letter. Rows: form 0 JSON, 1 a pickle. Certificate: `[kind, bound key, issuer or
    reason]`, kind 0 certified and 1 asserted. Violation: `[kind, detail, event, position, bound key]`. Settled: `[[event,
    outcome]]`. Stop: `[at token, state, code, hint, retry at]`."""

    def encode(self, value: EmittedPage) -> bytes:
        return pack(*page_values(value))

    def decode(self, encoded: bytes) -> EmittedPage:
        return page_from(unpack(encoded, "page"))


class OutcomeCoder(Deterministic):
    """`[scope, chain, attempt, ids, [[event, position, reason, payload]], part, of, position read through, number]`."""

    def encode(self, value: Outcome) -> bytes:
        return pack(*outcome_values(value))

    def decode(self, encoded: bytes) -> Outcome:
        return outcome_from(unpack(encoded, "outcome"))


class LogEntryCoder(Deterministic):
    """A page's or an outcome's values: their number tells which."""

    def encode(self, value: LogEntry) -> bytes:
        said = value.said
        return pack(*(outcome_values(said) if isinstance(said, Outcome) else page_values(said)))

    def decode(self, encoded: bytes) -> LogEntry:
        values = unpack(encoded, "log entry")
        return LogEntry(outcome_from(values) if len(values) == _OUTCOME_VALUES else page_from(values))


@dataclass(frozen=True, slots=True)
class LogHead:
    """What is read of a chain's state first: `stamp` is another one with each write, `weight` that of the log."""

    stamp: bytes
    weight: int


class LogHeadCoder(Deterministic):
    """`[stamp, weight]`."""

    def encode(self, value: LogHead) -> bytes:
        return pack(value.stamp, value.weight)

    def decode(self, encoded: bytes) -> LogHead:
        return LogHead(*unpack(encoded, "head of a log"))


_OUTCOME_VALUES: Final = 9


def page_values(page: EmittedPage) -> tuple[object, ...]:
    domain = page.task.domain
    stop = page.stop
    return (
        _TASK.encode(page.task),
        page.attempt,
        page.number,
        page.start_token,
        page.next_token,
        list(page.ids),
        *_positions(page.positions),
        *_rows(page.rows),
        _certificate(page.certificate, domain),
        page.generation,
        [_violation(broken, domain) for broken in page.violations],
        None
        if page.settled is None
        else [[event, each.value] for event, each in sorted(page.settled.items())],
        None if page.progress is None else _PROGRESS.encode(page.progress),
        None if stop is None else [stop.at_token, stop.state.value, stop.code, stop.hint, stop.retry_at],
        *(() if page.resume is None else (page.resume,)),
    )


def page_from(values: list[Any]) -> EmittedPage:
    (task, attempt, number, start, following, ids, form, positions, rows_form, rows) = values[:10]
    certificate, generation, violations, settled, progress, stop, *resume = values[10:]
    task = _TASK.decode(task)
    domain = task.domain
    return EmittedPage(
        task=task,
        attempt=attempt,
        number=number,
        start_token=start,
        next_token=following,
        ids=ids or (),
        positions=_positions_from(form, positions),
        rows=_rows_from(rows_form, rows),
        certificate=_certificate_from(certificate, domain),
        generation=generation,
        violations=[_violation_from(broken, domain) for broken in violations] or (),
        settled=None if settled is None else {event: Terminal(each) for event, each in settled},
        progress=None if progress is None else _PROGRESS.decode(progress),
        stop=None if stop is None else ReaderStop(stop[0], ChainState(stop[1]), *stop[2:]),
        resume=resume[0] if resume else None,
    )


def outcome_values(outcome: Outcome) -> tuple[object, ...]:
    return (
        outcome.scope,
        outcome.chain,
        outcome.attempt,
        outcome.event_ids,
        [[one.event_id, position_value(one.position), one.reason, one.payload] for one in outcome.letters],
        *outcome.part,
        None if outcome.read_through is None else position_value(outcome.read_through),
        outcome.number,
    )


def outcome_from(values: list[Any]) -> Outcome:
    scope, chain, attempt, ids, letters, number, of, through, page_number = values
    return Outcome(
        scope=scope,
        chain=chain,
        attempt=attempt,
        event_ids=None if ids is None else tuple(ids),
        letters=tuple(LetterOf(event, position_from(at), *said) for event, at, *said in letters),
        part=(number, of),
        read_through=None if through is None else position_from(through),
        number=page_number,
    )


def _positions(positions: Sequence[Position]) -> tuple[int, list[object]]:
    kinds = set(map(type, positions))
    if kinds <= {str} or (kinds == {int} and _fits(positions)):
        return _PLAIN, list(positions)
    return _STRUCTURED, [position_value(position) for position in positions]


def _positions_from(form: int, positions: list[Any]) -> Sequence[Position]:
    if form == _STRUCTURED:
        return [position_from(position) for position in positions]
    return positions or ()


def _fits(positions: Sequence[Any]) -> bool:
    return min(positions) >= -(1 << 63) and max(positions) < 1 << 64


def _rows(rows: Sequence[Row]) -> tuple[int, bytes]:
    """The rows as bytes. JSON counts only where it gives back what went in: nothing became null, text or another number."""
    plain = list(rows)
    try:
        encoded = _JSON.encode(plain)
        if _FROM_JSON.decode(encoded) == plain:
            return _AS_JSON, encoded
    except (TypeError, ValueError, RecursionError):
        # Of a type, or a text, that JSON does not know.
        pass
    return _AS_PICKLE, pickle.dumps(plain, protocol=4)


def _rows_from(form: int, rows: bytes) -> Sequence[Row]:
    if form == _AS_JSON:
        return _FROM_JSON.decode(rows) or ()
    # Written by a worker of this pipeline, as every element of a type without a coder of its own is.
    pickled: Sequence[Row] = pickle.loads(rows)  # noqa: S301
    return pickled


def _certificate(certificate: Certificate | Assertion | None, domain: Domain) -> list[object] | None:
    if certificate is None:
        return None
    if isinstance(certificate, Assertion):
        return [1, domain.key(certificate.bound), certificate.reason]
    return [0, domain.key(certificate.bound), certificate.issuer]


def _certificate_from(values: list[Any] | None, domain: Domain) -> Certificate | Assertion | None:
    if values is None:
        return None
    kind, key, said = values
    bound: Bound = domain.from_key(key)  # type: ignore[assignment]
    return Assertion(bound, said) if kind else Certificate(bound, said)


def _violation(broken: PageViolation, domain: Domain) -> list[object]:
    position = None if broken.position is None else position_value(broken.position)
    return [broken.kind, broken.detail, broken.event_id, position, domain.key(broken.bound)]


def _violation_from(values: list[Any], domain: Domain) -> PageViolation:
    kind, detail, event, position, bound = values
    at = None if position is None else position_from(position)
    return PageViolation(kind, detail, event, at, domain.from_key(bound))


def register_page_coders() -> None:
    """Make Beam use these coders, in every process that runs the transforms."""
    for kind, coder in (
        (EmittedPage, EmittedPageCoder),
        (Outcome, OutcomeCoder),
        (LogEntry, LogEntryCoder),
    ):
        registry.register_coder(kind, coder)


register_page_coders()
