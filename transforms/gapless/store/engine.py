"""The one connection of a store: how it is opened on either database, its transactions, and what happens when it dies.

SQLite: WAL, synchronous=FULL, BEGIN IMMEDIATE for every write. PostgreSQL: psycopg 3, READ COMMITTED for writes, one
REPEATABLE READ snapshot for a read.
"""

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, MappingResult, RowMapping
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from gapless.clock import Clock
from gapless.errors import ConfigurationError, StoreUnreadable, StoreUnwritable
from gapless.store.address import Address
from gapless.store.failures import ConnectionLost, connect_error, store_error

T = TypeVar("T")

Ask = Callable[[sa.Select[Any]], Generator[RowMapping, None, None]]
"""Asks one snapshot: the rows of a statement, streamed."""

LOCK_SECONDS = 30
"""How long a statement waits for another process's lock before StoreBusy."""

RECONNECTS = 8
"""Attempts to reach a server again that was reached before, 7 s in all: a restart takes a few."""

_OLDEST_SQLITE = (3, 35, 0)
_OLDEST_POSTGRESQL = 150000
_STREAM_ROWS = 1000
_KEEPALIVE = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "connect_timeout": "15",
}


_writers: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
"""By the path of a SQLite file: whose turn it is to write among the threads of this process."""


