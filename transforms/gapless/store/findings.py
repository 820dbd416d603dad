"""What a chain leaves behind besides its data: dead letters, violations, and the journal of what was decided by hand."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.errors import ConfigurationError
from gapless.progress import Domain
from gapless.store import schema
from gapless.store.base import StoreBase, insert_new
from gapless.store.batches import batches
from gapless.store.columns import canonical_json
from gapless.store.records import ChainRow, DeadLetter, Violation
from gapless.store.rows import chain_row, dead_letter, write_position
from gapless.store.swaps import ADD_DEAD_LETTERS


class Findings(StoreBase):
    """Recording violations, and turning a held event into a dead letter by an operator's word."""

    def record_violations(self, expected: ChainRow, violations: Sequence[Violation]) -> None:
        """Store what the source broke. Idempotent: the same finding, met again, is one violation.

        Not guarded by the fencing token: that the source broke its promise is true whoever saw it."""
        now = self._clock.now()

        def work(connection: Connection) -> None:
            record_violations(connection, expected, violations, self._domain(connection, expected.scope), now)

        self._database.write(work)

    def skip(self, scope: str, partition: str, event_id: str, reason: str, operator: str) -> DeadLetter:
        """Give a held event the outcome `dead_lettered`, audited: the next run goes on past it. Skipping twice is once.

        Raises UnknownScope; ConfigurationError where the partition is not held on this event, or a reason is missing."""
        if not reason.strip():
            raise ConfigurationError(
                "skipping an event needs a reason", remedy="--reason TEXT; it is kept with the event"
            )
        now = self._clock.now()

        def work(connection: Connection) -> DeadLetter:
            domain = self._domain(connection, scope)
            row = self._held_on(connection, scope, partition, event_id)
            expected = chain_row(row, domain)
            letter = DeadLetter(
                partition=partition,
                sequence=row["sequence"],
                event_id=event_id,
                position=domain.from_text(row["blocker_position"]),
                reason=reason,
                payload="",
                operator=operator,
                recorded_at=now,
            )
            receipt = {
                "chain": row["chain"],
                "event_id": event_id,
                "outcome": "dead_lettered",
                "recorded_at": now,
            }
            connection.execute(insert_new(connection, schema.receipt), [receipt])
            if record_dead_letters(connection, expected, [letter], domain, now):
                connection.execute(ADD_DEAD_LETTERS, {"at_chain": row["chain"], "new_dead_letters": 1})
                journal(connection, expected, "skip", {"event_id": event_id}, reason, now, operator)
            return _stored_letter(connection, row["chain"], event_id, domain)

        return self._database.write(work)

    def _held_on(self, connection: Connection, scope: str, partition: str, event_id: str) -> RowMapping:
        """The live chain whose blocker is this event, locked. Raises ConfigurationError that says what it is held on."""
        column = schema.chain.c
        lineage = self._scope_row(connection, scope)["lineage"]
        wanted = sa.select(schema.chain).where(
            column.scope == scope, column.lineage == lineage, column.partition == partition, schema.is_live()
        )
        rows = connection.execute(wanted.order_by(column.chain).with_for_update()).mappings().all()
        if not rows:
            raise ConfigurationError(
                f"scope {scope!r} has no partition {partition!r}",
                where=self._database.where,
                remedy="gapless status",
            )
        for row in rows:
            if row["blocker_event_id"] == event_id and row["blocker_code"] is not None:
                return row
        held = [
            str(row["blocker_event_id"] or row["blocker_code"])
            for row in rows
            if row["blocker_code"] is not None
        ]
        raise ConfigurationError(
            f"partition {partition!r} is not held on event {event_id!r}"
            + (f" but on {', '.join(held)}" if held else ": it is not held"),
            where=self._database.where,
            remedy="gapless explain shows who holds what",
        )


