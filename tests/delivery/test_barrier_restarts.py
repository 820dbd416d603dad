"""What was settled dies with the server, the sequence, the table and the privilege that showed it."""

import pytest
from barrier_scene import ON_EACH_VERSION, TABLE, Scene

from gapless.errors import NotAMessageLog, UnsafeSetup

pytestmark = ON_EACH_VERSION


def selected(scene: Scene) -> str:
    return str(scene.connection.exec_driver_sql(f"SELECT {scene.barrier.incarnation_sql}").scalar_one())


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_nothing_settled_outlives_a_restart_of_the_server(scene: Scene, mode: str) -> None:
    scene.insert(2)
    before = scene.settled()
    scene.server.restart(mode)
    scene.reconnect()
    assert selected(scene) != before.incarnation
    writer = scene.writer()
    assert scene.settled().id == 0
    writer.commit()
    after = scene.settled()
    assert after.id >= 3
    assert after.incarnation == selected(scene) != before.incarnation


def test_nothing_settled_outlives_the_crash_of_one_session_after_which_ids_come_again(scene: Scene) -> None:
    # The server writes its log by and by: what nobody committed is lost in the crash where that came later.
    for _ in range(20):
        scene.insert()
        lost = scene.writer()
        lost.execute("INSERT INTO log (shard) SELECT 's' FROM generate_series(1, 200)")
        lost.rollback()
        before = scene.settled()
        assert before.blockers == ()
        started = scene.admin.execute("SELECT pg_postmaster_start_time()").fetchone()
        scene.server.crash_one_session()
        scene.reconnect()
        # It has recovered without being started anew, so that its start does not tell.
        assert scene.admin.execute("SELECT pg_postmaster_start_time()").fetchone() == started
        assert selected(scene) != before.incarnation
        again = scene.writer()
        (given_out,) = scene.admin.execute("SELECT last_value FROM log_id_seq").fetchone() or (0,)
        if given_out <= before.id:
            assert (scene.settled().id, len(scene.settled().blockers)) == (0, 1)
            return
        again.rollback()
    raise AssertionError("no id was ever given out again")


def test_nothing_settled_outlives_a_restart_of_the_sequence(scene: Scene) -> None:
    scene.insert(5)
    before = scene.settled()
    scene.admin.execute("TRUNCATE log RESTART IDENTITY")
    scene.insert(7)
    assert selected(scene) != before.incarnation
    scene.writer()
    settled = scene.settled()
    assert (settled.id, len(settled.blockers)) == (0, 1)


def test_nothing_is_settled_while_a_sequence_that_was_set_back_is_written(scene: Scene) -> None:
    scene.insert(5)
    assert scene.settled().id == 5
    scene.admin.execute("DELETE FROM log")
    scene.admin.execute("SELECT setval('log_id_seq', 2)")
    writer = scene.writer()
    assert scene.settled().id == 0
    writer.commit()
    assert scene.settled().id == 3


def test_a_sequence_set_back_while_a_writer_is_awaited_settles_nothing_above_it(scene: Scene) -> None:
    scene.insert(5)
    writer = scene.writer()
    assert scene.settled().id == 0
    scene.admin.execute("SELECT setval('log_id_seq', 2)")
    writer.rollback()
    assert scene.settled().id == 2


def test_a_table_that_was_replaced_is_refused(scene: Scene) -> None:
    scene.insert(5)
    before = scene.settled()
    scene.admin.execute("ALTER TABLE log RENAME TO log_of_last_year")
    scene.admin.execute(TABLE)
    assert selected(scene) != before.incarnation
    with pytest.raises(UnsafeSetup) as caught:
        scene.settled()
    assert caught.value.setup == "replaced_sequence"


def test_a_table_that_is_gone_is_named(scene: Scene) -> None:
    scene.settled()
    scene.admin.execute("DROP TABLE log")
    with pytest.raises(NotAMessageLog, match="the table or its sequence is gone"):
        scene.settled()


def test_a_privilege_that_was_taken_back_is_named(scene: Scene) -> None:
    scene.admin.execute("CREATE ROLE gapless_reader")
    try:
        scene.admin.execute("GRANT USAGE ON SCHEMA of_a_log TO gapless_reader")
        scene.admin.execute("GRANT SELECT ON log, log_id_seq TO gapless_reader")
        scene.connection.exec_driver_sql("SET ROLE gapless_reader")
        scene.settled()
        scene.admin.execute("REVOKE SELECT ON log_id_seq FROM gapless_reader")
        with pytest.raises(NotAMessageLog, match="the role may no longer read it"):
            scene.settled()
        scene.connection.exec_driver_sql("RESET ROLE")
    finally:
        scene.admin.execute("DROP OWNED BY gapless_reader")
        scene.admin.execute("DROP ROLE gapless_reader")


def test_a_standby_is_refused_and_what_was_settled_before_is_not_given(scene: Scene) -> None:
    scene.insert(2)
    assert scene.settled().id == 2
    with scene.server.as_standby():
        scene.reconnect()
        for _ in range(2):
            with pytest.raises(UnsafeSetup) as caught:
                scene.settled()
            assert caught.value.setup == "standby"
    scene.reconnect()
    assert scene.settled().id == 2


# The connection
