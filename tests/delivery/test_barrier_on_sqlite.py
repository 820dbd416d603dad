"""The settled id on SQLite: the largest id that was ever given out and kept."""

import pytest
from sqlalchemy.engine import Connection, Engine

from gapless.delivery import LogTable, barrier_for


@pytest.fixture
def log(sqlite_engine: Engine):
    with sqlite_engine.connect() as connection:
        connection.exec_driver_sql(
            'CREATE TABLE "the ""log""" (id INTEGER PRIMARY KEY AUTOINCREMENT, shard TEXT NOT NULL, status TEXT)'
        )
        declared = LogTable(table='the "log"', terminal=("done",), ids="autoincrement")
        yield declared.reflect(connection), connection


def insert(connection: Connection, rows: int = 1) -> None:
    connection.exec_driver_sql(
        'INSERT INTO "the ""log""" (shard, status) VALUES ' + ", ".join(["('s', 'done')"] * rows)
    )


def test_an_empty_log_has_settled_nothing(log) -> None:
    reflected, connection = log
    assert barrier_for(reflected).settled(connection).id == 0


def test_every_id_that_is_committed_is_settled_and_nobody_blocks(log) -> None:
    reflected, connection = log
    insert(connection, 3)
    settled = barrier_for(reflected).settled(connection)
    assert (settled.id, settled.blockers) == (3, ())


def test_a_writer_that_has_not_committed_has_settled_nothing(log, sqlite_engine: Engine) -> None:
    reflected, connection = log
    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    insert(connection, 2)
    barrier = barrier_for(reflected)
    with sqlite_engine.connect() as writer:
        writer.exec_driver_sql("BEGIN IMMEDIATE")
        insert(writer, 5)
        assert barrier.settled(connection).id == 2
        writer.exec_driver_sql("ROLLBACK")
    assert barrier.settled(connection).id == 2
    insert(connection)
    assert barrier.settled(connection).id == 3


def test_the_ids_of_deleted_rows_stay_settled(log) -> None:
    reflected, connection = log
    insert(connection, 4)
    connection.exec_driver_sql('DELETE FROM "the ""log"""')
    assert barrier_for(reflected).settled(connection).id == 4


def test_a_record_that_was_set_back_counts_less_than_the_rows(log) -> None:
    reflected, connection = log
    insert(connection, 4)
    connection.exec_driver_sql("UPDATE sqlite_sequence SET seq = 1")
    assert barrier_for(reflected).settled(connection).id == 4
    insert(connection)
    assert barrier_for(reflected).settled(connection).id == 5


def test_in_a_read_transaction_it_is_the_largest_id_of_the_snapshot(log, sqlite_engine: Engine) -> None:
    reflected, connection = log
    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    insert(connection)
    barrier = barrier_for(reflected)
    connection.exec_driver_sql("BEGIN")
    assert barrier.settled(connection).id == 1
    with sqlite_engine.connect() as writer:
        insert(writer)
    assert barrier.settled(connection).id == 1
    connection.exec_driver_sql("COMMIT")
    assert barrier.settled(connection).id == 2


def test_the_incarnation_is_what_a_statement_selects(log) -> None:
    reflected, connection = log
    barrier = barrier_for(reflected)
    selected = connection.exec_driver_sql(f"SELECT {barrier.incarnation_sql}").scalar_one()
    assert selected == barrier.settled(connection).incarnation
