"""What a delivery frontier costs: against the number of settled rows, against a global GROUP BY, and for the writer.

    python benchmarks/delivery_lookup.py [--postgres URL] [--rows 10000000] [--shards 10000] [--only lookup|trigger|insert]

On SQLite in a folder of its own, and on the server of --postgres (a schema is created and dropped). Every ratio is taken in
one run, its sides in turn; figures are medians.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from gapless.delivery import MessageLog

ROWS_OF_A_SHARD = 200
GLOBAL = (
    "SELECT channel_key, min(CASE WHEN (status IN ('delivered', 'failed')) IS NOT TRUE THEN id END), max(id),"
    " count(*) FROM {table} GROUP BY channel_key"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--postgres", help="SQLAlchemy URL of a server, postgresql+psycopg://...")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, default=10_000)
    parser.add_argument("--only", choices=["lookup", "trigger", "insert"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        urls = {"sqlite": f"sqlite:///{Path(folder) / 'log.db'}"}
        if given.postgres:
            urls["postgresql"] = given.postgres
        for name, url in urls.items():
            with_database(name, url, given)


def with_database(name: str, url: str, given: argparse.Namespace) -> None:
    schema = "gapless_benchmark"
    if name == "postgresql":
        admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        execute(admin, f"DROP SCHEMA IF EXISTS {schema} CASCADE", f"CREATE SCHEMA {schema}")
        url = (
            sa.make_url(url).update_query_dict({"options": f"-csearch_path={schema}"}).render_as_string(False)
        )
    engine = sa.create_engine(url)
    try:
        for part, measure in (("lookup", lookup), ("trigger", trigger), ("insert", insert)):
            if given.only in (None, part):
                print(
                    json.dumps({"database": name, "figure": part, **measure(engine, url, given)}), flush=True
                )
    finally:
        engine.dispose()
        if name == "postgresql":
            execute(admin, f"DROP SCHEMA {schema} CASCADE")
            admin.dispose()


def lookup(engine: Engine, url: str, given: argparse.Namespace) -> dict[str, Any]:
    """One shard with 10,000 settled rows and a few open ones, and one with a thousand times as many; nothing covered yet."""
    logs = {}
    for rows in (10_000, given.rows):
        table = f"log_{rows}"
        create(engine, table)
        fill(engine, table, "'hot'", rows)
        execute(
            engine,
            f"INSERT INTO {table} (channel_key, status) VALUES ('hot', 'pending'), ('hot', 'delivered')",
        )
        logs[rows] = installed(engine, url, table)
    calls = {rows: (lambda log=log: log.frontier("hot")) for rows, log in logs.items()}
    for rows, call in calls.items():
        assert call().through == rows
    medians = in_turn(calls, 2000)
    close(logs.values())
    return {
        "rows": list(medians),
        "microseconds": [round(value * 1e6, 1) for value in medians.values()],
        "ratio": round(medians[given.rows] / medians[10_000], 3),
    }


def trigger(engine: Engine, url: str, given: argparse.Namespace) -> dict[str, Any]:
    """A shard's trigger among dormant shards of 200 rows, few and many, against one GROUP BY over the table."""
    logs = {}
    for shards in (100, given.shards):
        table = f"shards_{shards}"
        create(engine, table)
        fill(engine, table, f"'s' || (i % {shards})", shards * ROWS_OF_A_SHARD)
        logs[shards] = installed(engine, url, table)
        execute(
            engine,
            f"INSERT INTO gapless_coverage_{table} (shard, through, covered_count, covered_sum)"
            f" SELECT channel_key, max(id), count(*), sum(id % 2147483647) FROM {table} GROUP BY channel_key",
        )
    calls = {
        shards: (lambda log=log, shards=shards: log.newly_covered(f"s{time.perf_counter_ns() % shards}"))
        for shards, log in logs.items()
    }
    medians = in_turn(calls, 2000)
    with engine.connect() as connection:
        text = GLOBAL.format(table=f"shards_{given.shards}")
        whole = statistics.median(timed(lambda: connection.exec_driver_sql(text).all()) for _ in range(5))
    close(logs.values())
    return {
        "shards": list(medians),
        "trigger_microseconds": [round(value * 1e6, 1) for value in medians.values()],
        "group_by_milliseconds": round(whole * 1e3, 1),
        "group_by_over_trigger": round(whole / medians[given.shards]),
        "flat": round(medians[given.shards] / medians[100], 3),
    }


def insert(engine: Engine, url: str, given: argparse.Namespace) -> dict[str, Any]:
    """Rows inserted one a transaction, as writers do, and 1,000 a transaction: with the two indexes and without, in turn."""
    names = ("plain", "indexed")
    for name in names:
        create(engine, name)
        fill(engine, name, "'s' || (i % 1000)", 200_000)
    installed(engine, url, "indexed").close()
    result: dict[str, Any] = {}
    for size, rounds in ((1, 400), (1000, 30)):
        rows = [{"s": f"s{number % 1000}"} for number in range(size)]
        calls = {
            name: (
                lambda name=name, rows=rows: many(
                    engine, f"INSERT INTO {name} (channel_key, status) VALUES (:s, 'pending')", rows
                )
            )
            for name in names
        }
        medians = in_turn(calls, rounds)
        result[f"rows_a_transaction_{size}"] = {
            "microseconds_a_row": {name: round(value / size * 1e6, 2) for name, value in medians.items()},
            "ratio": round(medians["indexed"] / medians["plain"], 3),
        }
    return result


def in_turn(calls: dict[Any, Callable[[], Any]], rounds: int) -> dict[Any, float]:
    """The median time of each, measured alternately so that whatever else the machine does meets all alike."""
    times: dict[Any, list[float]] = {name: [] for name in calls}
    for _ in range(rounds // 10):
        for call in calls.values():
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(timed(call))
    return {name: statistics.median(measured) for name, measured in times.items()}


def timed(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def create(engine: Engine, table: str) -> None:
    ids = {
        "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "postgresql": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    }[engine.dialect.name]
    execute(engine, f"CREATE TABLE {table} (id {ids}, channel_key text NOT NULL, status text)")


def fill(engine: Engine, table: str, shard: str, rows: int) -> None:
    """Delivered rows, their shards by an expression over the row's number `i`."""
    numbers = (
        f"generate_series(1, {rows}) AS numbers (i)"
        if engine.dialect.name == "postgresql"
        else f"(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n)"
    )
    execute(engine, f"INSERT INTO {table} (channel_key, status) SELECT {shard}, 'delivered' FROM {numbers}")


def installed(engine: Engine, url: str, table: str) -> MessageLog:
    """By URL, its connections pooled; what is known of open writers is good for 0.1 s, as in a round over many shards."""
    log = MessageLog(
        url,
        table=table,
        shard="channel_key",
        terminal=("delivered", "failed"),
        ids="autoincrement" if engine.dialect.name == "sqlite" else "identity",
        freshness=0.1,
    )
    log.install()
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f"VACUUM ANALYZE {table}")
    return log


def execute(engine: Engine, *statements: str) -> None:
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(
                statement.replace("%", "%%") if engine.dialect.name == "postgresql" else statement
            )
        connection.commit()


def many(engine: Engine, statement: str, rows: list[dict[str, Any]]) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text(statement), rows)


def close(logs: Any) -> None:
    for log in logs:
        log.close()


if __name__ == "__main__":
    main()
