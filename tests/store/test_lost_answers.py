"""PostgreSQL goes away: before a statement, in the middle of a commit, for a while. Nothing is lost, nothing happens twice."""

import contextlib
import socket

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url
from wire import Wire

from gapless.errors import StoreUnreadable
from gapless.progress import Bound, ChainState
from gapless.store import open_store
from gapless.store.engine import ATTEMPTS, RECONNECTS
from gapless.store.records import Blocker


@pytest.fixture
def wire(postgres_admin):
    info = postgres_admin.info

    def connect():
        if info.host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{info.host}/.s.PGSQL.{info.port}")
        else:
            server = socket.create_connection((info.host, info.port))
        return server

    with contextlib.closing(Wire(connect)) as wire:
        yield wire


@pytest.fixture
def far_url(postgres_scene, wire):
    """Over the wire, to the same schema as the scene's own."""
    here = make_url(postgres_scene.url)
    options = {**{key: value for key, value in here.query.items() if key != "host"}, "sslmode": "disable"}
    return here.set(host="127.0.0.1", port=wire.port).set(query=options).render_as_string()


@pytest.fixture
def far(postgres_scene, far_url):
    with open_store(far_url, clock=postgres_scene.clock) as store:
        yield store


lost = pytest.mark.parametrize("fate", ["answer lost", "never sent"])


@lost
def test_a_promotion_is_resolved_by_its_own_row_in_the_manifest(postgres_scene, far, wire, kit, fate):
    (row,) = postgres_scene.members("a")
    wire.on_commit = fate
    promoted = far.promote(
        kit.promotion(row, 10, dead_letters=[kit.letter("e")], violations=[kit.violation("v")])
    )
    assert (promoted.sequence, promoted.bound, promoted.dead_letters) == (1, Bound.through(10), 1)
    assert postgres_scene.store.chain(row.chain) == promoted
    assert len(list(postgres_scene.store.promotions("orders"))) == 1
    assert len(list(postgres_scene.store.dead_letters("orders"))) == 1
    assert len(list(postgres_scene.store.violations("orders"))) == 1
    assert wire.connections == 2


def test_a_promotion_whose_answer_was_lost_is_won_though_a_twin_has_gone_on(postgres_scene, far, wire, kit):
    """The file is in the manifest: to say that it lost would let its writer delete it."""
    (row,) = postgres_scene.members("a")
    wire.on_commit = "answer lost"
    wire.down = 1

    def meanwhile():
        postgres_scene.clock.on_sleep = lambda: None
        postgres_scene.advance(postgres_scene.store.chain(row.chain), 20)

    postgres_scene.clock.on_sleep = meanwhile
    promoted = far.promote(kit.promotion(row, 10))
    assert (promoted.sequence, promoted.bound) == (2, Bound.through(20))


def test_a_promotion_that_never_arrived_is_lost_where_a_twin_was_first(postgres_scene, far, wire, kit):
    (row,) = postgres_scene.members("a")
    wire.on_commit = "never sent"
    wire.down = 1

    def meanwhile():
        postgres_scene.clock.on_sleep = lambda: None
        postgres_scene.advance(row, 10)

    postgres_scene.clock.on_sleep = meanwhile
    assert far.promote(kit.promotion(row, 10)) is None
    assert len(list(postgres_scene.store.promotions("orders"))) == 1


def test_a_commit_that_is_still_under_way_is_waited_for(postgres_scene, far, wire, kit, until_blocked):
    """The second attempt meets the row lock of the first, whose commit has not yet reached the server."""
    (row,) = postgres_scene.members("a")
    with far._database.bare() as connection:
        first = connection.connection.dbapi_connection.info.backend_pid
    wire.on_commit = "late"
    promoting = kit.in_background(lambda: far.promote(kit.promotion(row, 10)))
    until_blocked(first)
    wire.release.set()
    assert promoting.result().sequence == 1
    assert len(list(postgres_scene.store.promotions("orders"))) == 1


@lost
def test_a_restart_is_resolved_by_the_token(postgres_scene, far, wire, fate):
    (row,) = postgres_scene.members("a")
    wire.on_commit = fate
    assert far.restart(row, "since=0", "410").page_token == "since=0"
    assert len(postgres_scene.contents()["journal"]) == 1


