"""How a message log is opened and shared: by URL, engine or connection, by other processes and threads, and what is refused."""

import pickle
import threading

import pytest
import sqlalchemy as sa
from message_tables import add, installed, open_log
from sqlalchemy.engine import Engine

from gapless.delivery import CoveredRange, DeliveryBlocker, MessageLog, Settled
from gapless.errors import (
    ConfigurationError,
    InsideTransaction,
    MessageLogError,
    NotAMessageLog,
)


def test_a_log_is_opened_by_url_engine_or_connection(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"])
    url = log_engine.url.render_as_string(hide_password=False)
    by_url = open_log(url, log_engine.dialect.name)
    assert by_url.frontier("a") == log.frontier("a")
    by_url.close()
    with sa.create_engine(url).connect() as connection:
        before = connection.get_isolation_level()
        connection.rollback()
        by_connection = open_log(connection, log_engine.dialect.name)
        claimed = by_connection.claim("a")
        assert claimed is not None
        by_connection.cover(claimed)
        assert connection.get_isolation_level() == before, "the user's connection is left as it was"
    connection.engine.dispose()
    assert log.coverage("a") == 1


def test_a_connection_inside_a_transaction_is_refused(log_engine: Engine) -> None:
    installed(log_engine)
    url = log_engine.url.render_as_string(hide_password=False)
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        log = open_log(connection, log_engine.dialect.name)
        connection.execute(sa.text("INSERT INTO conversations (channel_key) VALUES ('a')"))
        with pytest.raises(InsideTransaction):
            log.frontier("a")
        with pytest.raises(InsideTransaction):
            open_log(connection, log_engine.dialect.name)
        connection.rollback()
        assert log.frontier("a").through == 0
    engine.dispose()


def test_a_log_made_by_url_travels_to_other_processes(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"])
    url = log_engine.url.render_as_string(hide_password=False)
    by_url = open_log(url, log_engine.dialect.name)
    travelled = pickle.loads(pickle.dumps(by_url))
    assert travelled.frontier("a").through == 1
    by_url.close()
    travelled.close()
    with pytest.raises(ConfigurationError, match="an engine or a connection"):
        pickle.dumps(log)


def test_a_password_does_not_travel(log_engine: Engine) -> None:
    if log_engine.dialect.name == "sqlite":
        pytest.skip("SQLite has no passwords")
    installed(log_engine)
    url = log_engine.url.set(password="secret")
    log = open_log(url, "postgresql")
    with pytest.raises(ConfigurationError, match="a password in its URL") as caught:
        pickle.dumps(log)
    assert "secret" not in str(caught.value)
    log.close()


def test_nothing_is_claimed_above_what_is_settled(log_engine: Engine) -> None:
    class Known:
        incarnation_sql = "'x'"

        def settled(self, connection: sa.Connection) -> Settled:
            return Settled(2, (), "x")

    log = installed(log_engine, barrier=Known())
    add(log_engine, "a", ["delivered", "delivered", "delivered", "pending"])
    assert log.frontier("a").through == 2
    assert log.claim("a") == CoveredRange("a", 0, 2, 2)


def test_an_answer_of_another_incarnation_is_none(log_engine: Engine) -> None:
    class Restarted:
        incarnation_sql = "'after'"
        asked = 0

        def settled(self, connection: sa.Connection) -> Settled:
            self.asked += 1
            return Settled(9, (), "before" if self.asked < 3 else "after")

    barrier = Restarted()
    log = installed(log_engine, barrier=barrier)
    add(log_engine, "a", ["delivered"])
    assert log.frontier("a").through == 1
    assert barrier.asked == 3
    barrier.asked = -10
    with pytest.raises(MessageLogError, match="started anew"):
        log.frontier("a")


def test_an_open_writer_holds_the_frontier_and_is_named(postgres_engine: Engine) -> None:
    log = installed(postgres_engine)
    add(postgres_engine, "a", ["delivered"])
    engine = sa.create_engine(postgres_engine.url.update_query_dict({"application_name": "dispatcher"}))
    with engine.connect() as writer:
        writer.execute(sa.text("INSERT INTO conversations (channel_key, status) VALUES ('a', 'pending')"))
        pid = writer.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
        add(postgres_engine, "a", ["delivered"])
        frontier = log.frontier("a")
        assert frontier.through <= 1
        assert frontier.blocker is not None
        assert (frontier.blocker.code, frontier.blocker.pid) == ("open_writer", pid)
        assert frontier.blocker.application == "dispatcher"
        writer.commit()
    engine.dispose()
    frontier = log.frontier("a")
    assert (frontier.through, frontier.blocker) == (
        1,
        DeliveryBlocker("non_terminal", id=2, status="pending"),
    )


def test_threads_share_a_log_over_one_connection(sqlite_engine: Engine) -> None:
    installed(sqlite_engine)
    add(sqlite_engine, "a", ["delivered"] * 3)
    engine = sa.create_engine(sqlite_engine.url, connect_args={"check_same_thread": False})
    with engine.connect() as connection:
        log = open_log(connection, "sqlite")
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.extend(log.frontier("a").through for _ in range(50)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    engine.dispose()
    assert found == [3] * 200


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("no url", "cannot be read"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("oracle+nothing://x", "no driver"),
    ],
)
def test_a_url_that_names_no_log_is_one_clear_error(url: str, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        MessageLog(url, table="t", terminal=("done",), ids="identity")


def test_a_server_that_is_not_there_is_one_clear_error() -> None:
    with pytest.raises(MessageLogError, match="cannot be reached") as caught:
        MessageLog(
            "postgresql+psycopg://nobody:secret@127.0.0.1:1/none",
            table="t",
            terminal=("done",),
            ids="identity",
        )
    assert "secret" not in str(caught.value)


def test_a_list_of_statuses_is_asked_for() -> None:
    with pytest.raises(ConfigurationError, match="no list of statuses"):
        MessageLog("sqlite:///x.db", table="t", terminal="done", ids="autoincrement")


def test_a_file_that_is_no_database_is_refused(tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "notes.db"
    file.write_text("not a database, but long enough to be looked at as one " * 40)
    with pytest.raises(NotAMessageLog, match="no SQLite database"):
        open_log(f"sqlite:///{file}", "sqlite")
