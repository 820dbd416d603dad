"""A message log as SQLite has it: names in any case, types by affinity, the shard's collation."""

import re
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from gapless.delivery.log_names import there_is
from gapless.delivery.log_statuses import refuse_unknown_statuses
from gapless.delivery.log_table import LogTable, ReflectedLog, ShardKind, literal, quoted
from gapless.errors import NotAMessageLog

_INTEGER = re.compile(r"INT", re.IGNORECASE)
_TEXT = re.compile(r"CHAR|CLOB|TEXT", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: str


def reflect(log: LogTable, connection: Connection) -> ReflectedLog:
    """`log` as it was found. Raises NotAMessageLog."""
    if log.ids != "autoincrement":
        raise NotAMessageLog(
            f"ids: {log.ids} is a way of PostgreSQL's",
            where=f"message log {log.name}",
            remedy="use autoincrement on SQLite",
        )
    schema = log.schema or "main"
    table = _table(log, schema, connection)
    columns = _columns(schema, table, connection)
    where = f"message log {schema}.{table}"
    id_, shard, status = (_column(columns, name, where) for name in (log.id, log.shard, log.status))
    if id_.type.upper() != "INTEGER":
        raise NotAMessageLog(
            f"column {id_.name} is {id_.type or 'without a type'}, not INTEGER",
            where=where,
            remedy="ids are an INTEGER PRIMARY KEY AUTOINCREMENT",
        )
    kind = _shard_kind(shard, where)
    terminal = _terminal(log, status, where)
    refuse_unknown_statuses(
        connection,
        log,
        schema=schema,
        table=table,
        status=status.name,
        status_ddl=status.type,
        others=tuple(columns),
        where=where,
    )
    collation = _collation(schema, table, shard.name, connection) if kind == "text" else ""
    return ReflectedLog(
        log=log,
        dialect="sqlite",
        schema=schema,
        table=table,
        id=id_.name,
        shard=shard.name,
        status=status.name,
        shard_kind=kind,
        id_ddl="INTEGER",
        shard_ddl=f"{shard.type}{collation}",
        terminal_sql=terminal,
        sequence_sql=f"{quoted(schema)}.sqlite_sequence",
    )


def _table(log: LogTable, schema: str, connection: Connection) -> str:
    """The table's name as it is spelt."""
    schemas = {row.name for row in connection.exec_driver_sql("PRAGMA database_list")}
    if schema not in schemas:
        raise NotAMessageLog(
            f"there is no database {schema}",
            where=f"message log {log.name}",
            remedy=there_is(schemas, schema),
        )
    known = connection.exec_driver_sql(
        f"SELECT name, type FROM {quoted(schema)}.sqlite_master WHERE type IN ('table', 'view')"  # noqa: S608
    ).all()
    for name, type_ in known:
        if name.casefold() != log.table.casefold():
            continue
        if type_ == "view":
            raise NotAMessageLog(
                f"{name} is a view",
                where=f"message log {log.name}",
                remedy="name the table that has the rows",
            )
        return str(name)
    names = [name for name, _ in known if not name.startswith("sqlite_")]
    raise NotAMessageLog(
        f"there is no table {log.table}", where=f"message log {log.name}", remedy=there_is(names, log.table)
    )


def _columns(schema: str, table: str, connection: Connection) -> dict[str, _Column]:
    """By the name in lower case."""
    rows = connection.exec_driver_sql(f"PRAGMA {quoted(schema)}.table_xinfo({quoted(table)})").all()
    return {name.casefold(): _Column(name, type_) for _, name, type_, *_ in rows}


def _column(columns: dict[str, _Column], name: str, where: str) -> _Column:
    found = columns.get(name.casefold())
    if found is None:
        raise NotAMessageLog(
            f"there is no column {name}",
            where=where,
            remedy=there_is((one.name for one in columns.values()), name),
        )
    return found


def _shard_kind(shard: _Column, where: str) -> ShardKind:
    # SQLite's own rules of affinity, in their order: INT first, then the texts.
    if _INTEGER.search(shard.type):
        return "integer"
    if _TEXT.search(shard.type):
        return "text"
    raise NotAMessageLog(
        f"shards are {shard.type or 'without a type'} in column {shard.name}, which keeps neither texts nor integers as they are",
        where=where,
        remedy="declare the column TEXT or INTEGER (a UUID as TEXT or CHAR(36))",
    )


def _terminal(log: LogTable, status: _Column, where: str) -> tuple[str, ...]:
    integers = bool(_INTEGER.search(status.type))
    if not integers and not _TEXT.search(status.type):
        raise NotAMessageLog(
            f"column {status.name} is {status.type or 'without a type'}, which is no type of a status",
            where=where,
            remedy="a status is a TEXT or an INTEGER",
        )
    for value in log.terminal:
        if isinstance(value, int) != integers:
            raise NotAMessageLog(
                f"terminal status {value!r} is no value of column {status.name}, which is {status.type}",
                where=where,
                remedy="give terminal statuses as integers"
                if integers
                else "give terminal statuses as texts",
            )
    return tuple(literal(value) for value in log.terminal)


def _collation(schema: str, table: str, column: str, connection: Connection) -> str:
    """As DDL; by the comparison that SQLite itself would make, since no catalogue tells a column's collation."""
    program = connection.exec_driver_sql(
        f"EXPLAIN SELECT 1 FROM {quoted(schema)}.{quoted(table)} WHERE +{quoted(column)} = 'x'"  # noqa: S608
    ).all()
    for _, opcode, _, _, _, compared, *_ in program:
        if opcode in ("Eq", "Ne") and isinstance(compared, str) and "-" in compared:
            name = compared.rpartition("-")[0]
            return "" if name == "BINARY" else f" COLLATE {quoted(name)}"
    return ""
