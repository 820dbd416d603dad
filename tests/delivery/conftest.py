"""A PostgreSQL server that tests of message logs may restart, with room for prepared transactions and logical replication."""

import contextlib
import os
from collections.abc import Iterator

import pytest
from barrier_scene import Scene
from own_postgres import OwnServer, own_server
from sqlalchemy.engine import Engine, create_engine, make_url
from sqlalchemy.pool import NullPool


@contextlib.contextmanager
def server_or_reason(version: int | None = None) -> Iterator[OwnServer]:
    """A server of that major version, None: the newest; where there is none, the test is skipped, or fails, with the reason."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(
                own_server(version, max_prepared_transactions=60, max_connections=150, wal_level="logical")
            )
        except Exception as error:  # noqa: BLE001 - whatever keeps the server from starting is the reason to print
            if os.environ.get("GAPLESS_REQUIRE_POSTGRES") == "1":
                pytest.fail(f"GAPLESS_REQUIRE_POSTGRES=1, but no server can be started: {error!r}")
            pytest.skip(f"no PostgreSQL {version or 'server'}: {error!r}")
        yield server


@pytest.fixture(scope="package", params=[None])
def postgres_of_its_own(request: pytest.FixtureRequest) -> Iterator[OwnServer]:
    """The newest there is; a module whose tests need others too parametrizes it with `indirect`."""
    with server_or_reason(request.param) as server:
        yield server


@pytest.fixture
def own_postgres_schema(postgres_of_its_own: OwnServer) -> Iterator[str]:
    """A schema of the test's own there, first on the search path of every new session."""
    with postgres_of_its_own.connect(autocommit=True) as admin:
        admin.execute("CREATE SCHEMA of_a_log")
        admin.execute("ALTER ROLE postgres SET search_path = of_a_log, public")
    yield "of_a_log"
    with postgres_of_its_own.connect(autocommit=True) as admin:
        for (gid,) in admin.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
            admin.execute(f"ROLLBACK PREPARED '{gid}'")
        admin.execute("SET client_min_messages = warning")
        admin.execute("DROP SCHEMA of_a_log CASCADE")
        admin.execute("ALTER ROLE postgres RESET search_path")


@pytest.fixture
def own_engine(postgres_of_its_own: OwnServer, own_postgres_schema: str) -> Iterator[Engine]:
    """In autocommit, into that schema."""
    engine = create_engine(postgres_of_its_own.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    yield engine
    engine.dispose()


@pytest.fixture
def log_engine(store_url: str) -> Iterator[Engine]:
    """An empty database of each kind in turn, in autocommit."""
    url = make_url(store_url)
    if url.get_backend_name() == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    yield engine
    engine.dispose()


@pytest.fixture
def postgres_engine(postgres_url: str) -> Iterator[Engine]:
    url = make_url(postgres_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    engine = create_engine(sqlite_url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    yield engine
    engine.dispose()


@pytest.fixture
def scene(postgres_of_its_own: OwnServer, own_engine: Engine) -> Iterator[Scene]:
    """A log in a fresh schema of that server, who asks about it, and its writers."""
    scene = Scene(postgres_of_its_own, own_engine)
    yield scene
    scene.close()