@lost
def test_a_publish_tells_that_it_moved(postgres_scene, far, wire, fate):
    (row,) = postgres_scene.members("a")
    postgres_scene.advance(row, 10)
    wire.on_commit = fate
    assert far.publish("orders", 1).frontier == Bound.through(10)
    assert len(postgres_scene.contents()["frontier_history"]) == 1
    postgres_scene.clock.sleep(1)
    wire.cut()
    assert far.publish("orders", 1) is None


@lost
def test_a_cutover_tells_that_it_opened_the_epoch(postgres_scene, far, wire, fate):
    postgres_scene.start(a=100)
    postgres_scene.observe("a", "n")
    postgres_scene.bring("n", 100)
    wire.on_commit = fate
    result = far.cutover("orders")
    assert (result.accepted, result.to_epoch, result.entered) == (True, 2, ["n"])
    assert [row.epoch for row in postgres_scene.epochs()] == [1, 2]


def test_a_cutover_whose_answer_was_lost_is_told_though_the_next_one_has_followed(postgres_scene, far, wire):
    postgres_scene.start(a=100)
    postgres_scene.observe("a", "n", "m")
    postgres_scene.bring("n", 100)
    wire.on_commit = "answer lost"
    wire.down = 1

    def meanwhile():
        postgres_scene.clock.on_sleep = lambda: None
        postgres_scene.bring("m", 100)
        assert postgres_scene.cutover().to_epoch == 3

    postgres_scene.clock.on_sleep = meanwhile
    result = far.cutover("orders")
    assert (result.to_epoch, result.entered) == (2, ["n"])


@lost
def test_a_rebuild_begins_one_lineage(postgres_scene, far, wire, fate):
    postgres_scene.start(a=100)
    wire.on_commit = fate
    assert far.rebuild("orders", "all anew").lineage == 2
    assert len(postgres_scene.contents()["journal"]) == 1


def test_a_rebuild_whose_answer_was_lost_is_not_done_again_though_a_run_has_begun(postgres_scene, far, wire):
    postgres_scene.start(a=100)
    wire.on_commit = "answer lost"
    wire.down = 1

    def meanwhile():
        postgres_scene.clock.on_sleep = lambda: None
        postgres_scene.observe("a")

    postgres_scene.clock.on_sleep = meanwhile
    assert far.rebuild("orders", "all anew").lineage == 2


@lost
def test_a_seal_by_an_operator_is_said_once(postgres_scene, far, wire, fate):
    postgres_scene.start(a=100, b=20)
    postgres_scene.observe("a")
    wire.on_commit = fate
    assert far.seal("orders", "b", Bound.through(20), "gone") == 1
    assert len(postgres_scene.contents()["journal"]) == 1


def test_a_seal_whose_answer_was_lost_is_told_though_the_partition_has_left_by_it(postgres_scene, far, wire):
    postgres_scene.start(a=100, b=20)
    postgres_scene.observe("a")
    wire.on_commit = "answer lost"
    wire.down = 1

    def meanwhile():
        postgres_scene.clock.on_sleep = lambda: None
        assert postgres_scene.cutover().left == ["b"]

    postgres_scene.clock.on_sleep = meanwhile
    assert far.seal("orders", "b", Bound.through(20), "gone") == 1


@lost
def test_what_is_idempotent_is_simply_done_again(postgres_scene, far, wire, kit, fate):
    def without_answer(work):
        wire.on_commit = fate
        result = work()
        assert wire.on_commit is None, "a commit was under way"
        return result

    number = without_answer(lambda: far.begin_run("orders", "run", "local"))
    assert number == postgres_scene.store.begin_run("orders", "run", "local")
    (task,) = without_answer(lambda: far.observe("orders", kit.assignment("a"))).tasks
    assert postgres_scene.store.scope("orders").observation == 1
    row = without_answer(lambda: far.take(task.chain, number))
    assert row.fencing_token == number
    assert without_answer(lambda: far.record_receipts(row, {"e1": "dead_lettered"}, [kit.letter("e1")]))
    row = far.chain(row.chain)
    assert without_answer(lambda: far.hold(row, ChainState.HELD, Blocker("unsettled_event", "no", "e2", 2)))
    assert without_answer(lambda: far.skip("orders", "a", "e2", "bad", "ann")).operator == "ann"
    assert postgres_scene.store.chain(row.chain).dead_letters == 2
    without_answer(lambda: far.record_violations(row, [kit.violation("v")]))
    assert postgres_scene.store.snapshot("orders").violations == 1
    assert without_answer(lambda: far.schema_store("orders").freeze("text")) == "text"
    without_answer(lambda: far.register_scope(kit.identity(scope="second")))
    without_answer(lambda: far.end_run("run", "finished"))
    assert postgres_scene.store.snapshot("orders").run.state == "finished"