def record_dead_letters(
    connection: Connection, expected: ChainRow, letters: Sequence[DeadLetter], domain: Domain, now: datetime
) -> int:
    """Store dead letters of a chain whose row this transaction has locked. Returns how many events had none before.

    Where an operator has skipped the event, the payload is added to what is there, and the operator's word stays."""
    known = _known_letters(connection, expected.chain, [letter.event_id for letter in letters])
    new: dict[str, DeadLetter] = {}
    for letter in letters:
        if letter.event_id in known:
            _complete_letter(connection, expected.chain, letter)
        else:
            new.setdefault(letter.event_id, letter)
    if new:
        rows = [
            {
                "scope": expected.scope,
                "lineage": expected.lineage,
                "chain": expected.chain,
                "partition": expected.partition,
                "sequence": letter.sequence,
                "event_id": letter.event_id,
                "position": domain.text(letter.position),
                "reason": letter.reason,
                "payload": letter.payload,
                "path": letter.path,
                "operator": letter.operator,
                "recorded_at": letter.recorded_at or now,
            }
            for letter in new.values()
        ]
        connection.execute(sa.insert(schema.dead_letter), rows)
    return len(new)


def _known_letters(connection: Connection, chain: int, ids: Sequence[str]) -> set[str]:
    column = schema.dead_letter.c
    known: set[str] = set()
    for some in batches(ids):
        wanted = sa.select(column.event_id).where(column.chain == chain, column.event_id.in_(some))
        known.update(connection.execute(wanted).scalars())
    return known


def _complete_letter(connection: Connection, chain: int, letter: DeadLetter) -> None:
    column = schema.dead_letter.c
    bare = sa.update(schema.dead_letter).where(
        column.chain == chain, column.event_id == letter.event_id, column.payload == "", column.path.is_(None)
    )
    connection.execute(bare.values(payload=letter.payload, path=letter.path, sequence=letter.sequence))


def _stored_letter(connection: Connection, chain: int, event_id: str, domain: Domain) -> DeadLetter:
    column = schema.dead_letter.c
    wanted = sa.select(schema.dead_letter).where(column.chain == chain, column.event_id == event_id)
    return dead_letter(connection.execute(wanted).mappings().one(), domain)


def record_violations(
    connection: Connection, expected: ChainRow, violations: Sequence[Violation], domain: Domain, now: datetime
) -> None:
    """Store violations of a chain, each finding once."""
    rows = [
        {
            "scope": expected.scope,
            "lineage": expected.lineage,
            "chain": expected.chain,
            "partition": expected.partition,
            "kind": found.kind,
            "sequence": found.sequence,
            "event_id": found.event_id,
            "position": write_position(domain, found.position),
            "bound": domain.key(found.bound),
            "detail": found.detail,
            "mark": _mark(found, domain),
            "recorded_at": found.recorded_at or now,
        }
        for found in violations
    ]
    if rows:
        connection.execute(insert_new(connection, schema.violation), rows)


def _mark(found: Violation, domain: Domain) -> str:
    """Equal for the same finding: an event behind a bound is one however often, and on whatever page, it is met again."""
    where = found.sequence if found.event_id is None else None
    what = [
        found.kind,
        found.event_id,
        write_position(domain, found.position),
        where,
        domain.key(found.bound).hex(),
    ]
    return hashlib.sha256(canonical_json(what).encode("ascii")).hexdigest()


def journal(
    connection: Connection,
    expected: ChainRow,
    action: str,
    detail: Mapping[str, object],
    reason: str,
    now: datetime,
    operator: str | None = None,
) -> None:
    """Keep what changed a chain otherwise than by a promotion."""
    connection.execute(
        sa.insert(schema.journal).values(
            scope=expected.scope,
            lineage=expected.lineage,
            chain=expected.chain,
            partition=expected.partition,
            action=action,
            detail=dict(detail),
            reason=reason,
            operator=operator,
            recorded_at=now,
        )
    )
