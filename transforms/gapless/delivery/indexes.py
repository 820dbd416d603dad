"""The two indexes of a message log: found where they or their equals are there, built where not.

An equal index has (shard, id) as its first columns, in the order and collation of the columns; the one on open rows also has
the predicate, which on PostgreSQL the planner itself is asked about.
"""

import re
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from gapless.delivery.log_table import ReflectedLog, quoted
from gapless.delivery.own_tables import OwnTables, indexes_ddl
from gapless.delivery.plans import postgresql_scans
from gapless.delivery.statements import Indexes, first_open_sql, psycopg_text
from gapless.errors import MessageLogError, UnsafeSetup

_CANDIDATES = """
SELECT i.relname AS name, x.indisvalid AND x.indisready AND x.indislive AS valid, x.indpred IS NOT NULL AS partial
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am m ON m.oid = i.relam
JOIN pg_attribute s ON s.attrelid = x.indrelid AND s.attname = %(shard)s
JOIN pg_attribute d ON d.attrelid = x.indrelid AND d.attname = %(id)s
WHERE x.indrelid = %(relation)s AND m.amname = 'btree' AND x.indnkeyatts >= 2
AND x.indkey[0] = s.attnum AND x.indkey[1] = d.attnum AND x.indoption[0] = 0 AND x.indoption[1] = 0
AND x.indcollation[0] = s.attcollation
AND (SELECT bool_and(o.opcdefault) FROM pg_opclass o WHERE o.oid IN (x.indclass[0], x.indclass[1]))
ORDER BY i.relname
"""
_BUILDING = "gapless builds indexes on this table"


@dataclass(frozen=True, slots=True)
class FoundIndexes:
    """By name; None where there is none. `invalid` were left behind by a build that failed, and nobody uses them."""

    open: str | None
    all: str | None
    invalid: tuple[str, ...] = ()

    @property
    def complete(self) -> Indexes | None:
        return None if self.open is None or self.all is None else Indexes(self.open, self.all)


def find_indexes(connection: Connection, log: ReflectedLog, own: OwnTables) -> FoundIndexes:
    """What is there already, under whatever name."""
    if log.dialect == "sqlite":
        return _on_sqlite(connection, log, own)
    return _on_postgresql(connection, log, own)


def refuse_invalid(found: FoundIndexes, log: ReflectedLog) -> None:
    """Raises UnsafeSetup, which names the index that a failed build has left: inserts pay for it, and nothing uses it."""
    if found.invalid:
        names = ", ".join(f"{quoted(log.schema)}.{quoted(name)}" for name in found.invalid)
        raise UnsafeSetup(
            f"index {names} is invalid: building it was interrupted or failed",
            where=log.where,
            remedy=f"DROP INDEX CONCURRENTLY {names}, then install again",
            setup="invalid_index",
        )


def build_indexes(connection: Connection, log: ReflectedLog, own: OwnTables) -> FoundIndexes:
    """Build what is missing; on PostgreSQL without blocking a writer, outside of any transaction.

    Raises UnsafeSetup where an invalid one stands in the way, MessageLogError while another process is building."""
    found = find_indexes(connection, log, own)
    refuse_invalid(found, log)
    if found.complete is not None:
        return found
    if log.dialect == "sqlite":
        _create(connection, log, own, found)
        return find_indexes(connection, log, own)
    # Who waited for this lock would have a snapshot, for which the builder waits in turn: so nobody waits.
    lock = {"table": log.relation}
    if not connection.exec_driver_sql(
        "SELECT pg_try_advisory_lock(1735419500, %(table)s::oid::int)", lock
    ).scalar_one():
        raise MessageLogError(
            f"another process is building the indexes ({_BUILDING})",
            where=log.where,
            remedy="wait for it, then install again: what it has built is recognised",
        )
    try:
        _create(connection, log, own, found)
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql("SELECT pg_advisory_unlock(1735419500, %(table)s::oid::int)", lock)
    return find_indexes(connection, log, own)


def _create(connection: Connection, log: ReflectedLog, own: OwnTables, found: FoundIndexes) -> None:
    for ddl, name in zip(indexes_ddl(log, own), (found.open, found.all), strict=True):
        if name is None:
            connection.exec_driver_sql(psycopg_text(ddl) if log.dialect == "postgresql" else ddl)


def _on_postgresql(connection: Connection, log: ReflectedLog, own: OwnTables) -> FoundIndexes:
    names = {"shard": log.shard, "id": log.id, "relation": log.relation}
    candidates = connection.exec_driver_sql(_CANDIDATES, names).all()
    ours = (own.open_index, own.all_index)
    invalid = tuple(row.name for row in candidates if not row.valid and row.name in ours)
    valid = [row for row in candidates if row.valid]
    whole = [row.name for row in valid if not row.partial]
    partial = [row.name for row in valid if row.partial]
    open_index = own.open_index if own.open_index in partial else None
    if open_index is None and partial:
        # Of an equal predicate the planner leaves nothing to be checked row by row.
        for scan in postgresql_scans(connection, log, first_open_sql(log)):
            if scan.index in partial and not scan.filter:
                open_index = scan.index
    return FoundIndexes(
        open_index, own.all_index if own.all_index in whole else next(iter(whole), None), invalid
    )


def _on_sqlite(connection: Connection, log: ReflectedLog, own: OwnTables) -> FoundIndexes:
    schema = quoted(log.schema)
    collation = _collation(log)
    open_index = all_index = None
    rows = connection.exec_driver_sql(f"PRAGMA {schema}.index_list({quoted(log.table)})").all()
    for _, name, _, _, partial in sorted(rows, key=lambda row: row[1] not in (own.open_index, own.all_index)):
        parts = connection.exec_driver_sql(f"PRAGMA {schema}.index_xinfo({quoted(name)})").all()
        keys = [(column, bool(desc), coll) for _, _, column, desc, coll, key in parts if key]
        if len(keys) < 2 or [key[0] for key in keys[:2]] != [log.shard, log.id]:
            continue
        if any(desc for _, desc, _ in keys[:2]) or keys[0][2].upper() != collation:
            continue
        if not partial:
            all_index = all_index or name
        elif open_index is None and _predicate(connection, log, name) == _normalised(log.open_sql):
            open_index = name
    return FoundIndexes(open_index, all_index)


def _collation(log: ReflectedLog) -> str:
    _, _, named = log.shard_ddl.rpartition(" COLLATE ")
    return named.strip('"').upper() if " COLLATE " in log.shard_ddl else "BINARY"


def _predicate(connection: Connection, log: ReflectedLog, index: str) -> str:
    text = connection.exec_driver_sql(
        f"SELECT sql FROM {quoted(log.schema)}.sqlite_master WHERE type = 'index' AND name = :index",  # noqa: S608
        {"index": index},
    ).scalar_one()
    return _normalised(re.split(r"(?i)\bWHERE\b", text, maxsplit=1)[-1])


def _normalised(predicate: str) -> str:
    """Spaces, the case of words and quotes around names are no difference; texts are.

    >>> _normalised('("status" IN (\\'Done\\')) IS NOT TRUE') == _normalised("(status in ( 'Done' ) )  is not true")
    True
    """
    parts = re.split(r"('(?:[^']|'')*')", predicate.strip().rstrip(";"))
    return "".join(
        part if number % 2 else re.sub(r'[\s"`\[\]]+', "", part).casefold()
        for number, part in enumerate(parts)
    )
