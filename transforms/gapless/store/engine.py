"""A store's connection: how it is opened on either database, its transactions, and what happens when it dies.

SQLite: one connection a store, WAL, synchronous=FULL, BEGIN IMMEDIATE for every write. PostgreSQL: psycopg 3, a connection of the
process's pool for each transaction, READ COMMITTED for writes, one REPEATABLE READ snapshot for a read.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, MappingResult, RowMapping
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from gapless.clock import Clock
from gapless.errors import StoreBusy, StoreUnreadable, StoreUnwritable
from gapless.store.address import Address
from gapless.store.connections import (
    CONNECTIONS,
    LOCK_SECONDS,
    SharedPool,
    shared_pool,
    sqlite_engine,
    unpooled,
)
from gapless.store.failures import ConnectionLost, connect_error, store_error

T = TypeVar("T")

Ask = Callable[[sa.Select[Any]], Generator[RowMapping, None, None]]
"""Asks one snapshot: the rows of a statement, streamed."""

ATTEMPTS = 4
"""How often a transaction is begun whose connection dies: an administrator may end more than one of its sessions."""

RECONNECTS = 8
"""Attempts to reach a server again that was reached before, 7 s in all: a restart takes a few."""

_STREAM_ROWS = 1000

_writers: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
"""By the path of a SQLite file: whose turn it is to write among the threads of this process."""


class Database:
    """A store's database. Used by one thread at a time; connects at first use.

    On SQLite by one connection of its own. On PostgreSQL by at most `connections` of this process, which all that have the same
    store open share: one is taken for each transaction, and waited for. A view has one of its own besides.

    Every method raises StoreError; a transaction that raises has changed nothing."""

    def __init__(
        self,
        address: Address,
        clock: Clock,
        *,
        readonly: bool = False,
        create: bool = False,
        patient: bool = False,
        connections: int = CONNECTIONS,
    ) -> None:
        self.address = address
        self.readonly = readonly
        self._clock = clock
        self._shared: SharedPool | None = None
        if self.sqlite:
            self._engine = sqlite_engine(address, readonly=readonly, create=create)
        else:
            self._shared = shared_pool(address, readonly=readonly, connections=connections)
            self._engine = self._shared.engine()
        self._apart: Engine | None = None
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

        Where the connection dies, also in the middle of the commit, `again` (default: `work`) runs in a new transaction on a new
        connection, and is tried `ATTEMPTS` times in all. It must give the right answer whether or not any attempt before it
        took effect."""
        if self.readonly:
            raise StoreUnwritable("the store was opened for reading only", where=self.where)
        return self._persistently(
            lambda first: self._transaction(work if first or again is None else again, writing=True)
        )

    def read(self, work: Callable[[Connection], T]) -> T:
        """`work` on one consistent snapshot; on a new one where the connection dies, up to `ATTEMPTS` times."""
        return self._persistently(lambda first: self._transaction(work, writing=False))

    def stream(self, statement: sa.Select[Any]) -> Generator[RowMapping, None, None]:
        """Rows of one snapshot in bounded memory, over a connection of their own, so that the store can be used meanwhile."""
        with self.view() as ask:
            yield from ask(statement)

    @contextmanager
    def view(self) -> Iterator[Ask]:
        """One snapshot over a connection of its own, to be asked as often as wanted, also while an answer is being read.

        Each answer streams in bounded memory."""
        unread: set[MappingResult] = set()
        with closing(self._connect(self._engine_apart())) as connection:
            with self._translated(writing=False):
                self._begin(connection, writing=False)
            try:
                yield lambda statement: self._rows(connection, statement, unread)
            finally:
                for result in tuple(unread):
                    result.close()

    def _engine_apart(self) -> Engine:
        """Whose connections are none of the pool's: who has one may need one of those meanwhile."""
        if self._apart is None:
            self._apart = self._engine if self.sqlite else unpooled(self.address, readonly=self.readonly)
        return self._apart

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
        with self._translated(writing=not self.readonly), self._connected() as connection:
            try:
                yield connection
            finally:
                connection.rollback()

    def disconnect(self) -> None:
        """Close what is open; the next use connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            _discard(connection)

    def close(self) -> None:
        self.disconnect()
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.give_up()
        elif self.sqlite:
            self._engine.dispose()

    def _persistently(self, attempt: Callable[[bool], T]) -> T:
        # No wait in between: connecting again is where the waiting is.
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            retry=retry_if_exception_type(ConnectionLost),
            sleep=lambda seconds: None,
            reraise=True,
        )
        for state in retrying:
            with state:
                return attempt(state.retry_state.attempt_number == 1)
        raise AssertionError("tenacity ends with a result or an exception")

    def _transaction(self, work: Callable[[Connection], T], *, writing: bool) -> T:
        turn = self._turn(writing=writing)
        with turn, self._translated(writing=writing), self._connected() as connection:
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
            self._drop(connection)
        else:
            if connection.invalidated:
                self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        if self.sqlite:
            self.disconnect()
        elif not connection.invalidated:
            connection.invalidate()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """The connection for one transaction: SQLite's is kept, PostgreSQL's goes back to the pool."""
        if self.sqlite:
            if self._connection is None:
                self._connection = self._open()
            yield self._connection
            return
        connection = self._open()
        try:
            yield connection
        finally:
            _discard(connection)

    def _open(self) -> Connection:
        connection = self._reconnect() if self._connected_before else self._connect(self._engine)
        self._connected_before = True
        return connection

    def _reconnect(self) -> Connection:
        retrying = Retrying(
            stop=stop_after_attempt(RECONNECTS),
            wait=wait_exponential(multiplier=0.1, max=2),
            retry=retry_if_exception_type(StoreUnreadable),
            sleep=self._clock.sleep,
            reraise=True,
        )
        return retrying(self._connect, self._engine)

    def _connect(self, engine: Engine) -> Connection:
        try:
            return engine.connect()
        except DBAPIError as error:
            raise connect_error(error, self.where) from error
        except PoolTimeout as error:
            raise StoreBusy(
                f"all connections that this process may have were in use for {LOCK_SECONDS} s",
                where=self.where,
                remedy="allow more (`connections` of the store in a job file), or let fewer threads read",
            ) from error

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
