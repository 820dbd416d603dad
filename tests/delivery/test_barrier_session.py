"""A connection that is borrowed for a question is given back as it was: in or out of autocommit, with its own isolation."""

from typing import Any

import pytest
from sqlalchemy.engine import Connection, Engine, create_engine

from gapless.delivery.barrier_session import own_transactions, read_committed
from gapless.errors import ConfigurationError, InsideTransaction


def rolls_back(connection: Connection) -> bool:
    """Whether what it writes can be rolled back, as outside of autocommit."""
    connection.exec_driver_sql("CREATE TABLE trial (id integer)")
    connection.exec_driver_sql("INSERT INTO trial VALUES (1)")
    connection.rollback()
    with connection.engine.connect() as other:
        listed = {
            "sqlite": "SELECT count(*) FROM sqlite_master WHERE name = 'trial'",
            "postgresql": "SELECT count(to_regclass('trial'))",
        }
        there = other.exec_driver_sql(listed[connection.dialect.name]).scalar_one() == 1
        kept = there and other.exec_driver_sql("SELECT count(*) FROM trial").scalar_one() == 1
        other.rollback()
    return not kept


@pytest.fixture
def plain_engine(log_engine: Engine):
    """Not in autocommit, with a pool."""
    engine = create_engine(log_engine.url)
    yield engine
    engine.dispose()


def test_each_statement_is_a_transaction_of_its_own_and_afterwards_not(plain_engine: Engine) -> None:
    with plain_engine.connect() as connection:
        with own_transactions(connection):
            connection.exec_driver_sql("CREATE TABLE log (id integer)")
            connection.exec_driver_sql("INSERT INTO log VALUES (1)")
        assert connection.exec_driver_sql("SELECT count(*) FROM log").scalar_one() == 1
        connection.rollback()
        assert rolls_back(connection)


def test_a_connection_in_autocommit_stays_in_it(log_engine: Engine) -> None:
    with log_engine.connect() as connection:
        with own_transactions(connection):
            connection.exec_driver_sql("SELECT 1")
        connection.exec_driver_sql("SELECT 1")
        assert not rolls_back(connection)


def test_what_the_pool_hands_out_next_is_as_ever(plain_engine: Engine) -> None:
    with plain_engine.connect() as connection, own_transactions(connection):
        connection.exec_driver_sql("SELECT 1")
    with plain_engine.connect() as connection:
        assert rolls_back(connection)


def test_it_is_given_back_also_after_an_error(plain_engine: Engine) -> None:
    with plain_engine.connect() as connection:
        with pytest.raises(LookupError), own_transactions(connection):
            raise LookupError
        assert rolls_back(connection)


def test_inside_a_transaction_it_is_refused(log_engine: Engine) -> None:
    with log_engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        with pytest.raises(InsideTransaction) as caught, own_transactions(connection):
            raise AssertionError("not reached")
        assert caught.value.exit_status == 2
        connection.exec_driver_sql("ROLLBACK")


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_its_own_isolation_is_restored(postgres_engine: Engine, level: str) -> None:
    engine = create_engine(postgres_engine.url)
    with engine.connect().execution_options(isolation_level=level) as connection:
        with own_transactions(connection):
            assert shown(connection, "transaction_isolation") == "read committed"
        assert shown(connection, "transaction_isolation") == level.lower()
    engine.dispose()


def test_the_default_of_its_session_is_restored(postgres_engine: Engine) -> None:
    with postgres_engine.connect() as connection:
        connection.exec_driver_sql("SET default_transaction_isolation = 'repeatable read'")
        with own_transactions(connection):
            assert shown(connection, "transaction_isolation") == "read committed"
            with read_committed(connection):
                assert shown(connection, "transaction_isolation") == "read committed"
            assert shown(connection, "transaction_isolation") == "read committed"
        assert shown(connection, "transaction_isolation") == "repeatable read"


def test_a_driver_that_does_not_tell_its_transactions_is_refused(postgres_engine: Engine) -> None:
    class OtherDriver:
        name = "postgresql"
        driver = "pg8000"

    class Other:
        dialect = OtherDriver()
        connection: Any = type("Proxy", (), {"driver_connection": None})()
        engine = postgres_engine

    with pytest.raises(ConfigurationError, match=r"driver pg8000 does not tell") as caught:
        with own_transactions(Other()):  # type: ignore[arg-type]
            raise AssertionError("not reached")
    assert "postgresql+psycopg://" in caught.value.remedy


def shown(connection: Connection, setting: str) -> str:
    return str(connection.exec_driver_sql(f"SHOW {setting}").scalar_one())
