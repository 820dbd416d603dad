"""The user's database by URL, engine or connection: connections outside of any transaction, and short durable transactions.

PostgreSQL: autocommit, so that each statement sees its own snapshot; a write is at READ COMMITTED and waits for the disk.
SQLite: a read is one transaction, a write begins with BEGIN IMMEDIATE under synchronous=FULL.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from gapless.delivery.barrier_session import own_transactions
from gapless.delivery.failures import ConnectionBroke, database_error
from gapless.delivery.log_table import quoted
from gapless.errors import ConfigurationError, DatabaseUnavailable, NotAMessageLog

T = TypeVar("T")

LOCK_SECONDS = 30
"""How long a write waits for another process's before it gives up."""

_REMEDY = "allowed: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"

_PATIENCE: dict[str, Any] = {
    "application_name": "gapless",
    "connect_timeout": "15",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}

_FULL = 2
"""SQLite's number for `PRAGMA synchronous=FULL`."""

_DURABLE = (
    "SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')"
    " THEN 'on' ELSE current_setting('synchronous_commit') END, true)"
)


class LogDatabase:
    """`of` is a SQLAlchemy URL (its text too), an engine, or a connection; the user's own are left as they were.

    Every method raises MessageLogError for what the database refuses, and InsideTransaction where a given connection is inside
    a transaction. A connection serves one thread at a time, and the others wait."""

    def __init__(self, of: str | URL | Engine | Connection) -> None:
        if not isinstance(of, str | URL | Engine | Connection):
            raise ConfigurationError(
                f"{of!r} is no database",
                where="database",
                remedy="give a SQLAlchemy URL, engine or connection",
            )
        self._owned = isinstance(of, str | URL)
        self._connection = of if isinstance(of, Connection) else None
        self._turn = threading.RLock()
        self.engine = _engine(of) if isinstance(of, str | URL) else of.engine
        if self.engine.dialect.name not in ("sqlite", "postgresql"):
            raise NotAMessageLog(
                f"{self.engine.dialect.name} is no database whose open writers gapless can follow",
                where=self.shown,
                remedy="use SQLite or PostgreSQL",
            )

    @property
    def shown(self) -> str:
        """For messages: never a password."""
        url = self.engine.url
        if url.get_backend_name() == "sqlite":
            return f"sqlite:///{url.database or ''}"
        host = url.host or url.query.get("host", "")
        return f"{url.get_backend_name()}://{host}/{url.database or ''}"

    @property
    def sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    def read(self, work: Callable[[Connection], T]) -> T:
        """`work` on a connection outside of any transaction; on SQLite, in one read transaction.

        Where a pooled connection turns out to be dead, once more on a new one."""
        try:
            return self._read(work)
        except ConnectionBroke:
            if self._connection is not None:
                raise
            return self._read(work)

    def _read(self, work: Callable[[Connection], T]) -> T:
        with self.connection() as connection:
            if not self.sqlite:
                return work(connection)
            with _transaction(connection, "BEGIN"):
                return work(connection)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection outside of any transaction: on PostgreSQL every statement is one."""
        with self._translated(), self._checked_out() as connection:
            if self._owned:
                yield connection
            else:
                with own_transactions(connection):
                    yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One write transaction. When it is left without an error, it is on the disk."""
        with self.connection() as connection:
            if not self.sqlite:
                with _transaction(connection, "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"):
                    connection.exec_driver_sql(_DURABLE)
                    yield connection
                return
            before = _synchronous(connection)
            _set_synchronous(connection, dict.fromkeys(before, _FULL))
            try:
                with _transaction(connection, "BEGIN IMMEDIATE"):
                    yield connection
            finally:
                if not connection.invalidated:
                    _set_synchronous(connection, before)

    def close(self) -> None:
        """Close what was opened here; an engine or a connection of the user's stays."""
        if self._owned:
            self.engine.dispose()

    @contextmanager
    def _checked_out(self) -> Iterator[Connection]:
        if self._connection is None:
            with self.engine.connect() as connection:
                yield connection
        else:
            with self._turn:
                yield self._connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise database_error(error, self.shown) from error


def execute(connection: Connection, statement: str, parameters: Mapping[str, Any]) -> Any:
    """A statement of `Statements`, with its parameters as the driver takes them; its result, whose rows have no static type."""
    return connection.exec_driver_sql(statement, dict(parameters))


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """A transaction of a few reading statements; on SQLite a read is one already."""
    if connection.dialect.name == "sqlite":
        yield
        return
    with _transaction(connection, "BEGIN ISOLATION LEVEL READ COMMITTED"):
        yield


@contextmanager
def _transaction(connection: Connection, begin: str) -> Iterator[None]:
    try:
        connection.exec_driver_sql(begin)
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _synchronous(connection: Connection) -> dict[str, int]:
    """Of the main database and of those attached, by name: the log may be in any, and each has its own."""
    names = [name for _, name, _ in connection.exec_driver_sql("PRAGMA database_list") if name != "temp"]
    return {
        name: connection.exec_driver_sql(f"PRAGMA {quoted(name)}.synchronous").scalar_one() for name in names
    }


def _set_synchronous(connection: Connection, levels: Mapping[str, int]) -> None:
    for name, level in levels.items():
        connection.exec_driver_sql(f"PRAGMA {quoted(name)}.synchronous={level:d}")


def _roll_back(connection: Connection) -> None:
    """Whatever is begun, and nothing where nothing is. A connection that cannot even do that is dropped: its server does it."""
    if connection.invalidated:
        return
    try:
        connection.connection.rollback()
    except Exception:  # noqa: BLE001 - drivers differ in what they raise, and what is told is the error that led here
        connection.invalidate()


def _engine(url: str | URL) -> Engine:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # What could not be parsed may hold a password anywhere, and so may the parser's message.
        raise ConfigurationError("the URL cannot be read", where="url", remedy=_REMEDY) from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    backend = parsed.get_backend_name()
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise ConfigurationError(
            "a database in memory is another one for each connection", where="url", remedy=_REMEDY
        )
    if (
        backend == "sqlite"
        and not str(parsed.database).startswith("file:")
        and not Path(str(parsed.database)).exists()
    ):
        # SQLite would create an empty one, and nobody would know why it holds no table.
        raise DatabaseUnavailable(
            "there is no file of that name",
            where=f"sqlite:///{parsed.database}",
            remedy="check the path in the URL: the database of the messages is there before gapless is",
        )
    # Below what the URL itself says.
    defaults = {"sqlite": {"timeout": LOCK_SECONDS}, "postgresql": _PATIENCE}.get(backend, {})
    settings = {name: value for name, value in defaults.items() if name not in parsed.query}
    try:
        return sa.create_engine(
            parsed, isolation_level="AUTOCOMMIT", hide_parameters=True, connect_args=settings
        )
    except (NoSuchModuleError, ImportError) as error:
        raise ConfigurationError(
            f"no driver for {parsed.drivername}: {error}",
            where="url",
            remedy=f'{_REMEDY}; pip install "gapless[postgres]"',
        ) from error
