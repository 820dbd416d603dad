"""What is unsafe about a log on SQLite: the table's own definition, and how the connection reads."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy.engine import Connection

from gapless.delivery.log_table import ReflectedLog, literal, quoted
from gapless.delivery.snapshot_barrier import SnapshotBarrier
from gapless.errors import NotAMessageLog, UnsafeSetup

Found = tuple[str, str, str]

# What AUTOINCREMENT may not be taken for: texts, quoted names, comments.
_NOT_WORDS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] | --[^\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL,
)
_AUTOINCREMENT = re.compile(r"\bAUTOINCREMENT\b", re.IGNORECASE)


def unsafe(
    log: ReflectedLog, connection: Connection, *, highest_coverage: int | None, rows: bool
) -> tuple[UnsafeSetup, ...]:
    """Everything that is unsafe. Raises NotAMessageLog where the table is gone."""
    definition = connection.exec_driver_sql(
        f"SELECT sql FROM {quoted(log.schema)}.sqlite_master WHERE type = 'table' AND name = {literal(log.table)}"  # noqa: S608
    ).scalar_one_or_none()
    if definition is None:
        raise NotAMessageLog(
            "the table is gone", where=log.where, remedy="check the log: gapless delivery check"
        )
    columns = connection.exec_driver_sql(
        f"PRAGMA {quoted(log.schema)}.table_xinfo({quoted(log.table)})"
    ).all()
    found = [*_given_out(log, definition, columns), *_seen(log, connection), *_held(log, columns)]
    if not found:
        last = SnapshotBarrier(log).settled(connection).id
        if highest_coverage is not None and highest_coverage > last:
            found.append(
                (
                    "coverage_above_sequence",
                    f"coverage has reached id {highest_coverage}, but the last id given out is {last}: the rows to come would"
                    " be behind it",
                    "the coverage is another table's, or sqlite_sequence was set back: set it above, or start over",
                )
            )
        if rows:
            found.extend(_below_one(log, connection))
    return tuple(
        UnsafeSetup(what, where=log.where, remedy=remedy, setup=setup) for setup, what, remedy in found
    )


def _given_out(log: ReflectedLog, definition: str, columns: Sequence[Any]) -> Iterator[Found]:
    # SQLite takes the word in no other place than behind INTEGER PRIMARY KEY.
    if not _AUTOINCREMENT.search(_NOT_WORDS.sub(" ", definition)):
        yield (
            "not_autoincrement",
            f"column {log.id} is not AUTOINCREMENT: the id of a deleted row is given out again",
            f"declare it {log.id_sql} INTEGER PRIMARY KEY AUTOINCREMENT",
        )
        return
    given_out = next(name for _, name, _, _, _, key, *_ in columns if key)
    if given_out != log.id:
        yield (
            "not_autoincrement",
            f"column {log.id} is filled by whoever inserts: what is AUTOINCREMENT is {given_out}",
            f"name {given_out} as the id",
        )


def _seen(log: ReflectedLog, connection: Connection) -> Iterator[Found]:
    if log.schema.casefold() == "temp":
        yield (
            "temporary_table",
            "the table is temporary: it ends with its connection",
            "use a permanent table",
        )
    if connection.exec_driver_sql("PRAGMA read_uncommitted").scalar_one():
        yield (
            "read_uncommitted",
            "the connection reads what others have not committed",
            "PRAGMA read_uncommitted = 0",
        )
    if (
        connection.exec_driver_sql(f"PRAGMA {quoted(log.schema)}.journal_mode").scalar_one().casefold()
        == "off"
    ):
        yield "no_journal", "without a journal nothing can be rolled back", "PRAGMA journal_mode = WAL"


def _held(log: ReflectedLog, columns: Sequence[Any]) -> Iterator[Found]:
    required = {name: required for _, name, _, required, *_ in columns}
    if not required.get(log.shard):
        yield (
            "nullable_shard",
            f"column {log.shard} may be null: rows without a shard are in none",
            f"declare it NOT NULL: {log.shard_sql} {log.shard_ddl} NOT NULL",
        )


def _below_one(log: ReflectedLog, connection: Connection) -> Iterator[Found]:
    first = connection.exec_driver_sql(
        f"SELECT min({log.id_sql}) FROM {log.table_sql} WHERE {log.id_sql} < 1"  # noqa: S608
    ).scalar_one_or_none()
    if first is not None:
        yield (
            "ids_below_one",
            f"there is a row with id {first}, and coverage begins at 0",
            "give it an id from 1 on",
        )
