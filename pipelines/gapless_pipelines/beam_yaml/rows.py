"""Elements of gapless as rows of Beam's: flat, with named fields, each with one type.

Positions, ids and bounds are text in the scope's canonical form: Beam's integers end at 2^63. What is not known is null.
"""

import json
from collections.abc import Callable
from typing import Any, Optional

import apache_beam as beam
from apache_beam.pvalue import PCollection, Row
from apache_beam.typehints.row_type import RowTypeConstraint

from gapless.clock import instant_text
from gapless.delivery import CoveredRange, Held
from gapless.progress import Bound, DeliveryFrontier, Domain
from gapless.store.records import DeadLetter
from gapless.updates import FrontierUpdate, PartitionProgress

Fields = list[tuple[str, Any]]
# `Optional` and not `|`: Beam's schemas know the one on every Python.
_TEXT = Optional[str]  # noqa: UP045
_FLAG = Optional[bool]  # noqa: UP045
_NUMBER = Optional[int]  # noqa: UP045

FRONTIER: Fields = [
    ("scope", str),
    ("lineage", int),
    ("membership_epoch", int),
    ("position", _TEXT),
    ("inclusive", _FLAG),
    ("after", _TEXT),
    ("after_inclusive", _FLAG),
    ("basis", str),
    ("withheld", _TEXT),
    ("blockers", str),
]
"""A published frontier. `position` null: withheld; `withheld` is the code. `blockers`: a JSON array, each names its partition."""
PROGRESS: Fields = [
    ("scope", str),
    ("partition", str),
    ("state", str),
    ("membership_epoch", int),
    ("sequence", int),
    ("events", int),
    ("position", _TEXT),
    ("inclusive", _FLAG),
    ("basis", str),
    ("blocker", _TEXT),
    ("hint", _TEXT),
]
"""Where a partition durably stands."""
DEAD_LETTER: Fields = [
    ("partition", str),
    ("sequence", int),
    ("event_id", str),
    ("position", str),
    ("reason", str),
    ("payload", str),
]
"""An event that was given up; `payload` is its data as JSON text."""
SHARD: Fields = [
    ("shard", str),
    ("coverage", str),
    ("through", str),
    ("blocker", _TEXT),
    ("blocker_id", _TEXT),
    ("blocker_status", _TEXT),
]
"""A shard of a message log: every row through `through` is terminal, those through `coverage` are handed on."""
TABLE: Fields = [("table", str), ("through", _TEXT), ("withheld", _TEXT)]
"""A whole table: every row through `through` is terminal. Null: withheld, and `withheld` says why."""
COVERED: Fields = [("shard", str), ("after", str), ("through", str), ("rows", int)]
"""A range that was handed on: the rows with after < id <= through."""
HELD: Fields = [("shard", str), ("after", str), ("through", str), ("error", str), ("failures", int)]
"""A range whose effect failed."""


def as_rows(
    elements: PCollection[Any], label: str, fields: Fields, row_of: Callable[..., Row], *context: Any
) -> PCollection[Row]:
    """`elements` as rows, under the schema of `fields`."""
    rows: PCollection[Row] = elements | label >> beam.Map(row_of, *context).with_output_types(
        RowTypeConstraint.from_fields(fields)
    )
    return rows


def frontier_row(update: FrontierUpdate) -> Row:
    blockers = [
        {
            "partition": partition,
            "code": blocker.code,
            "event_id": blocker.event_id,
            "position": None if blocker.position is None else update.domain.text(blocker.position),
            "since": None if blocker.since is None else instant_text(blocker.since),
            "hint": blocker.hint,
        }
        for partition, blocker in update.blockers
    ]
    return Row(
        scope=update.scope,
        lineage=update.lineage,
        membership_epoch=update.membership_epoch,
        position=_position(update.bound, update.domain),
        inclusive=_inclusive(update.bound),
        after=_position(update.after, update.domain),
        after_inclusive=_inclusive(update.after),
        basis=update.basis,
        withheld=update.withheld,
        blockers=json.dumps(blockers, ensure_ascii=False),
    )


def progress_row(progress: PartitionProgress) -> Row:
    return Row(
        scope=progress.scope,
        partition=progress.partition,
        state=str(progress.state),
        membership_epoch=progress.epoch,
        sequence=progress.sequence,
        events=progress.events,
        position=_position(progress.bound, progress.domain),
        inclusive=_inclusive(progress.bound),
        basis=progress.basis,
        blocker=progress.blocker,
        hint=progress.blocker_hint,
    )


def dead_letter_row(letter: DeadLetter, domain: Domain) -> Row:
    return Row(
        partition=letter.partition,
        sequence=letter.sequence,
        event_id=letter.event_id,
        position=domain.text(letter.position),
        reason=letter.reason,
        payload=letter.payload,
    )


def shard_row(frontier: DeliveryFrontier) -> Row:
    blocker = frontier.blocker
    return Row(
        shard=str(frontier.shard),
        coverage=str(frontier.coverage),
        through=str(frontier.through),
        blocker=None if blocker is None else blocker.code,
        blocker_id=None if blocker is None or blocker.id is None else str(blocker.id),
        blocker_status=None if blocker is None or blocker.status is None else str(blocker.status),
    )


def covered_row(covered: CoveredRange) -> Row:
    return Row(
        shard=str(covered.shard), after=str(covered.after), through=str(covered.through), rows=covered.rows
    )


def held_row(held: Held) -> Row:
    due = held.due
    return Row(
        shard=str(due.shard),
        after=str(due.after),
        through=str(due.through),
        error=held.error,
        failures=held.failures,
    )


def _position(bound: Bound | None, domain: Domain) -> str | None:
    return None if bound is None else domain.text(bound.position)


def _inclusive(bound: Bound | None) -> bool | None:
    return None if bound is None else bound.inclusive
