"""Everything that a scope's claims rest on, as the store holds it: for whoever derives them anew, or tells how they moved.

Rows come as they were written, bounds as keys and JSON as text: what was damaged shows as damaged, where it stands.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import RowMapping

from gapless.errors import GaplessError, StoreUnreadable
from gapless.progress import Domain, domain_from
from gapless.store import schema
from gapless.store.base import StoreBase
from gapless.store.engine import Ask

_chain, _promotion = schema.chain.c, schema.promotion.c
_letter, _receipt = schema.dead_letter.c, schema.receipt.c

Record: TypeAlias = Mapping[Any, Any]
"""A row of the store by its columns' names, or a JSON object out of one."""

FILES_AT_ONCE = 1000
"""How many promotions are read before the store is let go, and their files looked at."""


class Evidence:
    """One scope in one snapshot of the store. Every answer streams, in bounded memory, and may be read beside others.

    Raises StoreError; StoreUnreadable where a row cannot even be read."""

    def __init__(self, ask: Ask, scope: RowMapping, as_of: datetime, where: str) -> None:
        self.scope = scope
        self.name: str = scope["scope"]
        self.domain: Domain = domain_from(scope["domain"])
        self.as_of = as_of
        self._ask = ask
        self._where = where

    def chains(self) -> Iterator[RowMapping]:
        """Every chain of every lineage, by number. `successors` is JSON text."""
        left_out = {"fields", "parents", "successors"}
        columns = [column for column in schema.chain.c if column.name not in left_out]
        return self._rows(
            sa.select(*columns, _as_text(_chain.successors)).where(self._mine(_chain)).order_by(_chain.chain)
        )

    def promotions(self, chain: int | None = None) -> Iterator[RowMapping]:
        """Every promotion, or one chain's: by chain and sequence. `evidence` is JSON text."""
        columns = [column for column in _promotion if column.name not in ("evidence", "attempt")]
        wanted = sa.select(*columns, _as_text(_promotion.evidence))
        if chain is None:
            # Not a join: so the rows come along their primary key, and nothing is sorted.
            of_scope = sa.select(sa.literal(1)).where(_chain.chain == _promotion.chain, self._mine(_chain))
            wanted = wanted.where(of_scope.exists())
        else:
            wanted = wanted.where(_promotion.chain == chain)
        return self._rows(wanted.order_by(_promotion.chain, _promotion.sequence))

    def epochs(self) -> Iterator[RowMapping]:
        """Every membership epoch, by lineage and number. `proof` is JSON text."""
        column = schema.epoch.c
        columns = [one for one in column if one.name != "proof"]
        wanted = sa.select(*columns, _as_text(column.proof)).where(self._mine(column))
        return self._rows(wanted.order_by(column.lineage, column.epoch))

    def observations(self) -> Iterator[RowMapping]:
        """Every list of the source's that differed from the one before it, by number."""
        column = schema.observation.c
        return self._rows(
            sa.select(schema.observation).where(self._mine(column)).order_by(column.observation)
        )

    def frontier_moves(self) -> Iterator[RowMapping]:
        """Every publish, in order."""
        column = schema.frontier_history.c
        return self._rows(
            sa.select(schema.frontier_history).where(self._mine(column)).order_by(column.number)
        )

    def journal(self) -> Iterator[RowMapping]:
        """What was decided otherwise than by a promotion or a cutover, in order. `detail` is JSON text."""
        column = schema.journal.c
        columns = [one for one in column if one.name != "detail"]
        wanted = sa.select(*columns, _as_text(column.detail)).where(self._mine(column))
        return self._rows(wanted.order_by(column.number))

    def restarts(self) -> Iterator[RowMapping]:
        """What the journal holds of page tokens that were put in place of others, by chain: restarts, and chains opened again."""
        column = schema.journal.c
        wanted = sa.select(column.chain, _as_text(column.detail)).where(
            self._mine(column), column.action.in_(("restart", "reopen")), column.chain.is_not(None)
        )
        return self._rows(wanted.order_by(column.chain, column.number))

    def dead_letter_counts(self) -> Iterator[RowMapping]:
        """By chain: how many dead letters there are (`letters`)."""
        wanted = sa.select(_letter.chain, sa.func.count().label("letters")).where(self._mine(_letter))
        return self._rows(wanted.group_by(_letter.chain).order_by(_letter.chain))

    def dead_letters_astray(self) -> Iterator[RowMapping]:
        """Dead letters that name another chain than the scope's, or one of another partition or lineage."""
        strays = sa.or_(
            _chain.chain.is_(None),
            _chain.scope != _letter.scope,
            _chain.partition != _letter.partition,
            _chain.lineage != _letter.lineage,
        )
        joined = schema.dead_letter.outerjoin(schema.chain, _chain.chain == _letter.chain)
        columns = (_letter.chain, _letter.partition, _letter.lineage, _letter.sequence, _letter.event_id)
        return self._rows(sa.select(*columns).select_from(joined).where(self._mine(_letter), strays))

    def skipped_letters(self) -> Iterator[RowMapping]:
        """The dead letters that an operator's word has made."""
        columns = (_letter.chain, _letter.partition, _letter.lineage, _letter.sequence, _letter.event_id)
        wanted = sa.select(*columns).where(self._mine(_letter), _letter.operator.is_not(None))
        return self._rows(wanted.order_by(_letter.number))

    def dead_letter_files(self) -> Iterator[RowMapping]:
        """Every file of dead letters, with how many letters name it (`letters`)."""
        wanted = sa.select(_letter.path, sa.func.count().label("letters"))
        named = wanted.where(self._mine(_letter), _letter.path.is_not(None))
        return self._rows(named.group_by(_letter.path).order_by(_letter.path))

    def receipts(self) -> int:
        """How many events of open pages have their outcome already."""
        joined = schema.receipt.join(schema.chain, _chain.chain == _receipt.chain)
        counted = sa.select(sa.func.count().label("receipts")).select_from(joined).where(self._mine(_chain))
        (row,) = self._rows(counted)
        return int(row["receipts"])

    def receipts_astray(self) -> Iterator[RowMapping]:
        """Receipts that cannot be: of a chain that has ended, of an unknown outcome, `dead_lettered` without a dead letter.

        `letter` is None where there is no dead letter of the event."""
        letter = sa.and_(_letter.chain == _receipt.chain, _letter.event_id == _receipt.event_id)
        joined = schema.receipt.join(schema.chain, _chain.chain == _receipt.chain).outerjoin(
            schema.dead_letter, letter
        )
        wrong = sa.or_(
            _chain.state == "ended",
            _receipt.outcome.not_in(("delivered", "dead_lettered")),
            sa.and_(_receipt.outcome == "dead_lettered", _letter.number.is_(None)),
        )
        columns = (_receipt.chain, _receipt.event_id, _receipt.outcome, _chain.partition, _chain.lineage)
        wanted = sa.select(*columns, _chain.state, _letter.number.label("letter")).select_from(joined)
        return self._rows(wanted.where(self._mine(_chain), wrong).order_by(_receipt.chain, _receipt.event_id))

    def orphans(self) -> Iterator[tuple[str, RowMapping]]:
        """What belongs to a chain that is nowhere, of whatever scope: ("promotion" | "receipt", chain and `records`)."""
        for name, table in (("promotion", schema.promotion), ("receipt", schema.receipt)):
            chain = table.c.chain
            there = sa.select(sa.literal(1)).where(_chain.chain == chain).exists()
            wanted = sa.select(chain, sa.func.count().label("records")).where(~there)
            for row in self._rows(wanted.group_by(chain).order_by(chain)):
                yield name, row

    def listed_twice(self) -> Iterator[RowMapping]:
        """Files that more than one promotion of a lineage's data set names."""
        joined = schema.promotion.join(schema.chain, _chain.chain == _promotion.chain)
        wanted = (
            sa.select(_chain.lineage, _promotion.path, sa.func.count().label("records"))
            .select_from(joined)
            .where(self._mine(_chain), schema.in_data_set(), _promotion.path.is_not(None))
            .group_by(_chain.lineage, _promotion.path)
            .having(sa.func.count() > 1)
        )
        return self._rows(wanted.order_by(_chain.lineage, _promotion.path))

    def _mine(self, columns: Any) -> sa.ColumnElement[bool]:
        mine: sa.ColumnElement[bool] = columns.scope == self.name
        return mine

    def _rows(self, wanted: sa.Select[Any]) -> Iterator[RowMapping]:
        with closing(self._ask(wanted)) as rows:
            try:
                yield from rows
            except (TypeError, ValueError) as error:
                if isinstance(error, GaplessError):
                    raise
                raise StoreUnreadable(
                    f"the store is damaged: a row cannot be read: {error}",
                    where=self._where,
                    remedy="restore it from a backup, or start over with a new store",
                ) from error


