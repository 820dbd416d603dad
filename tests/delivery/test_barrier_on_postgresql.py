"""The settled id on PostgreSQL, one scene each: open writers by name, crashes, sequences set back, what is refused."""

import threading

import pytest
from barrier_scene import INSERT, ON_EACH_VERSION, TABLE, Scene
from sqlalchemy.engine import create_engine

from gapless.delivery import LogTable, Settled, barrier_for
from gapless.delivery.sequence_barrier import SequenceBarrier
from gapless.errors import InsideTransaction
from gapless.testing import ManualClock

pytestmark = ON_EACH_VERSION


def test_without_open_writers_everything_given_out_is_settled_at_once(scene: Scene) -> None:
    assert (scene.settled().id, scene.settled().blockers) == (0, ())
    scene.insert(3)
    assert (scene.settled().id, scene.settled().blockers) == (3, ())


def test_an_open_writer_holds_the_settled_id_and_is_named(scene: Scene) -> None:
    scene.insert(2)
    writer = scene.writer(application_name="the slow importer")
    scene.insert()
    settled = scene.settled()
    assert settled.id == 0
    (blocker,) = settled.blockers
    assert (blocker.code, blocker.pid, blocker.user) == ("open_writer", writer.info.backend_pid, "postgres")
    assert (blocker.application, blocker.gid) == ("the slow importer", None)
    began = scene.admin.execute(
        "SELECT xact_start FROM pg_stat_activity WHERE pid = %s", [blocker.pid]
    ).fetchone()
    assert began == (blocker.since,)
    writer.commit()
    assert (scene.settled().id, scene.settled().blockers) == (4, ())


def test_what_was_settled_before_stays_so_while_a_writer_is_open(scene: Scene) -> None:
    scene.insert(2)
    assert scene.settled().id == 2
    writer = scene.writer()
    scene.insert()
    assert [scene.settled().id for _ in range(3)] == [2, 2, 2]
    writer.rollback()
    assert scene.settled().id == 4


def test_a_writer_that_came_later_is_not_waited_for(scene: Scene) -> None:
    first = scene.writer()
    assert scene.settled().id == 0
    second = scene.writer()
    assert [one.pid for one in scene.settled().blockers] == [first.info.backend_pid]
    first.commit()
    settled = scene.settled()
    assert settled.id == 1
    assert [one.pid for one in settled.blockers] == [second.info.backend_pid]


def test_the_longest_open_writer_is_named_first(scene: Scene) -> None:
    pids = [scene.writer().info.backend_pid for _ in range(4)]
    named = scene.settled().blockers
    assert [one.pid for one in named] == pids
    assert sorted(one.since for one in named) == [one.since for one in named]


@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_a_writer_holds_also_after_its_row_was_rolled_back_to_a_savepoint(scene: Scene, end: str) -> None:
    writer = scene.server.connect()
    scene.writers.append(writer)
    writer.execute("SAVEPOINT before")
    writer.execute(INSERT)
    writer.execute("ROLLBACK TO before")
    assert len(scene.settled().blockers) == 1
    getattr(writer, end)()
    assert scene.settled().id == 1


def test_a_copy_holds_until_it_is_committed(scene: Scene) -> None:
    writer = scene.server.connect()
    scene.writers.append(writer)
    with writer.cursor().copy("COPY log (shard, status) FROM STDIN") as copy:
        copy.write("s\tdone\n" * 5)
    assert (scene.settled().id, len(scene.settled().blockers)) == (0, 1)
    writer.commit()
    assert scene.settled().id == 5


def test_transactions_that_give_out_no_id_do_not_hold(scene: Scene) -> None:
    scene.insert(2)
    dispatcher = scene.server.connect()
    scene.writers.append(dispatcher)
    dispatcher.execute("SELECT id FROM log WHERE id = 1 FOR UPDATE SKIP LOCKED")
    dispatcher.execute("UPDATE log SET status = 'done' WHERE id = 1")
    assert (scene.settled().id, scene.settled().blockers) == (2, ())


def test_a_writer_that_becomes_a_prepared_transaction_goes_on_holding(scene: Scene) -> None:
    writer = scene.writer()
    assert scene.settled().blockers[0].code == "open_writer"
    writer.execute("PREPARE TRANSACTION 'second phase later'")
    scene.insert()
    settled = scene.settled()
    assert settled.id == 0
    (blocker,) = settled.blockers
    assert (blocker.code, blocker.gid, blocker.user) == (
        "prepared_transaction",
        "second phase later",
        "postgres",
    )
    assert blocker.pid is None
    assert blocker.since is not None
    scene.admin.execute("COMMIT PREPARED 'second phase later'")
    assert (scene.settled().id, scene.settled().blockers) == (2, ())