def test_a_server_that_was_restarted_between_two_operations_is_not_noticed(postgres_scene, far, wire):
    postgres_scene.members("a")
    wire.cut()
    assert [row.partition for row in far.snapshot("orders").chains] == ["a"]
    wire.cut()
    assert far.begin_run("orders", "run", "local") > 0
    assert postgres_scene.clock.slept == []


def test_a_session_that_the_server_ended_is_opened_again(postgres_scene, postgres_admin):
    store = postgres_scene.another()
    with store._database.bare() as connection:
        pid = connection.connection.dbapi_connection.info.backend_pid
    postgres_admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
    assert store.scopes() == ["orders"]


def test_a_server_that_comes_back_after_a_while_is_waited_for(postgres_scene, far, wire):
    wire.down = 3
    wire.cut()
    assert far.scopes() == ["orders"]
    assert len(postgres_scene.clock.slept) == 3


def test_a_server_that_stays_away_is_unreadable_after_a_bounded_wait(postgres_scene, far, wire):
    wire.down = 10**6
    wire.cut()
    with pytest.raises(StoreUnreadable, match="cannot be reached"):
        far.scopes()
    assert len(postgres_scene.clock.slept) == RECONNECTS - 1
    assert sum(postgres_scene.clock.slept) < 10
    wire.down = 0
    assert far.scopes() == ["orders"], "and the store can be used when it is back"


def test_opening_waits_for_a_server_only_where_it_was_there_a_moment_ago(postgres_scene, far_url, wire):
    wire.down = 2
    with pytest.raises(StoreUnreadable, match="cannot be reached"):
        open_store(far_url, clock=postgres_scene.clock)
    assert (wire.down, postgres_scene.clock.slept) == (1, [])
    wire.down = 2
    with open_store(far_url, clock=postgres_scene.clock, patient=True) as store:
        assert store.scopes() == ["orders"]
    assert len(postgres_scene.clock.slept) == 2


@pytest.mark.parametrize(
    "fates", [["answer lost", "answer lost"], ["never sent", "answer lost", "never sent"]], ids=len
)
def test_several_answers_may_be_lost_on_the_way_to_one_promotion(postgres_scene, far, wire, kit, fates):
    (row,) = postgres_scene.members("a")
    left = list(fates)

    def lose(connection):
        wire.on_commit = left.pop(0) if left else None

    sa.event.listen(far._database._engine, "commit", lose)
    promoted = far.promote(kit.promotion(row, 10, dead_letters=[kit.letter("e")]))
    assert left == []
    assert (promoted.sequence, promoted.dead_letters) == (1, 1)
    assert postgres_scene.store.chain(row.chain) == promoted
    assert len(list(postgres_scene.store.promotions("orders"))) == 1


def test_a_connection_that_dies_each_time_is_an_error_and_no_loop(postgres_scene, far, wire, kit):
    (row,) = postgres_scene.members("a")

    def cut_again(connection, cursor, text, parameters, context, many):
        wire.cut()

    sa.event.listen(far._database._engine, "before_cursor_execute", cut_again)
    with pytest.raises(StoreUnreadable, match="connection to the store broke"):
        far.promote(kit.promotion(row, 10))
    assert postgres_scene.store.chain(row.chain) == row
    assert wire.connections == ATTEMPTS


def test_a_stream_whose_connection_dies_says_so_and_is_not_begun_again(postgres_scene, far, wire):
    (row,) = postgres_scene.members("a")
    for number in range(3):
        row = postgres_scene.advance(row, number)
    stream = far.promotions("orders")
    sequences = []

    def read():
        for listed in stream:
            sequences.append(listed.sequence)
            wire.cut()

    with pytest.raises(StoreUnreadable, match="broke"):
        read()
    assert sequences == [0, 1, 2]


def test_an_aborted_transaction_leaves_the_store_usable(postgres_scene, kit):
    (row,) = postgres_scene.members("a")
    moved = postgres_scene.advance(row, 1)
    postgres_scene.sql("UPDATE gapless_chain SET sequence = 0, page_token = NULL")
    with pytest.raises(StoreUnreadable, match="contradicts itself"):
        postgres_scene.store.promote(kit.promotion(row, 2))
    postgres_scene.sql("UPDATE gapless_chain SET sequence = 1, page_token = 't1'")
    assert postgres_scene.store.chain(row.chain) == moved
