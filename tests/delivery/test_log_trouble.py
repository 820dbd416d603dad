"""Servers that restart, connections that die, answers that are lost: nothing is claimed or covered twice or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, installed, open_log, run
from own_postgres import OwnServer
from sqlalchemy.engine import Engine

from gapless.delivery import CoveredRange, MessageLog, Settled
from gapless.delivery.database import LogDatabase
from gapless.delivery.failures import ConnectionBroke
from gapless.delivery.log_reader import LogReader


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_log_goes_on_after_the_server_was_restarted(
    postgres_of_its_own: OwnServer, own_engine: Engine, mode: str
) -> None:
    create_table(own_engine)
    log = open_log(own_engine.url, "postgresql")
    log.install()
    add(own_engine, "a", ["delivered"] * 3 + ["pending"])
    claimed = log.claim("a")
    assert claimed == CoveredRange("a", 0, 3, 3)
    postgres_of_its_own.restart(mode)
    assert log.frontier("a").through == 3
    assert log.claim("a") == claimed, "it was on the disk"
    log.cover(claimed)
    postgres_of_its_own.restart(mode)
    assert log.coverage("a") == 3
    log.close()


@contextmanager
def losing_the_answer(monkeypatch: pytest.MonkeyPatch, *, committed: bool) -> Iterator[None]:
    """The next write transaction ends with a broken connection: after its commit, or before it."""
    write = LogDatabase.write
    left = [True]

    @contextmanager
    def lossy(self: LogDatabase) -> Iterator[Any]:
        if not left:
            with write(self) as connection:
                yield connection
            return
        left.clear()
        if committed:
            with write(self) as connection:
                yield connection
            raise ConnectionBroke("the answer was lost")
        with write(self) as connection:
            yield connection
            raise ConnectionBroke("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(LogDatabase, "write", lossy)
        yield
    assert not left, "something was written"


@pytest.mark.parametrize("committed", [True, False])
def test_a_claim_whose_answer_was_lost(
    log_engine: Engine, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 3)
    with losing_the_answer(monkeypatch, committed=committed):
        assert log.claim("a") == CoveredRange("a", 0, 3, 3)
    add(log_engine, "a", ["delivered"])
    assert log.claim("a") == CoveredRange("a", 0, 3, 3)


@pytest.mark.parametrize("committed", [True, False])
def test_a_cover_whose_answer_was_lost(
    log_engine: Engine, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 3)
    claimed = log.claim("a")
    assert claimed is not None
    with losing_the_answer(monkeypatch, committed=committed):
        assert log.cover(claimed) == ()
    assert log.coverage("a") == 3
    assert log.claim("a") is None
    assert log.audit(count=True) == []


def test_a_connection_that_died_in_the_pool_is_replaced(postgres_engine: Engine) -> None:
    installed(postgres_engine)
    add(postgres_engine, "a", ["delivered"])
    by_url = open_log(postgres_engine.url.update_query_dict({"application_name": "doomed"}), "postgresql")
    assert by_url.frontier("a").through == 1
    with postgres_engine.connect() as connection:
        killed = connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'doomed'"
        ).all()
    assert killed
    assert by_url.frontier("a").through == 1
    by_url.close()


def test_nothing_is_claimed_that_was_seen_before_the_server_restarted(
    log_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others had committed without waiting for the disk may be lost then, and its ids given out again."""

    class Restarting:
        incarnation_sql = "(SELECT name FROM incarnation)"

        def settled(self, connection: sa.Connection) -> Settled:
            name = connection.exec_driver_sql("SELECT name FROM incarnation").scalar_one()
            return Settled(9, (), name)

    run(log_engine, "CREATE TABLE incarnation (name text)")
    run(log_engine, "INSERT INTO incarnation VALUES ('first')")
    log = installed(log_engine, barrier=Restarting())
    add(log_engine, "a", ["delivered"] * 3)
    due, looks = LogReader.due, []

    def restart_afterwards(self: LogReader, connection: sa.Connection, shard: Any) -> Any:
        found = due(self, connection, shard)
        looks.append(found.covered)
        return found

    def restart(connection: sa.Connection, cursor: object, statement: str, *_: object) -> None:
        if len(looks) == 1 and statement.startswith("BEGIN I"):
            looks.append(CoveredRange("the restart", 0, 0, 0))
            run(log_engine, "UPDATE incarnation SET name = 'second'")
            run(log_engine, "DELETE FROM conversations WHERE id > 1")

    monkeypatch.setattr(LogReader, "due", restart_afterwards)
    sa.event.listen(log_engine, "before_cursor_execute", restart)
    try:
        assert log.claim("a") == CoveredRange("a", 0, 1, 1)
    finally:
        sa.event.remove(log_engine, "before_cursor_execute", restart)
    assert [found.through for found in looks] == [3, 0, 1]


def test_a_frontier_that_was_claimed_is_never_taken_back(log_engine: Engine) -> None:
    """What a worker covers rests on rows that were seen: later ones only add to it."""
    log: MessageLog = installed(log_engine)
    seen = 0
    for status in ["delivered", "failed", "delivered", "pending", "delivered"]:
        add(log_engine, "a", [status])
        through = log.frontier("a").through
        assert through >= seen
        seen = through
    assert seen == 3
