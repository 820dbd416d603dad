"""Taking a chain: the fencing token decides, in one statement."""

import pytest

from gapless.errors import StoreError
from gapless.progress import ChainState


def test_taking_sets_the_fencing_token_and_gives_the_row(scene):
    (task,) = scene.observe("a").tasks
    row = scene.store.take(task.chain, 7)
    assert (row.fencing_token, row.partition, row.sequence) == (7, "a", 0)
    assert scene.store.chain(task.chain) == row


def test_a_fenced_run_takes_nothing_and_changes_nothing(scene):
    (task,) = scene.observe("a").tasks
    scene.store.take(task.chain, 7)
    before = scene.contents()
    assert scene.store.take(task.chain, 6) is None
    assert scene.contents() == before


def test_a_twin_of_the_run_takes_the_same_chain(scene):
    (task,) = scene.observe("a").tasks
    assert scene.store.take(task.chain, 7) == scene.another().take(task.chain, 7)


def test_taking_opens_a_held_chain_and_keeps_what_held_it(scene, kit):
    (row,) = scene.members("a")
    from gapless.store.records import Blocker

    blocker = Blocker("unsettled_event", "ValueError", "e1", 5)
    assert scene.store.hold(row, ChainState.HELD, blocker)
    taken = scene.store.take(row.chain, 2)
    assert (taken.state, taken.blocker.event_id, taken.blocker.position) == (ChainState.OPEN, "e1", 5)


@pytest.mark.parametrize("state", ["gap", "ended", "sealed", "replaced", "superseded"])
def test_taking_opens_no_other_state(scene, state):
    (task,) = scene.observe("a").tasks
    scene.sql("UPDATE gapless_chain SET state = :state", state=state)
    assert scene.store.take(task.chain, 2).state == state


def test_there_is_nothing_to_take_under_an_unknown_number(scene):
    with pytest.raises(StoreError, match="no chain 99"):
        scene.store.take(99, 1)
    with pytest.raises(StoreError, match="no chain 99"):
        scene.store.chain(99)


def test_of_many_that_take_at_once_the_newest_run_has_the_chain(scene, kit):
    (task,) = scene.observe("a").tasks
    stores = [scene.another() for _ in range(8)]
    rows = kit.at_once(
        [lambda s=store, n=n: s.take(task.chain, n) for n, store in enumerate(stores, start=1)]
    )
    assert scene.store.chain(task.chain).fencing_token == 8
    assert rows[-1] is not None
    for number, row in enumerate(rows, start=1):
        assert row is None or row.fencing_token == number


def test_a_take_that_waits_for_another_is_judged_by_the_row_it_finds_then(postgres_scene, kit, until_blocked):
    (task,) = postgres_scene.observe("a").tasks
    older = postgres_scene.another()
    with postgres_scene.connection() as connection:
        connection.exec_driver_sql(f"UPDATE gapless_chain SET fencing_token = 5 WHERE chain = {task.chain}")
        waiting = kit.in_background(lambda: older.take(task.chain, 4))
        until_blocked(connection.connection.dbapi_connection.info.backend_pid)
        connection.commit()
    assert waiting.result() is None
    assert postgres_scene.store.chain(task.chain).fencing_token == 5