def test_a_transaction_that_was_prepared_before_holds_also_over_a_restart(scene: Scene) -> None:
    scene.writer().execute("PREPARE TRANSACTION 'survivor'")
    scene.insert()
    scene.server.restart()
    scene.reconnect()
    settled = scene.settled()
    assert (settled.id, [one.gid for one in settled.blockers]) == (0, ["survivor"])
    scene.admin.execute("ROLLBACK PREPARED 'survivor'")
    assert scene.settled().id > 0


def test_writers_are_never_kept_waiting(scene: Scene) -> None:
    first = scene.writer()
    for _ in range(20):
        scene.settled()
        with scene.server.connect(options="-c lock_timeout=1") as writer:
            writer.execute(INSERT)
            scene.settled()
    first.commit()
    assert scene.settled().id == 21


def test_a_role_that_may_only_read_is_not_told_since_when(scene: Scene) -> None:
    writer = scene.writer(application_name="importer")
    scene.admin.execute("CREATE ROLE gapless_reader")
    try:
        scene.admin.execute("GRANT USAGE ON SCHEMA of_a_log TO gapless_reader")
        scene.admin.execute("GRANT SELECT ON log, log_id_seq TO gapless_reader")
        scene.connection.exec_driver_sql("SET ROLE gapless_reader")
        scene.reflect()
        (blocker,) = scene.settled().blockers
        assert (blocker.pid, blocker.user, blocker.since) == (writer.info.backend_pid, "postgres", None)
        assert blocker.application == "importer"
        scene.connection.exec_driver_sql("RESET ROLE")
    finally:
        scene.admin.execute("DROP OWNED BY gapless_reader")
        scene.admin.execute("DROP ROLE gapless_reader")


# What a settled id dies with


def test_a_connection_inside_a_transaction_is_refused(scene: Scene) -> None:
    scene.connection.exec_driver_sql("BEGIN")
    with pytest.raises(InsideTransaction):
        scene.settled()
    scene.connection.exec_driver_sql("ROLLBACK")
    assert scene.settled().id == 0


def test_a_connection_that_is_not_in_autocommit_is_refused(scene: Scene) -> None:
    engine = create_engine(scene.engine.url)
    with engine.connect() as connection, pytest.raises(InsideTransaction, match="AUTOCOMMIT"):
        scene.barrier.settled(connection)
    engine.dispose()


def test_a_session_whose_default_is_another_isolation_is_left_with_it(scene: Scene) -> None:
    def default() -> str:
        return str(scene.connection.exec_driver_sql("SHOW default_transaction_isolation").scalar_one())

    scene.connection.exec_driver_sql(
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"
    )
    writer = scene.writer()
    assert scene.settled().id == 0
    assert default() == "serializable"
    writer.commit()
    assert scene.settled().id == 1
    assert default() == "serializable"


def test_an_answer_is_given_again_while_it_is_fresh(scene: Scene) -> None:
    clock = ManualClock()
    barrier = SequenceBarrier(scene.log, freshness=2.0, clock=clock)
    scene.insert()
    assert barrier.settled(scene.connection).id == 1
    scene.insert()
    clock.advance(1.9)
    assert barrier.settled(scene.connection).id == 1
    clock.advance(0.2)
    assert barrier.settled(scene.connection).id == 2


def test_who_asks_while_another_thread_does_gets_the_last_answer_without_waiting(scene: Scene) -> None:
    scene.insert()
    assert scene.settled().id == 1
    scene.insert()
    # Held back at the sequence, the other thread's question takes as long as we like.
    admin = scene.server.connect()
    admin.execute("ALTER TABLE log_id_seq RENAME TO renamed")
    answers: list[Settled] = []
    other = scene.engine.connect()
    (pid,) = other.exec_driver_sql("SELECT pg_backend_pid()").one()
    asking = threading.Thread(target=lambda: answers.append(scene.barrier.settled(other)))
    asking.start()
    try:
        waiting = "SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted"
        while scene.admin.execute(waiting, [pid]).fetchone() != (1,):
            pass
        assert scene.settled().id == 1
    finally:
        admin.rollback()
        asking.join()
        other.close()
        admin.close()
    assert answers[0].id == 2
    assert scene.settled().id == 2


def test_a_name_may_have_what_statements_use_for_parameters(scene: Scene) -> None:
    scene.admin.execute(TABLE.replace("log", "\"50%:s 'log'\"", 1).encode())
    log = LogTable(table="50%:s 'log'", terminal=("done",), ids="identity").reflect(scene.connection)
    barrier = barrier_for(log)
    scene.admin.execute(INSERT.replace("log", "\"50%:s 'log'\"", 1).encode())
    assert barrier.settled(scene.connection).id == 1
    assert barrier.settled(scene.connection).blockers == ()