class Database:
    """A store's database, by one connection. Used by one thread at a time; connects at first use.

    Every method raises StoreError; a transaction that raises has changed nothing."""

    def __init__(
        self,
        address: Address,
        clock: Clock,
        *,
        readonly: bool = False,
        create: bool = False,
        patient: bool = False,
    ) -> None:
        self.address = address
        self.readonly = readonly
        self._clock = clock
        self._engine = _engine(address, readonly=readonly, create=create)
        self._connection: Connection | None = None
        self._connected_before = patient

    @property
    def where(self) -> str:
        """The store as a line of an error."""
        return self.address.shown

    @property
    def sqlite(self) -> bool:
        return self.address.path is not None

    def write(self, work: Callable[[Connection], T], again: Callable[[Connection], T] | None = None) -> T:
        """`work` in one write transaction.

        Where the connection dies, also in the middle of the commit, `again` (default: `work`) runs once in a new transaction on
        a new connection. It must give the right answer whether or not the first attempt took effect."""
        if self.readonly:
            raise StoreUnwritable("the store was opened for reading only", where=self.where)
        return self._twice(
            lambda first: self._transaction(work if first or again is None else again, writing=True)
        )

    def read(self, work: Callable[[Connection], T]) -> T:
        """`work` on one consistent snapshot; once more on a new one where the connection dies."""
        return self._twice(lambda first: self._transaction(work, writing=False))

    def stream(self, statement: sa.Select[Any]) -> Generator[RowMapping, None, None]:
        """Rows of one snapshot in bounded memory, over a connection of their own, so that the store can be used meanwhile."""
        with self.view() as ask:
            yield from ask(statement)

    @contextmanager
    def view(self) -> Iterator[Ask]:
        """One snapshot over a connection of its own, to be asked as often as wanted, also while an answer is being read.

        Each answer streams in bounded memory."""
        unread: set[MappingResult] = set()
        with closing(self._connect()) as connection:
            with self._translated(writing=False):
                self._begin(connection, writing=False)
            try:
                yield lambda statement: self._rows(connection, statement, unread)
            finally:
                for result in tuple(unread):
                    result.close()

    def _rows(
        self, connection: Connection, statement: sa.Select[Any], unread: set[MappingResult]
    ) -> Generator[RowMapping, None, None]:
        with self._translated(writing=False):
            result = connection.execute(statement, execution_options={"yield_per": _STREAM_ROWS}).mappings()
        unread.add(result)
        try:
            while True:
                with self._translated(writing=False):
                    rows = result.fetchmany(_STREAM_ROWS)
                if not rows:
                    return
                yield from rows
        finally:
            unread.discard(result)
            result.close()

    @contextmanager
    def bare(self) -> Iterator[Connection]:
        """The connection outside of any transaction. Raises StoreError for what fails inside."""
        with self._translated(writing=not self.readonly):
            connection = self._open()
            try:
                yield connection
            finally:
                connection.rollback()

    def disconnect(self) -> None:
        """Close the connection; the next use opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            _discard(connection)

    def close(self) -> None:
        self.disconnect()
        self._engine.dispose()

    def _twice(self, attempt: Callable[[bool], T]) -> T:
        # No wait between the two: connecting again is where the waiting is.
        retrying = Retrying(
            stop=stop_after_attempt(2),
            retry=retry_if_exception_type(ConnectionLost),
            sleep=lambda seconds: None,
            reraise=True,
        )
        for state in retrying:
            with state:
                return attempt(state.retry_state.attempt_number == 1)
        raise AssertionError("tenacity ends with a result or an exception")

    def _transaction(self, work: Callable[[Connection], T], *, writing: bool) -> T:
        with self._turn(writing=writing), self._translated(writing=writing):
            connection = self._open()
            try:
                self._begin(connection, writing=writing)
                result = work(connection)
                connection.commit()
            except BaseException:
                self._roll_back(connection)
                raise
            return result

    @contextmanager
    def _turn(self, *, writing: bool) -> Iterator[None]:
        """SQLite has one writer at a time, and who waits for it sleeps in steps of up to 0.1 s: the threads of a process
        queue up here instead, where the next one is woken at once."""
        if not writing or self.address.path is None:
            yield
            return
        with _writers[str(self.address.path)]:
            yield

    def _begin(self, connection: Connection, *, writing: bool) -> None:
        if self.sqlite:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
        elif not writing:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def _roll_back(self, connection: Connection) -> None:
        """Back to no transaction; a connection that cannot even do that is dropped, and its server does it."""
        try:
            connection.rollback()
        except DBAPIError:
            self.disconnect()
        else:
            if connection.invalidated:
                self.disconnect()

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = self._reconnect() if self._connected_before else self._connect()
            self._connected_before = True
        return self._connection

    def _reconnect(self) -> Connection:
        retrying = Retrying(
            stop=stop_after_attempt(RECONNECTS),
            wait=wait_exponential(multiplier=0.1, max=2),
            retry=retry_if_exception_type(StoreUnreadable),
            sleep=self._clock.sleep,
            reraise=True,
        )
        return retrying(self._connect)

    def _connect(self) -> Connection:
        try:
            return self._engine.connect()
        except DBAPIError as error:
            raise connect_error(error, self.where) from error

    @contextmanager
    def _translated(self, *, writing: bool) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise store_error(error, self.where, writing=writing) from error


def _discard(connection: Connection) -> None:
    """Close a connection that may be broken: nothing on it is worth another word."""
    try:
        connection.close()
    except DBAPIError:
        connection.invalidate()


def _engine(address: Address, *, readonly: bool, create: bool) -> Engine:
    if address.path is not None:
        return _sqlite_engine(address, readonly=readonly, create=create)
    return _postgresql_engine(address, readonly=readonly)


def _sqlite_engine(address: Address, *, readonly: bool, create: bool) -> Engine:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreUnreadable(
            f"SQLite {sqlite3.sqlite_version} is too old",
            where=address.shown,
            remedy="use a Python built with SQLite 3.35 or newer, or a PostgreSQL store",
        )
    mode = "ro" if readonly else "rwc" if create else "rw"
    uri = f"file:{quote(str(address.path))}?mode={mode}"

    def connect() -> sqlite3.Connection:
        # A store is used by one thread at a time, but not always by the same one: Beam hands DoFns on.
        connection = sqlite3.connect(
            uri, uri=True, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
        )
        if not readonly:
            connection.execute("PRAGMA synchronous=FULL")
        return connection

    return sa.create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)


def _postgresql_engine(address: Address, *, readonly: bool) -> Engine:
    defaults = {name: value for name, value in _KEEPALIVE.items() if name not in address.url.query}
    try:
        engine = sa.create_engine(
            address.url,
            poolclass=NullPool,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
            connect_args={"application_name": "gapless", **defaults},
        )
    except ImportError as error:
        raise ConfigurationError(
            "a PostgreSQL store needs psycopg, which is not installed",
            where=address.shown,
            remedy='pip install "gapless[postgres]"',
        ) from error

    def prepare(connection: Any, record: object) -> None:
        version = connection.info.server_version
        if version < _OLDEST_POSTGRESQL:
            connection.close()
            raise StoreUnreadable(
                f"PostgreSQL {version // 10000} is too old",
                where=address.shown,
                remedy="use PostgreSQL 15 or newer",
            )
        # What is promoted must outlive a crash of the server, whatever its default; stricter settings are kept.
        connection.execute(
            "SELECT set_config('lock_timeout', %s, false), set_config('synchronous_commit', CASE WHEN"
            " current_setting('synchronous_commit') IN ('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit')"
            " END, false)",
            (f"{LOCK_SECONDS}s",),
        )
        connection.commit()
        connection.read_only = readonly

    sa.event.listen(engine, "connect", prepare)
    return engine
