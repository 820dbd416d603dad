"""An administrator ends the store's sessions, before any statement of any operation: each is done once, with its answer."""

from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from gapless.progress import Bound, ChainState
from gapless.store import open_store
from gapless.store.records import Blocker

MOST_STATEMENTS = 60


class Axe:
    """Ends the session of a store before its n-th statement from now on, once."""

    def __init__(self, store, admin):
        self._store = store
        self._admin = admin
        self.left = None
        self.struck = False

    def __call__(self, connection, cursor, statement, parameters, context, executemany):
        if self.left is None:
            return
        if self.left == 0:
            self.left, self.struck = None, True
            pid = connection.connection.dbapi_connection.info.backend_pid
            _end_session(self._admin, pid)
            return
        self.left -= 1

    @contextmanager
    def before(self, number):
        self.left, self.struck = number, False
        try:
            yield
        finally:
            self.left = None


def _end_session(admin, pid):
    """And wait until it is gone."""
    (gone,) = admin.execute("SELECT pg_terminate_backend(%s, 20000)", [pid]).fetchone()
    assert gone


def emptied(scene, kit):
    """The scene begins anew."""
    with scene.connection() as connection:
        names = connection.exec_driver_sql(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
            " AND relname LIKE 'gapless\\_%%' AND relname <> 'gapless_schema_version'"
        ).scalars()
        connection.exec_driver_sql(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE")
        connection.commit()
    scene.store.register_scope(kit.identity())


def prepared(scene):
    """Member a of two, taken by run 1, with one page promoted."""
    row, _ = scene.members("a", "b")
    scene.store.begin_run("orders", "run", "test")
    return scene.advance(row, 5)


def read(far, scene, kit, row):
    snapshot = far.snapshot("orders")
    assert [one.sequence for one in snapshot.chains if one.partition == "a"] == [1]


def take(far, scene, kit, row):
    assert far.take(row.chain, 2).fencing_token == 2


def promote(far, scene, kit, row):
    promoted = far.promote(
        kit.promotion(row, 10, dead_letters=[kit.letter("e")], violations=[kit.violation("v")])
    )
    assert (promoted.sequence, promoted.bound, promoted.dead_letters) == (2, Bound.through(10), 1)
    assert len(list(scene.store.promotions("orders"))) == 2
    assert len(list(scene.store.dead_letters("orders"))) == 1


def publish(far, scene, kit, row):
    other = scene.live("b")
    scene.advance(scene.store.take(other.chain, 1), 3)
    far.publish("orders", 1)
    assert scene.frontier() == Bound.through(3)


def observe(far, scene, kit, row):
    observed = far.observe("orders", kit.assignment("a", "b", "c"))
    assert sorted(one.partition for one in observed.chains) == ["a", "b", "c"]
    assert sorted(one.partition for one in scene.store.snapshot("orders").chains) == ["a", "b", "c"]


def hold(far, scene, kit, row):
    assert far.hold(row, ChainState.HELD, Blocker("unsettled_event", "no", "e1", 7))
    assert scene.live("a").state is ChainState.HELD


def begin_run(far, scene, kit, row):
    number = far.begin_run("orders", "another", "test")
    assert scene.store.begin_run("orders", "another", "test") == number


def end_run(far, scene, kit, row):
    far.end_run("run", "finished")
    assert not scene.store.heartbeat("run")


OPERATIONS = (read, take, promote, publish, observe, hold, begin_run, end_run)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.__name__)
def test_a_session_may_end_before_any_statement(postgres_scene, kit, postgres_admin, operation):
    scene = postgres_scene
    for number in range(MOST_STATEMENTS):
        emptied(scene, kit)
        row = prepared(scene)
        with open_store(scene.url, clock=scene.clock) as far:
            axe = Axe(far, postgres_admin)
            sa.event.listen(far._database._engine, "before_cursor_execute", axe)
            with axe.before(number):
                operation(far, scene, kit, row)
        if not axe.struck:
            break
    assert 0 < number < MOST_STATEMENTS - 1, "every statement was met, and then there was none left"


def test_all_sessions_of_a_process_may_end_at_once(postgres_scene, postgres_admin, kit):
    """Those that lie idle in the pool are dead then, too: the second attempt is not given another one of them."""
    row = prepared(postgres_scene)
    name = f"gapless-ended-{id(postgres_scene)}"
    url = make_url(postgres_scene.url).update_query_dict({"application_name": name}).render_as_string()
    stores = [open_store(url, connections=4) for _ in range(4)]
    for turn in range(3):
        kit.at_once([lambda store=store: [store.snapshot("orders") for _ in range(20)] for store in stores])
        pids = postgres_admin.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", [name])
        ended = [pid for (pid,) in pids.fetchall()]
        assert ended
        for pid in ended:
            _end_session(postgres_admin, pid)
        row = stores[turn].promote(kit.promotion(row, 10 * (turn + 1)))
        assert row.sequence == turn + 2
        for store in stores:
            assert store.chain(row.chain).sequence == turn + 2
    for store in stores:
        store.close()
