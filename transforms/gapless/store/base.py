"""What every group of operations stands on: the database, the clock, and each scope's domain."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, RowMapping

from gapless.clock import Clock
from gapless.errors import UnknownScope
from gapless.progress import Domain, domain_from
from gapless.store import schema
from gapless.store.columns import ExactText
from gapless.store.engine import Database

_SCOPE = sa.select(schema.scope).where(schema.scope.c.scope == sa.bindparam("at_scope", type_=ExactText))
_LOCKED_SCOPE = _SCOPE.with_for_update()


class StoreBase:
    """A domain is part of a scope's identity and never changes: it is read once."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._domains: dict[str, Domain] = {}

    def _domain(self, connection: Connection, scope: str) -> Domain:
        """Raises UnknownScope."""
        if scope not in self._domains:
            wanted = sa.select(schema.scope.c.domain).where(schema.scope.c.scope == scope)
            description = connection.execute(wanted).scalar_one_or_none()
            if description is None:
                raise self._unknown(scope)
            self._domains[scope] = domain_from(description)
        return self._domains[scope]

    def _scope_row(self, connection: Connection, scope: str, *, lock: bool = False) -> RowMapping:
        """The scope's row, locked against publish and cutover where asked (SQLite: the write transaction is the lock).

        Raises UnknownScope."""
        row = (
            connection.execute(_LOCKED_SCOPE if lock else _SCOPE, {"at_scope": scope})
            .mappings()
            .one_or_none()
        )
        if row is None:
            raise self._unknown(scope)
        return row

    def _unknown(self, scope: str) -> UnknownScope:
        return UnknownScope(
            f"the store holds no scope {scope!r}",
            where=self._database.where,
            remedy="a backfill or a stream registers it",
        )


def insert_new(connection: Connection, table: sa.Table) -> "postgresql.Insert | sqlite.Insert":
    """INSERT that leaves rows alone whose unique key is there already. Both databases spell it alike, SQLAlchemy does not."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing()
