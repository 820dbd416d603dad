"""Every unsafe set-up of a log on SQLite is refused by its name."""

import pytest
from sqlalchemy.engine import Connection, Engine

from gapless.delivery import LogTable, refuse_unsafe, unsafe_setups, watch
from gapless.errors import NotAMessageLog, UnsafeSetup

SAFE = "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, shard TEXT NOT NULL, status TEXT)"


@pytest.fixture
def connection(sqlite_engine: Engine):
    with sqlite_engine.connect() as connection:
        yield connection


def reflected(connection: Connection, **words: str):
    return LogTable(table="log", terminal=("done",), ids="autoincrement", **words).reflect(connection)


def names(connection: Connection, highest_coverage: int | None = None, **words: str) -> list[str]:
    found = unsafe_setups(reflected(connection, **words), connection, highest_coverage=highest_coverage)
    for one in found:
        assert (one.exit_status, one.code) == (2, "unsafe_setup")
        assert all((one.what, one.where, one.remedy))
    return [one.setup for one in found]


def test_a_plain_log_is_safe(connection: Connection) -> None:
    connection.exec_driver_sql(SAFE)
    assert names(connection, 0) == []
    refuse_unsafe(reflected(connection), connection)
    watch(reflected(connection), connection)


def test_a_trigger_on_sqlite_cannot_change_an_id(connection: Connection) -> None:
    connection.exec_driver_sql(SAFE)
    connection.exec_driver_sql("CREATE TRIGGER t BEFORE INSERT ON log BEGIN SELECT 1; END")
    assert names(connection) == []


@pytest.mark.parametrize(
    ("definition", "setup"),
    [
        (SAFE.replace("AUTOINCREMENT", ""), "not_autoincrement"),
        (SAFE.replace("AUTOINCREMENT", "/* AUTOINCREMENT */"), "not_autoincrement"),
        (
            SAFE.replace("AUTOINCREMENT", "").replace("status TEXT", 'status TEXT, "AUTOINCREMENT" TEXT'),
            "not_autoincrement",
        ),
        (
            SAFE.replace("AUTOINCREMENT", "").replace("status TEXT", "status TEXT DEFAULT 'AUTOINCREMENT'"),
            "not_autoincrement",
        ),
        (SAFE.replace("NOT NULL", ""), "nullable_shard"),
        (
            SAFE.replace("id INTEGER", "number INTEGER").replace("shard", "id INTEGER, shard"),
            "not_autoincrement",
        ),
    ],
)
def test_an_unsafe_definition_is_named(connection: Connection, definition: str, setup: str) -> None:
    connection.exec_driver_sql(definition)
    assert names(connection) == [setup]
    with pytest.raises(UnsafeSetup) as caught:
        refuse_unsafe(reflected(connection), connection)
    assert caught.value.setup == setup


def test_the_word_is_found_however_the_definition_is_written(connection: Connection) -> None:
    connection.exec_driver_sql(
        "CREATE TABLE log (shard TEXT NOT NULL DEFAULT 'it''s -- no comment', -- a comment's '\n"
        " [odd ' name] TEXT, status TEXT, id integer primary key /* ' */ autoincrement)"
    )
    assert names(connection) == []


def test_everything_that_is_unsafe_is_told_at_once(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE log (id INTEGER PRIMARY KEY, shard TEXT, status TEXT)")
    assert names(connection) == ["not_autoincrement", "nullable_shard"]


def test_a_temporary_table_is_refused(connection: Connection) -> None:
    connection.exec_driver_sql(SAFE.replace("TABLE", "TEMP TABLE"))
    assert names(connection, schema="temp") == ["temporary_table"]


def test_reading_what_is_not_committed_is_refused(connection: Connection) -> None:
    connection.exec_driver_sql(SAFE)
    connection.exec_driver_sql("PRAGMA read_uncommitted = 1")
    assert names(connection) == ["read_uncommitted"]


def test_a_database_without_a_journal_is_refused(connection: Connection) -> None:
    connection.exec_driver_sql(SAFE)
    connection.exec_driver_sql("PRAGMA journal_mode = OFF")
    assert names(connection) == ["no_journal"]


def test_coverage_above_the_last_id_is_refused(connection: Connection) -> None:
    connection.exec_driver_sql(SAFE)
    connection.exec_driver_sql("INSERT INTO log (shard) VALUES ('s'), ('s'), ('s')")
    connection.exec_driver_sql("DELETE FROM log")
    assert names(connection, 3) == []
    assert names(connection, 4) == ["coverage_above_sequence"]
    connection.exec_driver_sql("DELETE FROM sqlite_sequence")
    with pytest.raises(UnsafeSetup, match="coverage has reached id 3, but the last id given out is 0"):
        watch(reflected(connection), connection, highest_coverage=3)


def test_a_row_below_the_beginning_of_coverage_is_refused_at_the_start_alone(connection: Connection) -> None:
    connection.exec_driver_sql(SAFE)
    connection.exec_driver_sql("INSERT INTO log (id, shard) VALUES (-7, 's')")
    with pytest.raises(UnsafeSetup, match="there is a row with id -7"):
        refuse_unsafe(reflected(connection), connection)
    watch(reflected(connection), connection)


def test_a_table_that_is_gone_is_named(connection: Connection) -> None:
    connection.exec_driver_sql(SAFE)
    log = reflected(connection)
    connection.exec_driver_sql("DROP TABLE log")
    with pytest.raises(NotAMessageLog, match="the table is gone"):
        watch(log, connection)
