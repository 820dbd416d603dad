"""Columns that are called like a statement's own, shards that no column should have, databases that are none."""

from pathlib import Path

import pytest
from message_tables import add, create_table, installed, open_log, run
from sqlalchemy.engine import Engine

from gapless.delivery import CoveredRange, DeliveryBlocker, Worker
from gapless.errors import ConfigurationError, NotAMessageLog, UnsafeSetup


@pytest.mark.parametrize(
    ("id_", "shard", "status"),
    [
        ("number", "status", "state"),
        ("number", "id", "status"),
        ("status", "channel", "state"),
        ("status", "id", "shard"),
        ("id", "through", "claimed"),
    ],
)
def test_columns_may_be_called_what_statements_call_theirs(
    log_engine: Engine, id_: str, shard: str, status: str
) -> None:
    kind = log_engine.dialect.name
    ids = {"sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT"}.get(
        kind, "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    )
    run(log_engine, f"CREATE TABLE conversations ({id_} {ids}, {shard} text NOT NULL, {status} text)")
    log = open_log(log_engine, kind, id=id_, shard=shard, status=status)
    log.install()
    # By status the second open row would be the first one.
    for value in ("delivered", "pending", "delivered", "assigned"):
        run(log_engine, f"INSERT INTO conversations ({shard}, {status}) VALUES ('a', :value)", value=value)
    frontier = log.frontier("a")
    assert (frontier.through, frontier.blocker) == (
        1,
        DeliveryBlocker("non_terminal", id=2, status="pending"),
    )
    run(log_engine, f"UPDATE conversations SET {status} = 'delivered'")
    claimed = log.claim("a")
    assert claimed == CoveredRange("a", 0, 4, 4)
    assert (log.cover(claimed), log.shards(), log.audit(count=True)) == ((), ["a"], [])


@pytest.mark.parametrize("database", [None, 5, Path("app.db")])
def test_what_is_no_database_is_one_clear_error(database: object) -> None:
    with pytest.raises(ConfigurationError, match="is no database"):
        open_log(database, "sqlite")


@pytest.mark.parametrize("shard", [2**63, -(2**63) - 1])
def test_a_shard_beyond_every_integer_column_is_none(log_engine: Engine, shard: int) -> None:
    create_table(log_engine, shard_type="bigint")
    log = open_log(log_engine, log_engine.dialect.name)
    log.install()
    with pytest.raises(ConfigurationError, match="no shard of this log"):
        log.frontier(shard)


@pytest.mark.parametrize(
    ("type_", "odd"), [("TEXT", "x'61'"), ("INTEGER", "'a'"), ("INTEGER", "2.5"), ("INTEGER", "x'61'")]
)
def test_a_shard_that_sqlite_keeps_under_another_type_is_named_by_all_who_list_shards(
    sqlite_engine: Engine, type_: str, odd: str
) -> None:
    create_table(sqlite_engine, shard_type=type_)
    log = open_log(sqlite_engine, "sqlite")
    log.install()
    good = {"TEXT": "a", "INTEGER": 7}[type_]
    add(sqlite_engine, good, ["delivered"])
    worker = Worker(log, lambda *given: None, rows=1)
    worker.round()
    run(sqlite_engine, f"INSERT INTO conversations (channel_key, status) VALUES ({odd}, 'pending')")
    for asked in (log.shards, log.table_frontier, log.frontiers, log.standings, worker.round):
        with pytest.raises(UnsafeSetup, match=r"shard .* is kept as") as raised:
            asked()
        assert raised.value.setup == "shard_of_another_type"
    assert log.frontier(good).through == 1, "who asks for one shard is answered"


def test_a_text_shard_on_sqlite_may_hold_any_character(sqlite_engine: Engine) -> None:
    create_table(sqlite_engine)
    log = open_log(sqlite_engine, "sqlite")
    log.install()
    add(sqlite_engine, "a\0b", ["delivered"])
    add(sqlite_engine, "a", ["delivered", "pending"])
    assert log.shards() == ["a", "a\0b"]
    assert [log.claim(shard) for shard in log.shards()] == [
        CoveredRange("a", 0, 2, 1),
        CoveredRange("a\0b", 0, 1, 1),
    ]


@pytest.mark.parametrize("column", ["id", "channel_key", "status"])
def test_a_column_that_is_renamed_while_a_worker_works_ends_its_work(log_engine: Engine, column: str) -> None:
    log = installed(log_engine)
    seen: list[object] = []
    worker = Worker(log, lambda *given: seen.append(given), rows=1)
    worker.round()
    add(log_engine, "a", ["delivered"])
    run(log_engine, f"ALTER TABLE conversations RENAME COLUMN {column} TO another")
    with pytest.raises(NotAMessageLog, match="column"):
        worker.run()
    assert seen == []
