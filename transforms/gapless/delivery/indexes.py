"""The two indexes of a message log: found where they or their equals are there, built where not.

An equal index has (shard, id) as its first columns, in the order and collation of the columns; the one on open rows also has
the predicate, whatever the order of its statuses.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

from gapless.delivery.log_table import ReflectedLog, quoted
from gapless.delivery.own_tables import OwnTables, indexes_ddl
from gapless.delivery.statements import Indexes, psycopg_text
from gapless.errors import MessageLogError, UnsafeSetup

_CANDIDATES = """
SELECT i.relname AS name, x.indisvalid AND x.indisready AND x.indislive AS valid, pg_get_expr(x.indpred, x.indrelid) AS predicate
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am m ON m.oid = i.relam
JOIN pg_attribute s ON s.attrelid = x.indrelid AND s.attname = %(shard)s
JOIN pg_attribute d ON d.attrelid = x.indrelid AND d.attname = %(id)s
WHERE x.indrelid = %(relation)s AND m.amname = 'btree' AND x.indnkeyatts >= 2
AND x.indkey[0] = s.attnum AND x.indkey[1] = d.attnum AND x.indoption[0] = 0 AND x.indoption[1] = 0
AND x.indcollation[0] = s.attcollation
AND (SELECT bool_and(o.opcdefault) FROM pg_opclass o WHERE o.oid IN (x.indclass[0], x.indclass[1]))
ORDER BY i.relname
"""
_LOCK = "(1735419500, %(table)s::oid::int)"


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


def usable_indexes(connection: Connection, log: ReflectedLog, own: OwnTables) -> FoundIndexes:
    """What is there, with none that is invalid.

    Raises UnsafeSetup, which names the index that a failed build has left: inserts pay for it, and nothing uses it. Raises
    MessageLogError while another process is still building it."""
    found = find_indexes(connection, log, own)
    if not found.invalid:
        return found
    with _building(connection, log):
        found = find_indexes(connection, log, own)
    if found.invalid:
        names = ", ".join(f"{quoted(log.schema)}.{quoted(name)}" for name in found.invalid)
        raise UnsafeSetup(
            f"index {names} is invalid: building it was interrupted or failed",
            where=log.where,
            remedy=f"DROP INDEX CONCURRENTLY {names}, then install again",
            setup="invalid_index",
        )
    return found


def build_indexes(connection: Connection, log: ReflectedLog, own: OwnTables) -> FoundIndexes:
    """Build what is missing; on PostgreSQL without blocking a writer, outside of any transaction. Raises as `usable_indexes`."""
    if usable_indexes(connection, log, own).complete is None:
        with _building(connection, log):
            _create(connection, log, own, find_indexes(connection, log, own))
    return usable_indexes(connection, log, own)


@contextmanager
def _building(connection: Connection, log: ReflectedLog) -> Iterator[None]:
    """Only one process builds. Raises MessageLogError where another one does.

    Who waited for the lock would have a snapshot, for which the builder waits in turn: so nobody waits."""
    if log.dialect == "sqlite":
        yield
        return
    lock = {"table": log.relation}
    if not connection.exec_driver_sql(f"SELECT pg_try_advisory_lock{_LOCK}", lock).scalar_one():
        raise MessageLogError(
            "another process is building the indexes",
            where=log.where,
            remedy="wait for it, then install again: what it has built is recognised",
        )
    try:
        yield
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql(f"SELECT pg_advisory_unlock{_LOCK}", lock)


def _create(connection: Connection, log: ReflectedLog, own: OwnTables, found: FoundIndexes) -> None:
    for ddl, name in zip(indexes_ddl(log, own), (found.open, found.all), strict=True):
        if name is None:
            connection.exec_driver_sql(psycopg_text(ddl) if log.dialect == "postgresql" else ddl)


def _on_postgresql(connection: Connection, log: ReflectedLog, own: OwnTables) -> FoundIndexes:
    names = {"shard": log.shard, "id": log.id, "relation": log.relation}
    candidates = connection.exec_driver_sql(_CANDIDATES, names).all()
    ours = (own.open_index, own.all_index)
    invalid = tuple(row.name for row in candidates if not row.valid and row.name in ours)
    wanted = (log.status_sql, frozenset(log.terminal_sql))
    whole = [row.name for row in candidates if row.valid and row.predicate is None]
    # Our own name says by its digest which predicate it has.
    partial = [
        row.name
        for row in candidates
        if row.valid
        and row.predicate is not None
        and (row.name == own.open_index or open_predicate(row.predicate) == wanted)
    ]
    return FoundIndexes(_ours_first(partial, own.open_index), _ours_first(whole, own.all_index), invalid)


def _ours_first(names: list[str], ours: str) -> str | None:
    return ours if ours in names else next(iter(names), None)


def open_predicate(deparsed: str | None) -> tuple[str, frozenset[str]] | None:
    """Column and literals of `(column IN (literals)) IS NOT TRUE`, as PostgreSQL writes it back; None for another predicate.

    >>> open_predicate("((status = ANY (ARRAY['a'::text, 'b'::text])) IS NOT TRUE)") == ('"status"', frozenset(["'a'", "'b'"]))
    True
    >>> open_predicate("(((s)::text = ANY ((ARRAY['a'::character varying])::text[])) IS NOT TRUE)")
    ('"s"', frozenset({"'a'"}))
    >>> open_predicate("((state = '-1'::integer) IS NOT TRUE)")
    ('"state"', frozenset({'-1'}))
    >>> open_predicate("(status <> 'a'::text)") is None
    True
    """
    texts: list[str] = []

    def keep(match: re.Match[str]) -> str:
        texts.append(match[0])
        return f"${len(texts) - 1}$"

    bare = re.sub(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""", keep, deparsed or "")
    bare = re.sub(r"::(?:character varying|[\w$.]+)(?:\[\])?", "", re.sub(r"\(\d+\)", "", bare))
    match = re.fullmatch(r"(\S+) = (?:ANY ARRAY\[(.*)\]|(\S+)) IS NOT TRUE", re.sub(r"[()]", "", bare))
    if match is None:
        return None

    def kept(part: str) -> str:
        return re.sub(r"\$(\d+)\$", lambda found: texts[int(found[1])], part.strip())

    column = kept(match[1])
    literals = (kept(part) for part in (match[2] or match[3]).split(","))
    return (
        column if column.startswith('"') else quoted(column),
        frozenset(re.sub(r"^'(-\d+)'$", r"\1", literal) for literal in literals),
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
        elif open_index is None and _answers(connection, log, name):
            open_index = name
    return FoundIndexes(open_index, all_index)


def _collation(log: ReflectedLog) -> str:
    _, _, named = log.shard_ddl.rpartition(" COLLATE ")
    return named.strip('"').upper() if " COLLATE " in log.shard_ddl else "BINARY"


def _answers(connection: Connection, log: ReflectedLog, index: str) -> bool:
    """Whether it is an index on exactly the open rows, and SQLite sees that: it compares predicates word by word."""
    if _predicate(connection, log, index) != _normalised(log.open_sql):
        return False
    try:
        connection.exec_driver_sql(
            f"EXPLAIN SELECT 1 FROM {log.table_sql} INDEXED BY {quoted(index)} WHERE {log.open_sql}"  # noqa: S608
        ).close()
    except OperationalError:
        return False
    return True


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
