"""A message log as PostgreSQL has it, out of the catalogue: names, types, the sequence that gives out its ids, privileges."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from gapless.delivery.log_names import there_is
from gapless.delivery.log_statuses import refuse_unknown_statuses
from gapless.delivery.log_table import LogTable, ReflectedLog, ShardKind, literal, quoted
from gapless.errors import NotAMessageLog

_OLDEST = (15,)
_INTEGERS = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}
_TEXTS = {"text", "character varying"}
_SHARDS: dict[str, ShardKind] = {
    "text": "text",
    "character varying": "text",
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "uuid": "uuid",
}
_NO_TABLE = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "S": "a sequence",
    "i": "an index",
}
_INSUFFICIENT_PRIVILEGE = "42501"

_RELATION = sa.text(
    "SELECT c.oid, n.nspname AS schema, c.relname AS name, c.relkind AS kind,"
    " has_table_privilege(c.oid, 'SELECT') AS readable, current_user AS role"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.oid = to_regclass(:named)"
)
_RELATIONS = sa.text(
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND CASE WHEN CAST(:schema AS text) IS NULL"
    " THEN n.nspname = ANY (current_schemas(false)) ELSE n.nspname = :schema END"
)
_SCHEMAS = sa.text(
    "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
)
_COLUMNS = sa.text(
    "SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS ddl,"
    " format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL) AS type,"
    " CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS modifier,"
    " (SELECT array_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid) AS labels,"
    " (SELECT quote_ident(ns.nspname) || '.' || quote_ident(o.collname)"
    "   FROM pg_collation o JOIN pg_namespace ns ON ns.oid = o.collnamespace"
    "   WHERE o.oid = a.attcollation AND a.attcollation <> t.typcollation) AS collation"
    " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
    " WHERE a.attrelid = :relation AND a.attnum > 0 AND NOT a.attisdropped"
)
_SEQUENCE = sa.text(
    "SELECT s.oid, quote_ident(n.nspname) || '.' || quote_ident(s.relname) AS named,"
    " has_sequence_privilege(s.oid, 'SELECT') AS readable"
    " FROM pg_class s JOIN pg_namespace n ON n.oid = s.relnamespace"
    " WHERE s.oid = CAST(pg_get_serial_sequence(:named, :column) AS regclass)"
)


@dataclass(frozen=True, slots=True)
class _Column:
    """`ddl` is the column's type as written, a domain's name where it is one; `type` what lies under it, without its length."""

    name: str
    ddl: str
    type: str
    modifier: int
    labels: Sequence[str] | None
    collation: str | None


def reflect(log: LogTable, connection: Connection) -> ReflectedLog:
    """`log` as it was found. Raises NotAMessageLog."""
    if log.ids == "autoincrement":
        raise NotAMessageLog(
            "ids: autoincrement is a way of SQLite's",
            where=f"message log {log.name}",
            remedy="use identity or serial on PostgreSQL",
        )
    _refuse_older(log, connection)
    relation = _relation(log, connection)
    where = f"message log {relation.schema}.{relation.name}"
    if not relation.readable:
        raise _no_privilege(
            relation.role, f"SELECT ON {quoted(relation.schema)}.{quoted(relation.name)}", where
        )
    columns = {row.name: _Column(*row) for row in connection.execute(_COLUMNS, {"relation": relation.oid})}
    id_, shard, status = (_column(columns, name, where) for name in (log.id, log.shard, log.status))
    if id_.type not in _INTEGERS:
        raise NotAMessageLog(
            f"column {id_.name} is {id_.ddl}, not an integer",
            where=where,
            remedy="ids are smallint, integer or bigint",
        )
    kind = _shard_kind(shard, where)
    terminal = _terminal(log, status, where)
    refuse_unknown_statuses(
        connection,
        log,
        schema=relation.schema,
        table=relation.name,
        status=status.name,
        status_ddl=status.ddl,
        others=tuple(columns),
        where=where,
    )
    sequence = _sequence(relation, id_, where, connection)
    return ReflectedLog(
        log=log,
        dialect="postgresql",
        schema=relation.schema,
        table=relation.name,
        id=id_.name,
        shard=shard.name,
        status=status.name,
        shard_kind=kind,
        id_ddl=id_.ddl,
        shard_ddl=shard.ddl if shard.collation is None else f"{shard.ddl} COLLATE {shard.collation}",
        terminal_sql=terminal,
        sequence_sql=sequence.named,
        relation=relation.oid,
        sequence=sequence.oid,
    )


def _refuse_older(log: LogTable, connection: Connection) -> None:
    version = connection.dialect.server_version_info or (0,)
    if version < _OLDEST:
        raise NotAMessageLog(
            f"PostgreSQL {version[0]} is too old: its counters do not tell that it has recovered from a crash",
            where=f"message log {log.name}",
            remedy=f"use PostgreSQL {_OLDEST[0]} or newer",
        )


def _relation(log: LogTable, connection: Connection) -> Any:
    where = f"message log {log.name}"
    named = quoted(log.table) if log.schema is None else f"{quoted(log.schema)}.{quoted(log.table)}"
    try:
        found = connection.execute(_RELATION, {"named": named}).one_or_none()
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _INSUFFICIENT_PRIVILEGE:
            raise
        role = connection.execute(sa.text("SELECT current_user")).scalar_one()
        raise _no_privilege(role, f"USAGE ON SCHEMA {quoted(log.schema or '')}", where) from error
    if found is None:
        schemas = connection.execute(_SCHEMAS).scalars().all()
        if log.schema is not None and log.schema not in schemas:
            raise NotAMessageLog(
                f"there is no schema {log.schema}", where=where, remedy=there_is(schemas, log.schema)
            )
        tables = connection.execute(_RELATIONS, {"schema": log.schema}).scalars().all()
        raise NotAMessageLog(
            f"there is no table {log.table}", where=where, remedy=there_is(tables, log.table)
        )
    if found.kind in _NO_TABLE:
        raise NotAMessageLog(
            f"{found.name} is {_NO_TABLE[found.kind]}", where=where, remedy="name the table that has the rows"
        )
    return found


def _column(columns: dict[str, _Column], name: str, where: str) -> _Column:
    if name not in columns:
        raise NotAMessageLog(f"there is no column {name}", where=where, remedy=there_is(columns, name))
    return columns[name]


def _shard_kind(shard: _Column, where: str) -> ShardKind:
    if shard.type not in _SHARDS:
        raise NotAMessageLog(
            f"column {shard.name} is {shard.ddl}, which is no type of a shard",
            where=where,
            remedy="a shard is a text, varchar, uuid or integer",
        )
    return _SHARDS[shard.type]


def _terminal(log: LogTable, status: _Column, where: str) -> tuple[str, ...]:
    integers = _INTEGERS.get(status.type)
    if integers is None and status.type not in _TEXTS and status.labels is None:
        raise NotAMessageLog(
            f"column {status.name} is {status.ddl}, which is no type of a status",
            where=where,
            remedy="a status is a text, varchar, enum or integer",
        )
    for value in log.terminal:
        if isinstance(value, int) != (integers is not None):
            raise NotAMessageLog(
                f"terminal status {value!r} is no value of column {status.name}, which is {status.ddl}",
                where=where,
                remedy="give terminal statuses as integers"
                if integers
                else "give terminal statuses as texts",
            )
        unknown, remedy = False, ""
        if isinstance(value, int):
            unknown, remedy = (
                not -(integers or 0) <= value < (integers or 0),
                f"a {status.type} does not reach as far",
            )
        elif status.labels is not None:
            unknown, remedy = value not in status.labels, there_is(status.labels, value)
        elif status.type == "character varying" and status.modifier > 0:
            # PostgreSQL keeps the length plus four.
            unknown, remedy = (
                len(value) > status.modifier - 4,
                f"the column takes {status.modifier - 4} characters",
            )
        if unknown:
            raise NotAMessageLog(f"no row can have the terminal status {value!r}", where=where, remedy=remedy)
    return tuple(literal(value) for value in log.terminal)


def _sequence(relation: Any, id_: _Column, where: str, connection: Connection) -> Any:
    named = f"{quoted(relation.schema)}.{quoted(relation.name)}"
    found = connection.execute(_SEQUENCE, {"named": named, "column": id_.name}).one_or_none()
    if found is None:
        raise NotAMessageLog(
            f"no sequence belongs to column {id_.name}, so that nobody can tell which ids were given out",
            where=where,
            remedy=f"make it an identity column, or let its sequence belong to it:"
            f" ALTER SEQUENCE ... OWNED BY {named}.{quoted(id_.name)}",
        )
    if not found.readable:
        raise _no_privilege(relation.role, f"SELECT ON SEQUENCE {found.named}", where)
    return found


def _no_privilege(role: str, privilege: str, where: str) -> NotAMessageLog:
    return NotAMessageLog(
        f"role {role} may not read it", where=where, remedy=f"GRANT {privilege} TO {quoted(role)}"
    )
