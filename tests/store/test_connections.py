"""However many threads and open stores a process has, its connections to a PostgreSQL store stay at their number."""

import os
import threading
import warnings

import pytest
from sqlalchemy.engine import make_url

from gapless.errors import ConfigurationError, StoreBusy
from gapless.store import connections, open_store
from gapless.store_ref import StoreRef

THREADS = 12
STORES_EACH = 3
ROUNDS = 15


@pytest.fixture
def named_url(postgres_scene, request):
    """The scene's store, under an application name by which the server tells this test's connections from others."""
    name = f"gapless-{os.getpid()}-{abs(hash(request.node.name)) % 10**6}"
    url = make_url(postgres_scene.url).update_query_dict({"application_name": name})
    return url.render_as_string(), name


class Watching(threading.Thread):
    """Asks the server again and again how many connections there are of that name; `most` is the highest it has seen."""

    def __init__(self, admin, name):
        super().__init__(daemon=True)
        self.admin = admin
        self.name = name
        self.most = 0
        self.done = threading.Event()

    def now(self):
        counted = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        return self.admin.execute(counted, [self.name]).fetchone()[0]

    def run(self):
        while not self.done.is_set():
            self.most = max(self.most, self.now())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        self.done.set()
        self.join(20)


@pytest.mark.parametrize("allowed", [1, 4])
def test_many_threads_with_many_stores_share_the_connections_of_the_process(
    postgres_scene, postgres_admin, named_url, kit, allowed
):
    url, name = named_url
    rows = postgres_scene.members(*(f"p{number}" for number in range(THREADS)))
    opened = [[open_store(url, connections=allowed) for _ in range(STORES_EACH)] for _ in range(THREADS)]

    def work(stores, row):
        for turn in range(ROUNDS):
            store = stores[turn % STORES_EACH]
            row = store.promote(kit.promotion(row, 10 * (turn + 1)))
            assert row is not None
            store.publish("orders", 1)
        return row.sequence

    with Watching(postgres_admin, name) as watching:
        done = kit.at_once([lambda mine=mine: work(*mine) for mine in zip(opened, rows, strict=True)])
    assert done == [ROUNDS] * THREADS
    assert 1 <= watching.most <= allowed
    assert 1 <= watching.now() <= allowed, "they are kept for the next one"
    for stores in opened:
        for store in stores:
            store.close()
    assert _comes_to(watching.now, 0), "the last one that closes its store closes them"


def _comes_to(count, wanted):
    """The server takes a moment to notice that a connection was closed."""
    return any(count() == wanted for _ in range(2000))


def test_a_store_between_transactions_holds_no_connection_from_another(named_url):
    url, _ = named_url
    with open_store(url, connections=1) as one, open_store(url, connections=1) as other:
        assert one.scope("orders") == other.scope("orders") == one.scope("orders")


def test_a_stream_of_rows_leaves_the_connections_to_others(postgres_scene, named_url):
    url, _ = named_url
    (row,) = postgres_scene.members("a")
    postgres_scene.advance(row, 10)
    with open_store(url, connections=1) as store:
        for promotion in store.promotions("orders"):
            assert store.chain(promotion.chain).sequence == 1


def test_who_gets_no_connection_in_time_is_told_so(named_url, kit, monkeypatch):
    monkeypatch.setattr(connections, "LOCK_SECONDS", 0.2)
    url, _ = named_url
    with open_store(url, connections=1) as one, open_store(url, connections=1) as other:
        with one._database.bare():
            with pytest.raises(StoreBusy, match="all connections that this process may have were in use"):
                other.scope("orders")
        assert other.scope("orders").scope == "orders"


def test_a_forked_child_neither_uses_nor_closes_what_its_parent_has_open(postgres_scene, named_url):
    url, _ = named_url
    with open_store(url) as store:
        (backend,) = _backends(store)
        with warnings.catch_warnings():
            # Python 3.12 warns of any other thread; the child uses none.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            status = 1
            try:
                own = _backends(store)
                store.close()
                status = 0 if own and backend not in own else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert _backends(store) == [backend], "the parent's connection is still there, and its own"


def _backends(store):
    with store._database.bare() as connection:
        return [connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()]


def test_a_store_that_nobody_could_use_is_refused():
    with pytest.raises(ConfigurationError, match="cannot be used by 0 connections"):
        StoreRef("sqlite:///progress.db", connections=0)