class EvidenceReading(StoreBase):
    """The evidence of a scope, in one snapshot; and its files, which outlive any snapshot."""

    @contextmanager
    def evidence(self, scope: str) -> Iterator[Evidence]:
        """One snapshot of everything, over a connection of its own. Raises UnknownScope."""
        wanted = sa.select(schema.scope).where(schema.scope.c.scope == scope)
        with self._database.view() as ask:
            found = list(ask(wanted))
            if not found:
                raise self._unknown(scope)
            yield Evidence(ask, found[0], self._clock.now(), self._database.where)

    def promoted_files(self, scope: str) -> Iterator[RowMapping]:
        """Every promotion with a file that is in a lineage's data set, or may yet come into it (a candidate's), by chain.

        No snapshot is held between the rows, however long each takes: a promotion once written stays as it is."""
        columns = (
            *(_promotion.chain, _promotion.sequence, _promotion.path, _promotion.digest),
            *(_promotion.size, _promotion.rows, _chain.partition, _chain.lineage),
        )
        candidate = schema.is_candidate()
        last = (-1, -1)
        while True:
            after = sa.or_(
                _promotion.chain > last[0],
                sa.and_(_promotion.chain == last[0], _promotion.sequence > last[1]),
            )
            wanted = (
                sa.select(*columns)
                .join(schema.chain, _chain.chain == _promotion.chain)
                .where(_chain.scope == scope, sa.or_(schema.in_data_set(), candidate), after)
                .where(_promotion.chain >= last[0], _promotion.path.is_not(None))
                .order_by(_promotion.chain, _promotion.sequence)
                .limit(FILES_AT_ONCE)
            )
            batch = self._database.read(
                lambda connection, wanted=wanted: connection.execute(wanted).mappings().all()  # type: ignore[misc]
            )
            yield from batch
            if len(batch) < FILES_AT_ONCE:
                return
            last = (batch[-1]["chain"], batch[-1]["sequence"])


def json_object(text: str | None) -> Record:
    """A JSON object as it stands in the store; NULL is an empty one. Raises ValueError for anything else.

    >>> json_object('{"by":"first list"}'), json_object(None)
    ({'by': 'first list'}, {})
    """
    value = {} if text is None else json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"{text!r} is no JSON object")  # noqa: TRY004 - a value of the store, not of a program
    return value


def _as_text(column: sa.Column[Any]) -> sa.Label[str]:
    return sa.type_coerce(column, sa.Text()).label(column.name)
