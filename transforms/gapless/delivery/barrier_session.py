"""The connection over which the settled id is asked for: every statement a transaction of its own, at READ COMMITTED."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from gapless.delivery.log_table import ReflectedLog
from gapless.errors import ConfigurationError, InsideTransaction, NotAMessageLog

_GONE = {
    "42P01": "the table or its sequence is gone",
    "42703": "a column is gone",
    "42501": "the role may no longer read it",
}
_READ_COMMITTED = "read committed"
_LEVEL = "gapless_default_isolation"


@contextmanager
def own_transactions(connection: Connection) -> Iterator[None]:
    """`connection` with each statement a transaction of its own, on PostgreSQL at READ COMMITTED; as it was afterwards.

    Raises InsideTransaction where it is inside a transaction: what that one sees may be older than what others have
    committed since, and what it wrote may still be rolled back. Raises ConfigurationError for a driver whose transactions
    cannot be told."""
    if _in_transaction(connection):
        raise InsideTransaction(
            "the connection is inside a transaction",
            where=_where(connection),
            remedy="commit or roll back first, or give an engine instead",
        )
    before = connection.get_execution_options().get("isolation_level", connection.default_isolation_level)
    autocommit = _in_autocommit(connection)
    if not autocommit:
        connection.execution_options(isolation_level="AUTOCOMMIT")
    try:
        with read_committed(connection):
            yield
    finally:
        if not connection.invalidated:
            # SQLAlchemy begins on its own account with the first statement, also in autocommit.
            connection.rollback()
            if not autocommit:
                connection.execution_options(isolation_level=before)


@contextmanager
def read_committed(connection: Connection) -> Iterator[None]:
    """`connection`, which is in autocommit, at READ COMMITTED, also where the session's default is another; as it was afterwards.

    Raises InsideTransaction and ConfigurationError as `own_transactions` does. SQLite has no such levels."""
    if connection.dialect.name == "sqlite":
        yield
        return
    if _in_transaction(connection) or not _in_autocommit(connection):
        raise InsideTransaction(
            "the connection is not in autocommit, or inside a transaction: its statements would share one",
            where=_where(connection),
            remedy='commit or roll back, and use connection.execution_options(isolation_level="AUTOCOMMIT")',
        )
    level = _level(connection)
    if level == _READ_COMMITTED:
        yield
        return
    _set(connection, _READ_COMMITTED)
    try:
        yield
    finally:
        if not connection.invalidated:
            _set(connection, level)


@contextmanager
def of_log(log: ReflectedLog) -> Iterator[None]:
    """Statements about `log`: raises NotAMessageLog where they find it gone, or may no longer read it."""
    try:
        yield
    except DBAPIError as error:
        what = _GONE.get(getattr(error.orig, "sqlstate", None) or "")
        if what is None:
            raise
        raise NotAMessageLog(
            what, where=log.where, remedy="look what has changed: gapless delivery check"
        ) from error


def _in_transaction(connection: Connection) -> bool:
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        return bool(driver.in_transaction)
    if connection.dialect.driver != "psycopg":
        raise ConfigurationError(
            f"driver {connection.dialect.driver} does not tell whether it is inside a transaction",
            where=_where(connection),
            remedy="use psycopg 3: postgresql+psycopg://...",
        )
    return int(driver.info.transaction_status) != 0


def _in_autocommit(connection: Connection) -> bool:
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        return driver.isolation_level is None
    return bool(driver.autocommit)


def _level(connection: Connection) -> str:
    """The session's default, asked for once for each connection of a pool."""
    if _LEVEL not in connection.info:
        shown = connection.exec_driver_sql("SHOW default_transaction_isolation").scalar_one()
        connection.info[_LEVEL] = shown
    return str(connection.info[_LEVEL])


def _set(connection: Connection, level: str) -> None:
    connection.exec_driver_sql(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")
    connection.info[_LEVEL] = level


def _where(connection: Connection) -> str:
    return f"a connection to {connection.engine.url.render_as_string(hide_password=True)}"
