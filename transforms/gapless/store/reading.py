"""Reading a scope: one consistent snapshot for `status`, and streams of what may be long."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.errors import ForeignLineage
from gapless.progress import Domain
from gapless.store import rows, schema
from gapless.store.base import StoreBase
from gapless.store.listing import departed_successors
from gapless.store.membership import is_frozen
from gapless.store.records import (
    DeadLetter,
    Listed,
    PromotionRow,
    RunRow,
    Snapshot,
    SupersededLineage,
    Totals,
    Violation,
)

T = TypeVar("T")


class Reading(StoreBase):
    """Nothing here writes. Streams hold one snapshot over a connection of their own until they are exhausted or closed."""

    def snapshot(self, scope: str) -> Snapshot:
        """Scope, live chains (members and candidates) and the latest run, of one instant. Raises UnknownScope."""

        def work(connection: Connection) -> Snapshot:
            row = self._scope_row(connection, scope)
            domain = self._domain(connection, scope)
            column = schema.chain.c
            live = sa.select(schema.chain).where(
                column.scope == scope, column.lineage == row["lineage"], schema.is_live()
            )
            chains = connection.execute(live.order_by(column.chain)).mappings()
            known = [rows.chain_row(chain, domain) for chain in chains]
            violations = _violations(connection, scope)
            as_of = self._clock.now()
            return Snapshot(
                scope=rows.frontier_row(row),
                chains=known,
                run=_latest_run(connection, scope, as_of),
                violations=violations.get(row["lineage"], 0),
                as_of=as_of,
                totals=_totals(connection, row),
                frozen=is_frozen(connection, row),
                departed=departed_successors(connection, row, known),
                superseded=_superseded(connection, row, domain, violations),
            )

        return self._database.read(work)

    def violations_of(self, scope: str, lineage: int) -> int:
        """How many violations were recorded in a lineage of the scope."""
        return self._database.read(lambda connection: _violations(connection, scope)).get(lineage, 0)

    def promotions(
        self, scope: str, lineage: int | None = None, *, every: bool = False
    ) -> Iterator[PromotionRow]:
        """The promoted runs that make the data set of a lineage (default: the present one), chain by chain in sequence.

        A candidate's are not in it yet, those of a replaced chain no more, and pages without rows never; `every` gives all
        promotions of the lineage, as evidence. Raises UnknownScope, ForeignLineage where the scope has no such lineage."""
        row = self._database.read(lambda connection: self._scope_row(connection, scope))
        lineage = row["lineage"] if lineage is None else lineage
        if not 1 <= lineage <= row["lineage"]:
            raise ForeignLineage(
                f"scope {scope!r} has no lineage {lineage}: it is in lineage {row['lineage']}",
                where=self._database.where,
            )
        chain, promotion = schema.chain.c, schema.promotion.c
        wanted = (
            sa.select(schema.promotion, chain.partition)
            .join(schema.chain, chain.chain == promotion.chain)
            .where(chain.scope == scope, chain.lineage == lineage)
            .order_by(promotion.chain, promotion.sequence)
        )
        if not every:
            wanted = wanted.where(schema.in_data_set(), promotion.rows > 0)
        return self._stream(scope, wanted, rows.promotion_row)

    def promoted_by(self, scope: str, fencing_token: int) -> tuple[int, int]:
        """How many pages and events the run of that number has promoted, also of chains that have left since."""
        chain, promotion = schema.chain.c, schema.promotion.c
        sums = (
            sa.select(
                *(sa.func.coalesce(sa.func.sum(column), 0) for column in (promotion.pages, promotion.events))
            )
            .join(schema.chain, chain.chain == promotion.chain)
            .where(chain.scope == scope, promotion.fencing_token == fencing_token)
        )
        pages, events = self._database.read(lambda connection: connection.execute(sums).one())
        return int(pages), int(events)

    def dead_letters(self, scope: str) -> Iterator[DeadLetter]:
        """Every dead letter of the scope, in the order they were recorded. Raises UnknownScope."""
        column = schema.dead_letter.c
        wanted = sa.select(schema.dead_letter).where(column.scope == scope).order_by(column.number)
        return self._stream(scope, wanted, rows.dead_letter)

    def violations(self, scope: str) -> Iterator[Violation]:
        """Everything the source broke, in the order it was found. Raises UnknownScope."""
        column = schema.violation.c
        wanted = sa.select(schema.violation).where(column.scope == scope).order_by(column.number)
        return self._stream(scope, wanted, rows.violation)

    def sweepable(self, scope: str) -> Listed:
        """What a sweep of files may not touch. Raises UnknownScope."""

        def work(connection: Connection) -> Listed:
            self._scope_row(connection, scope)
            chain, promotion = schema.chain.c, schema.promotion.c
            paths = (
                sa.select(promotion.path)
                .join(schema.chain, chain.chain == promotion.chain)
                .where(chain.scope == scope, promotion.path.is_not(None))
            )
            # A partition may have several chains; the lowest token is the one that keeps the most files.
            tokens = (
                sa.select(chain.partition, sa.func.min(chain.fencing_token))
                .where(chain.scope == scope, schema.is_live())
                .group_by(chain.partition)
            )
            return Listed(
                frozenset(connection.execute(paths).scalars()),
                {row[0]: row[1] for row in connection.execute(tokens)},
            )

        return self._database.read(work)

    def _stream(
        self, scope: str, wanted: sa.Select[Any], decode: Callable[[RowMapping, Domain], T]
    ) -> Iterator[T]:
        """Checks the scope at once, not at the first row."""
        domain = self._database.read(lambda connection: self._domain(connection, scope))

        def decoded() -> Iterator[T]:
            with closing(self._database.stream(wanted)) as stream:
                for row in stream:
                    yield decode(row, domain)

        return decoded()


def _totals(connection: Connection, scope: RowMapping) -> Totals:
    chain = schema.chain.c
    columns = (chain.sequence, chain.events, chain.dead_letters, chain.drift)
    sums = sa.select(*(sa.func.coalesce(sa.func.sum(column), 0) for column in columns)).where(
        chain.scope == scope["scope"], chain.lineage == scope["lineage"], schema.in_data_set()
    )
    return Totals(*(int(value) for value in connection.execute(sums).one()))


def _violations(connection: Connection, scope: str) -> dict[int, int]:
    """How many were recorded, by lineage."""
    column = schema.violation.c
    found = sa.select(column.lineage, sa.func.count()).where(column.scope == scope).group_by(column.lineage)
    return {row[0]: row[1] for row in connection.execute(found)}


def _superseded(
    connection: Connection, scope: RowMapping, domain: Domain, violations: Mapping[int, int]
) -> list[SupersededLineage]:
    """Every lineage but the first was begun by a rebuild, which wrote down what it ended."""
    if scope["lineage"] == 1:
        return []
    column = schema.journal.c
    wanted = sa.select(schema.journal).where(column.scope == scope["scope"], column.action == "rebuild")
    return [
        rows.superseded_lineage(row, domain, violated=violations.get(row["lineage"], 0) > 0)
        for row in connection.execute(wanted.order_by(column.number)).mappings()
    ]


def _latest_run(connection: Connection, scope: str, as_of: datetime) -> RunRow | None:
    column = schema.run.c
    latest = sa.select(schema.run).where(column.scope == scope).order_by(column.number.desc()).limit(1)
    row = connection.execute(latest).mappings().one_or_none()
    return None if row is None else rows.run_row(row, as_of)
