"""How connections are made, and how many: on PostgreSQL one pool for each store and process, shared by all who have it open.

A transaction takes a connection and gives it back; between transactions nobody holds one, however many readers wait for pages.
However many threads and DoFn instances a process has, that is at most `connections` of the store's reference, and for a run

    (worker processes + 1 for the one that started it) * connections

A stream of rows (only reading commands and audits have one) uses one of its own besides. On SQLite a connection is a file
handle: every open store has its own.
"""

import os
import sqlite3
import threading
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool, Pool, QueuePool

from gapless.errors import ConfigurationError, StoreUnreadable
from gapless.store.address import Address

CONNECTIONS = 4
"""How many a process has to one PostgreSQL store at most, unless it is told otherwise: transactions take milliseconds."""

LOCK_SECONDS = 30
"""How long a statement waits for another process's lock, and a transaction for a connection, before StoreBusy."""

_OLDEST_SQLITE = (3, 35, 0)
_OLDEST_POSTGRESQL = 150000
_DEFAULTS = {
    "application_name": "gapless",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "connect_timeout": "15",
}

_Key = tuple[str, bool, int]


class SharedPool:
    """The connections of this process to one store, counted by who has it open. `give_up` of the last one closes them."""

    def __init__(self, key: _Key, engine: Engine) -> None:
        self._key = key
        self._base = engine
        self.users = 0

    def engine(self) -> Engine:
        """An engine over the shared connections, with events of its own."""
        return self._base.execution_options()

    def give_up(self) -> None:
        with _lock:
            self.users -= 1
            if self.users:
                return
            if _pools.get(self._key) is self:
                del _pools[self._key]
        self._base.dispose()

    def forget(self) -> Pool:
        """In a forked child: the connections are the parent's, and are neither used nor closed."""
        pool = self._base.pool
        self._base.dispose(close=False)
        return pool


_pools: dict[_Key, SharedPool] = {}
_lock = threading.Lock()
_inherited: list[Pool] = []
"""What a fork has brought along: kept, so that nothing of it is finalised here."""


def shared_pool(address: Address, *, readonly: bool, connections: int) -> SharedPool:
    """This process's connections to a PostgreSQL store. Raises ConfigurationError where psycopg is not installed."""
    key = (address.url.render_as_string(hide_password=False), readonly, connections)
    with _lock:
        if key not in _pools:
            _pools[key] = SharedPool(
                key, _postgresql_engine(address, readonly=readonly, connections=connections)
            )
        _pools[key].users += 1
        return _pools[key]


def unpooled(address: Address, *, readonly: bool) -> Engine:
    """An engine on PostgreSQL that makes a connection for each use, and closes it afterwards."""
    return _postgresql_engine(address, readonly=readonly, connections=None)


def sqlite_engine(address: Address, *, readonly: bool, create: bool) -> Engine:
    """Raises StoreUnreadable where SQLite is too old."""
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


def _postgresql_engine(address: Address, *, readonly: bool, connections: int | None) -> Engine:
    """`connections` None: one for each use, closed after it."""
    defaults = {name: value for name, value in _DEFAULTS.items() if name not in address.url.query}
    pool: dict[str, Any] = {"poolclass": NullPool}
    if connections is not None:
        pool = {
            "poolclass": QueuePool,
            "pool_size": connections,
            "max_overflow": 0,
            "pool_timeout": LOCK_SECONDS,
            "pool_use_lifo": True,
        }
    try:
        engine = sa.create_engine(
            address.url,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
            connect_args=defaults,
            **pool,
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


def _in_a_child() -> None:
    global _lock
    _lock = threading.Lock()
    _inherited.extend(pool.forget() for pool in _pools.values())


os.register_at_fork(after_in_child=_in_a_child)
