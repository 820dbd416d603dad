"""The simpler methods, each on a schedule of few steps on which it is false; the barrier claims nothing there.

What a storm shows sometimes, these show every time."""

import random
import threading
from collections.abc import Iterator

import psycopg
import pytest
from own_postgres import OwnServer
from simpler_methods import (
    HOLDERS,
    by_the_barrier,
    holders_before_the_last_id,
    plain,
    prepared_not_followed,
    without_open_transaction_ids,
)
from writer_storm import Look, Observer, Storm

from gapless.delivery import LogTable, barrier_for

INSERT = "INSERT INTO log (shard, status, priority) VALUES ('a', 'delivered', 0)"
GATE = 7
# A writer of a session with the setting waits between taking its id and writing its row.
GATED = (
    "CREATE FUNCTION gate() RETURNS text LANGUAGE plpgsql VOLATILE AS 'BEGIN IF current_setting(''gapless.gate'', true) ="
    " ''shut'' THEN PERFORM pg_advisory_xact_lock_shared(7); END IF; RETURN NULL; END';"
    " ALTER TABLE log ALTER COLUMN note SET DEFAULT gate()"
)


class Stage:
    """One observer a method, and an admin that commits at once."""

    def __init__(self, storm: Storm) -> None:
        self.storm = storm
        self.admin = storm.server.connect(autocommit=True)
        self.admin.execute(GATED)
        self._connections = [self.admin]
        self.barrier = self.observer("the barrier", self._by_the_barrier())

    def _by_the_barrier(self) -> Look:
        with self.storm.engine.connect() as connection:
            log = LogTable(table="log", terminal=("delivered", "dead"), ids="identity").reflect(connection)
        return by_the_barrier(barrier_for(log))

    def observer(self, name: str, look: Look) -> Observer:
        observer = Observer(self.storm, name, look)
        observer.connection = self.connect(autocommit=True)
        observer.dice = random.Random(1)
        observer.alchemy = self.storm.engine.connect()
        return observer

    def connect(self, **options: object) -> psycopg.Connection:
        self._connections.append(self.storm.server.connect(**options))
        return self._connections[-1]

    def open_writer(self) -> psycopg.Connection:
        writer = self.connect()
        writer.execute(INSERT)
        return writer

    def until_somebody_waits_at_the_gate(self) -> None:
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
        while self.admin.execute(waiting, [GATE]).fetchone() != (1,):
            pass

    def false(self, name: str) -> tuple[int, int]:
        """How many claims of the method and of the barrier are false."""
        by_name = self.storm.false()
        return by_name.get(name, 0), by_name.get("the barrier", 0)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


@pytest.fixture
def stage(postgres_of_its_own: OwnServer, own_postgres_schema: str) -> Iterator[Stage]:
    storm = Storm(postgres_of_its_own, seed=1)
    storm.create()
    with postgres_of_its_own.engine() as engine:
        storm.engine = engine
        stage = Stage(storm)
        yield stage
        stage.barrier.alchemy.close()
        stage.close()


def test_the_plain_minimum_jumps_over_a_writer_that_is_still_open(stage: Stage) -> None:
    method = stage.observer("plain", plain)
    writer = stage.open_writer()
    stage.admin.execute(INSERT)
    for observer in (method, stage.barrier):
        observer.look(observer)
    writer.commit()
    assert stage.false("plain") == (1, 0)
    method.alchemy.close()


def test_a_snapshot_without_open_transaction_ids_misses_a_writer_that_has_an_id_of_a_row_alone(
    stage: Stage,
) -> None:
    method = stage.observer("no open ids", without_open_transaction_ids)
    # The first of 32 ids gives its transaction a number of its own, the others do not.
    stage.admin.execute(INSERT)
    gate = stage.connect()
    gate.execute("SELECT pg_advisory_xact_lock(%s)", [GATE])
    writer = stage.connect(autocommit=True, options="-c gapless.gate=shut")
    writing = threading.Thread(target=writer.execute, args=(INSERT,))
    writing.start()
    try:
        stage.until_somebody_waits_at_the_gate()
        stage.admin.execute(INSERT)
        # Another database's vacuum may have a number just now.
        while not stage.storm.claims["no open ids"]:
            method.look(method)
        stage.barrier.look(stage.barrier)
    finally:
        gate.rollback()
        writing.join()
    assert stage.false("no open ids") == (1, 0)
    method.alchemy.close()


def test_locks_read_by_the_statement_itself_are_younger_than_its_snapshot(stage: Stage) -> None:
    def held_up(observer: Observer) -> None:
        # The same statement, held up between the rows and the locks for as long as it takes.
        observer.frontiers(
            2**62,
            also=f"(pg_advisory_xact_lock_shared({GATE}) IS NOT NULL AND (SELECT count(*) = 0 {HOLDERS}))",
        )

    method = stage.observer("same statement", held_up)
    writer = stage.open_writer()
    stage.admin.execute(INSERT)
    gate = stage.connect()
    gate.execute("SELECT pg_advisory_xact_lock(%s)", [GATE])
    looking = threading.Thread(target=method.look, args=(method,))
    looking.start()
    try:
        stage.until_somebody_waits_at_the_gate()
        stage.barrier.look(stage.barrier)
        writer.commit()
    finally:
        gate.rollback()
        looking.join()
    assert stage.false("same statement") == (1, 0)
    method.alchemy.close()


def test_holders_read_before_the_last_id_miss_who_came_between(stage: Stage) -> None:
    writer = stage.connect()

    def between() -> None:
        stage.barrier.look(stage.barrier)
        writer.execute(INSERT)
        stage.admin.execute(INSERT)

    method = stage.observer("holders first", lambda observer: holders_before_the_last_id(observer, between))
    method.look(method)
    stage.barrier.look(stage.barrier)
    writer.commit()
    assert stage.false("holders first") == (1, 0)
    method.alchemy.close()


def test_a_holder_that_becomes_a_prepared_transaction_has_not_ended(stage: Stage) -> None:
    method = stage.observer("not followed", prepared_not_followed())
    writer = stage.open_writer()
    stage.admin.execute(INSERT)
    for observer in (method, stage.barrier):
        observer.look(observer)
    writer.execute("PREPARE TRANSACTION 'renamed'")
    for observer in (method, stage.barrier):
        observer.look(observer)
    stage.admin.execute("COMMIT PREPARED 'renamed'")
    assert stage.false("not followed") == (1, 0)
    method.alchemy.close()


def test_once_the_writer_has_ended_the_barrier_claims_what_is_there(stage: Stage) -> None:
    writer = stage.open_writer()
    stage.admin.execute(INSERT)
    stage.barrier.look(stage.barrier)
    assert not stage.storm.claims["the barrier"]
    writer.commit()
    stage.barrier.look(stage.barrier)
    (claim,) = stage.storm.claims["the barrier"]
    assert (claim.shard, claim.after, claim.through, claim.rows, claim.ids) == ("a", 0, 2, 2, 3)
    assert stage.false("the barrier") == (0, 0)
