"""A coverage belongs to one table of one server: on PostgreSQL another of the same name does not take it over."""

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, installed, open_log, run
from sqlalchemy.engine import Engine

from gapless.delivery import MessageLog
from gapless.delivery.installing import NotInstalled
from gapless.errors import UnsafeSetup


def covered(engine: Engine) -> MessageLog:
    log = installed(engine)
    add(engine, "a", ["delivered"] * 3)
    claimed = log.claim("a")
    assert claimed is not None
    log.cover(claimed)
    return log


def create_anew(engine: Engine) -> MessageLog:
    run(engine, "DROP TABLE conversations")
    create_table(engine)
    add(engine, "a", ["delivered"] * 5)
    return open_log(engine, engine.dialect.name)


def test_a_table_created_anew_does_not_take_the_coverage_over(postgres_engine: Engine) -> None:
    covered(postgres_engine)
    log = create_anew(postgres_engine)
    for ask in (log.install, log.shards, log.check):
        with pytest.raises(
            UnsafeSetup, match=r"(?s)coverage from elsewhere: .* oid \d+.*--redeclare"
        ) as caught:
            ask()
        assert caught.value.setup == "coverage_from_elsewhere"
    indexes = sa.inspect(postgres_engine).get_indexes("conversations")
    assert indexes == [], "nothing was built"


def test_redeclare_keeps_the_coverage_of_a_restored_table(postgres_engine: Engine) -> None:
    covered(postgres_engine)
    log = create_anew(postgres_engine)
    log.install(redeclare=True)
    assert (log.coverage("a"), log.frontier("a").through) == (3, 5)
    assert open_log(postgres_engine, "postgresql").coverage("a") == 3


def test_without_its_coverage_a_table_created_anew_begins_anew(postgres_engine: Engine) -> None:
    covered(postgres_engine)
    log = create_anew(postgres_engine)
    run(postgres_engine, "DROP TABLE gapless_coverage_conversations, gapless_violation_conversations")
    log.install(redeclare=True)
    assert (log.coverage("a"), log.frontier("a").through) == (0, 5)


def test_the_same_table_on_another_server_is_refused(postgres_engine: Engine) -> None:
    log = covered(postgres_engine)
    run(postgres_engine, "UPDATE gapless_message_log SET system_identifier = 7")
    with pytest.raises(UnsafeSetup, match="a table of server 7"):
        open_log(postgres_engine, "postgresql").shards()
    run(postgres_engine, "UPDATE gapless_message_log SET system_identifier = NULL")
    assert open_log(postgres_engine, "postgresql").coverage("a") == 3, "what is not known contradicts nothing"
    log.install(redeclare=True)
    assert run(
        postgres_engine,
        "SELECT count(*) FROM gapless_message_log, pg_control_system() AS c"
        " WHERE relation = CAST('conversations' AS regclass) AND c.system_identifier = gapless_message_log.system_identifier",
    ) == [(1,)]


def test_sqlite_gives_a_table_no_identity(sqlite_engine: Engine) -> None:
    """As the documentation says: its indexes are missing, and whoever installs takes the coverage of the former one over."""
    covered(sqlite_engine)
    log = create_anew(sqlite_engine)
    with pytest.raises(NotInstalled, match="the index on open and on all rows is missing"):
        log.coverage("a")
    log.install()
    assert log.coverage("a") == 3
    assert run(sqlite_engine, "SELECT relation, system_identifier FROM gapless_message_log") == [(None, None)]
