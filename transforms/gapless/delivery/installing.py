"""Installing a message log: gapless's own tables in one transaction, then the indexes; and what has to be so ever after."""

import json
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.delivery.database import execute
from gapless.delivery.identity import TableIdentity, refuse_other_table, table_identity
from gapless.delivery.indexes import build_indexes, find_indexes, usable_indexes
from gapless.delivery.log_table import ReflectedLog
from gapless.delivery.own_tables import FORMAT, OwnTables, declaration, tables_ddl
from gapless.delivery.statements import Indexes, psycopg_text
from gapless.errors import MessageLogError, NotAMessageLog, UnsafeSetup

_REMEDY = "`gapless delivery install JOB`, or MessageLog.install()"


class NotInstalled(NotAMessageLog):
    """Gapless's own tables or indexes are not there."""

    code = "not_installed"


@dataclass(frozen=True, slots=True)
class Installation:
    """What `install` has created, by name, and the indexes that are used."""

    tables: tuple[str, ...]
    built: tuple[str, ...]
    indexes: Indexes


@dataclass(frozen=True, slots=True)
class _Registered:
    """What was installed: the log's row in gapless's table of logs."""

    format: int
    declaration: str
    identity: TableIdentity


def create_tables(
    connection: Connection, log: ReflectedLog, own: OwnTables, *, redeclare: bool
) -> tuple[str, ...]:
    """In the write transaction of `connection`: what is there stays. The names of what was not."""
    if log.dialect == "postgresql":
        # Two that create the same table at the same time would meet in the catalogue.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1735419501, 0)")
    missing = tuple(
        name for name in (own.registry, own.coverage, own.violation) if not _exists(connection, own, name)
    )
    ddl = dict(zip((own.registry, own.coverage, own.violation), tables_ddl(log, own), strict=True))
    for name in missing:
        _run(connection, log, ddl[name])
    identity = table_identity(connection, log)
    values = {
        "log": log.table,
        "declaration": declaration(log),
        "relation": identity.relation,
        "system_identifier": identity.system_identifier,
    }
    stored = _stored(connection, log, own)
    if stored is None and own.coverage not in missing:
        raise UnsafeSetup(
            f"{own.coverage} is there, and nothing says that it belongs to this log",
            where=log.where,
            remedy=f"it comes from elsewhere: drop it, or restore {own.registry} that belongs to it",
            setup="foreign_coverage",
        )
    if stored is None:
        insert = (
            f"INSERT INTO {own.registry_sql} (log, format, declaration, relation, system_identifier)"
            " VALUES (:log, :format, :declaration, :relation, :system_identifier)"
        )
        execute(connection, _driver(log, insert), {**values, "format": FORMAT})
    elif redeclare:
        update = (
            f"UPDATE {own.registry_sql} SET declaration = :declaration, relation = :relation,"
            " system_identifier = :system_identifier WHERE log = :log"
        )
        _refuse_format(stored.format, log)
        execute(connection, _driver(log, update), values)
    refuse_other_declaration(connection, log, own)
    return missing


def create_indexes(
    connection: Connection, log: ReflectedLog, own: OwnTables
) -> tuple[Indexes, tuple[str, ...]]:
    """The indexes in use, and the names of those that were built for it."""
    before = find_indexes(connection, log, own)
    after = build_indexes(connection, log, own)
    if after.complete is None:
        raise MessageLogError("an index was built and is not found", where=log.where, remedy="install again")
    known = {before.open, before.all}
    return after.complete, tuple(name for name in (after.open, after.all) if name and name not in known)


def installed_indexes(connection: Connection, log: ReflectedLog, own: OwnTables) -> Indexes:
    """Raises NotInstalled where one is missing, and as `usable_indexes`."""
    found = usable_indexes(connection, log, own)
    if found.complete is None:
        kinds = [kind for kind, name in (("open", found.open), ("all", found.all)) if name is None]
        raise NotInstalled(
            f"the index on {' and on '.join(kinds)} rows is missing", where=log.where, remedy=_REMEDY
        )
    return found.complete


def refuse_other_declaration(connection: Connection, log: ReflectedLog, own: OwnTables) -> None:
    """Raises NotInstalled where nothing is installed, UnsafeSetup where it is under another declaration or format, or for
    another table."""
    for name in (own.registry, own.coverage, own.violation):
        if not _exists(connection, own, name):
            raise NotInstalled(
                f"the log is not installed: there is no table {name}", where=log.where, remedy=_REMEDY
            )
    stored = _stored(connection, log, own)
    if stored is None:
        raise NotInstalled("the log is not installed", where=log.where, remedy=_REMEDY)
    _refuse_format(stored.format, log)
    refuse_other_table(stored.identity, table_identity(connection, log), log, own)
    if stored.declaration != declaration(log):
        before, now = json.loads(stored.declaration), json.loads(declaration(log))
        changed = "; ".join(
            f"{key} was {before.get(key)!r} and is {now[key]!r}" for key in now if before.get(key) != now[key]
        )
        raise UnsafeSetup(
            f"the log was installed under another declaration: {changed}",
            where=log.where,
            remedy="declare it as it was; or install with `redeclare`, and rows behind the coverage are judged by the new one",
            setup="other_declaration",
        )


def highest_coverage(connection: Connection, log: ReflectedLog, own: OwnTables) -> int:
    """The largest id that any shard is covered or claimed through; 0 where there is none."""
    text = f"SELECT coalesce(max(coalesce(claimed, through)), 0) FROM {own.coverage_sql}"
    return int(execute(connection, _driver(log, text), {}).scalar_one())


def _refuse_format(stored: int, log: ReflectedLog) -> None:
    if stored != FORMAT:
        raise UnsafeSetup(
            f"gapless's tables have format {stored}, and this version knows {FORMAT}",
            where=log.where,
            remedy="use the version of gapless that wrote them, or a newer one",
            setup="other_format",
        )


def _stored(connection: Connection, log: ReflectedLog, own: OwnTables) -> _Registered | None:
    text = f"SELECT format, declaration, relation, system_identifier FROM {own.registry_sql} WHERE log = :log"
    row = execute(connection, _driver(log, text), {"log": log.table}).one_or_none()
    if row is None:
        return None
    return _Registered(row.format, row.declaration, TableIdentity(row.relation, row.system_identifier))


def _exists(connection: Connection, own: OwnTables, name: str) -> bool:
    return sa.inspect(connection).has_table(name, schema=own.schema)


def _run(connection: Connection, log: ReflectedLog, ddl: str) -> None:
    connection.exec_driver_sql(_driver(log, ddl))


def _driver(log: ReflectedLog, text: str) -> str:
    return psycopg_text(text) if log.dialect == "postgresql" else text
