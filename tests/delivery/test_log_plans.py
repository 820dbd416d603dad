"""Each predicate is answered by its own index: by the plan, whatever the statistics say, and by what a lookup costs."""

import time

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, installed, mark, open_log, run
from sqlalchemy.engine import Engine

from gapless.delivery import MessageLog
from gapless.delivery.own_tables import own_tables
from gapless.delivery.plans import check_plans, refuse_other_plans
from gapless.delivery.statements import Indexes, statements
from gapless.errors import MessageLogError, UnsafeSetup

SETTLED = 50_000


def fill(engine: Engine, shard: str, rows: int, status: str = "delivered") -> None:
    """Many rows at once."""
    numbers = (
        "SELECT generate_series(1, :rows)"
        if engine.dialect.name == "postgresql"
        else "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows) SELECT i FROM n"
    )
    run(
        engine,
        f"INSERT INTO conversations (channel_key, status) SELECT '{shard}', '{status}' FROM ({numbers}) AS numbers",
        rows=rows,
    )


def problems(log: MessageLog) -> list[str]:
    return [check.problem for check in log.check() if check.problem]


def test_fifty_thousand_settled_rows_and_two_open_ones(log_engine: Engine) -> None:
    log = installed(log_engine)
    fill(log_engine, "a", SETTLED)
    add(log_engine, "a", ["pending", "pending"])
    if log_engine.dialect.name == "postgresql":
        run(log_engine, "ANALYZE conversations")
    assert log.frontier("a").through == SETTLED
    checks = {check.statement: check for check in log.check()}
    assert {name: check.problem for name, check in checks.items()} == dict.fromkeys(checks, "")
    indexes = log.install().indexes
    assert checks["first_open"].index == checks["behind"].index == indexes.open
    assert checks["last"].index == checks["tally"].index == indexes.all
    for check in checks.values():
        assert check.index in check.scan


def test_statistics_that_mislead_do_not_lead_away_from_the_indexes(log_engine: Engine) -> None:
    """As in the trial where the plain form took 20 ms instead of 0.3: nearly all rows were open when they were counted."""
    log = installed(log_engine)
    if log_engine.dialect.name == "postgresql":
        run(log_engine, "ALTER TABLE conversations SET (autovacuum_enabled = off)")
    fill(log_engine, "dormant", 50)
    fill(log_engine, "hot", 20_000, "pending")
    run(log_engine, "ANALYZE conversations" if log_engine.dialect.name == "postgresql" else "ANALYZE")
    fill(log_engine, "new", 20_000)
    run(log_engine, "UPDATE conversations SET status = 'delivered' WHERE channel_key = 'hot'")
    assert problems(log) == []
    assert problems(open_log(log_engine, log_engine.dialect.name)) == []
    for shard, through in (("dormant", 50), ("hot", 20_050), ("new", 40_050)):
        assert log.frontier(shard).through == through


def test_a_generic_plan_takes_the_indexes_too(postgres_engine: Engine) -> None:
    """psycopg prepares what is asked often, and the server may then plan once for all values."""
    log = installed(postgres_engine)
    fill(postgres_engine, "a", 20_000)
    add(postgres_engine, "a", ["pending"])
    run(postgres_engine, "ANALYZE conversations")
    engine = sa.create_engine(postgres_engine.url, connect_args={"prepare_threshold": 0})
    with engine.connect() as connection:
        connection.exec_driver_sql("SET plan_cache_mode = force_generic_plan")
        connection.commit()
        generic = open_log(connection, "postgresql")
        assert [generic.frontier("a").through for _ in range(3)] == [20_000] * 3
        assert problems(generic) == []
    engine.dispose()
    assert log.frontier("a").through == 20_000


def test_an_index_that_is_dropped_later_is_an_error_and_no_slow_answer(sqlite_engine: Engine) -> None:
    log = installed(sqlite_engine)
    add(sqlite_engine, "a", ["delivered"])
    run(sqlite_engine, f'DROP INDEX "{log.install().indexes.open}"')
    with pytest.raises(MessageLogError, match="an index is missing"):
        log.frontier("a")


def test_a_missing_index_is_named_by_the_check(log_engine: Engine) -> None:
    log = installed(log_engine)
    run(log_engine, f'DROP INDEX "{log.install().indexes.all}"')
    with pytest.raises(MessageLogError, match="the index on all rows is missing"):
        log.check()
    with pytest.raises(MessageLogError, match="the index on all rows is missing"):
        open_log(log_engine, log_engine.dialect.name).frontier("a")


def test_a_plan_without_its_index_is_refused(postgres_engine: Engine) -> None:
    log = installed(postgres_engine)
    fill(postgres_engine, "a", SETTLED)
    run(postgres_engine, "ANALYZE conversations")
    indexes = log.install().indexes
    with postgres_engine.connect() as connection:
        swapped = Indexes(indexes.all, indexes.open)
        texts = statements(log.found, own_tables(log.found), swapped, "'x'")
        checks = check_plans(connection, log.found, texts, swapped)
    assert [check.problem for check in checks] == [
        f"index {indexes.all} is not used",
        f"index {indexes.all} is not used",
        f"index {indexes.open} is not used",
        f"index {indexes.open} is not used",
    ]
    with pytest.raises(UnsafeSetup, match="would read more than its shard's new rows") as caught:
        refuse_other_plans(checks, log.found)
    assert caught.value.setup == "index_not_used"


def test_another_index_on_the_shards_leads_nobody_astray(postgres_engine: Engine) -> None:
    """Without statistics the planner would count a few rows by reading all of their shard."""
    create_table(postgres_engine)
    run(postgres_engine, "ALTER TABLE conversations SET (autovacuum_enabled = off)")
    for columns in ("channel_key", "channel_key, status", "status", "channel_key, body"):
        run(postgres_engine, f"CREATE INDEX ON conversations ({columns})")
    log = open_log(postgres_engine, "postgresql")
    log.install()
    fill(postgres_engine, "a", SETTLED)
    assert problems(log) == []
    run(postgres_engine, "ANALYZE conversations")
    assert problems(log) == []


def test_the_lookup_costs_the_same_however_many_rows_are_settled(log_engine: Engine) -> None:
    """Not a benchmark: what reads every settled row takes a hundred times as long, not three."""
    log = installed(log_engine)
    fill(log_engine, "small", 100)
    add(log_engine, "small", ["pending"])
    fill(log_engine, "large", 100_000)
    add(log_engine, "large", ["pending"])

    def fastest(shard: str) -> float:
        times = []
        for _ in range(30):
            begun = time.perf_counter()
            log.frontier(shard)
            times.append(time.perf_counter() - begun)
        return min(times)

    assert log.frontier("large").through == 100_101
    assert fastest("large") < 3 * fastest("small")


def test_shards_are_listed_by_steps_along_the_index(log_engine: Engine) -> None:
    create_table(log_engine, shard_type="varchar(20)")
    log = open_log(log_engine, log_engine.dialect.name)
    log.install()
    for number in range(30):
        fill(log_engine, f"s{number:02}", 300)
    begun = time.perf_counter()
    assert log.shards() == [f"s{number:02}" for number in range(30)]
    assert time.perf_counter() - begun < 1
    mark(log_engine, [1], "pending")
    assert log.shards_between(300, 601) == ["s01", "s02"] or set(log.shards_between(300, 601)) == {
        "s01",
        "s02",
    }
