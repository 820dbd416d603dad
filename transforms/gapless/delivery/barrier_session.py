"""The connection over which the settled id is asked for: every statement a transaction of its own, at READ COMMITTED."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.engine import Connection

from gapless.errors import ConfigurationError, InsideTransaction

_READ_COMMITTED = "read committed"
_KNOWN = "gapless_default_isolation"


@contextmanager
def read_committed(connection: Connection) -> Iterator[None]:
    """`connection`, which is in autocommit, at READ COMMITTED, also where the session's default is another; as it was afterwards.

    Raises InsideTransaction where it is inside a transaction or not in autocommit: what a transaction sees may be older than
    what others have committed since. Raises ConfigurationError for a driver whose transactions cannot be told."""
    _refuse_transactions(connection)
    # Told once for each connection of a pool: the default is the session's.
    level = connection.info.get(_KNOWN)
    if level is None:
        level = connection.exec_driver_sql("SHOW default_transaction_isolation").scalar_one()
        connection.info[_KNOWN] = level
    if level == _READ_COMMITTED:
        yield
        return
    _set(connection, _READ_COMMITTED)
    try:
        yield
    finally:
        if not connection.invalidated:
            _set(connection, level)


def _refuse_transactions(connection: Connection) -> None:
    where = f"a connection to {connection.engine.url.render_as_string(hide_password=True)}"
    if connection.dialect.driver != "psycopg":
        raise ConfigurationError(
            f"driver {connection.dialect.driver} does not tell whether it is inside a transaction",
            where=where,
            remedy="use psycopg 3: postgresql+psycopg://...",
        )
    driver: Any = connection.connection.driver_connection
    if int(driver.info.transaction_status) != 0:
        raise InsideTransaction(
            "the connection is inside a transaction",
            where=where,
            remedy="commit or roll back first, or give an engine instead",
        )
    if not driver.autocommit:
        raise InsideTransaction(
            "the connection is not in autocommit, so that its statements would share a transaction",
            where=where,
            remedy='use connection.execution_options(isolation_level="AUTOCOMMIT")',
        )


def _set(connection: Connection, level: str) -> None:
    connection.exec_driver_sql(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")
