"""What `gapless delivery sql` prints is run here, by the plain driver, as a worker in any language would."""

import re
import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from message_tables import add, create_table, open_log
from sqlalchemy.engine import Engine

from gapless.delivery import CoveredRange

Run = Callable[..., list[tuple[Any, ...]]]


def sections(text: str) -> dict[str, list[str]]:
    """The statements under each comment, by the first word of it."""
    found: dict[str, list[str]] = {}
    for part in text.split("\n\n"):
        comments = [line for line in part.splitlines() if line.startswith("--")]
        code = "\n".join(line for line in part.splitlines() if not line.startswith("--"))
        name = comments[0].removeprefix("-- ").split(":")[0]
        found[name] = [statement for statement in re.split(r";(?:\n|$)", code) if statement.strip()]
    return found


def runner(engine: Engine) -> tuple[Run, Callable[[], None]]:
    """Runs printed statements with parameters by name, in autocommit."""
    if engine.dialect.name == "sqlite":
        lite = sqlite3.connect(str(engine.url.database), isolation_level=None)
        return (lambda statement, **values: lite.execute(statement, values).fetchall()), lite.close
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    connection = psycopg.connect(url, autocommit=True)

    def run(statement: str, **values: Any) -> list[tuple[Any, ...]]:
        named = re.sub(r"(?<![:\w]):(\w+)", r"%(\1)s", statement.replace("%", "%%"))
        cursor = connection.execute(named, values)
        return cursor.fetchall() if cursor.description else []

    return run, connection.close


def test_a_worker_made_of_what_is_printed(log_engine: Engine) -> None:
    create_table(log_engine)
    add(log_engine, "a", ["delivered", "failed", "delivered", "pending"])
    add(log_engine, "b", ["delivered"])
    log = open_log(log_engine, log_engine.dialect.name)
    printed = sections(log.sql())
    run, close = runner(log_engine)
    postgres = log_engine.dialect.name == "postgresql"
    for statement in (*printed["tables"], *printed["indexes"]):
        run(statement)
    assert log.install().built == log.install().tables == (), "gapless recognises all of it as its own"
    settled = run(printed["settled id"][0])[0][0]
    if postgres:
        assert run(printed["settled id"][1]) == []
    assert settled == 5
    assert run(printed["coverage"][0], shard="a") == []
    *_, first_open, status, last, incarnation = run(printed["frontier"][0], shard="a", settled=settled)[0]
    assert (first_open, status, last) == (4, "pending", 4)
    assert incarnation
    counting = {
        statement: run(statement, shard="a", after=0, through=first_open - 1)
        for statement in printed["count"]
    }
    ((count, total),) = next(rows for statement, rows in counting.items() if "count(*)" in statement)
    assert (count, total) == (3, 6)
    for statement in printed["claim"]:
        run(statement, shard="a", after=0, through=3, count=count, sum=total)
    assert log.claim("a") == CoveredRange("a", 0, 3, 3), "the claim is gapless's own"
    through, claimed, *_ = run(printed["coverage"][0], shard="a")[0]
    assert (through, claimed) == (0, 3)
    for statement in printed["cover"]:
        run(statement, shard="a", after=0, through=3, count=count, sum=total)
    assert run(printed["coverage"][0], shard="a")[0] == (3, None, None, None, 3, 6)
    assert log.coverage("a") == 3
    assert log.audit(count=True) == []
    assert [shard for (shard,) in run(printed["shards"][0])] == ["a", "b"]
    assert run(printed["behind"][0], shard="a", coverage=3, most=9) == []
    close()


def test_the_printed_plan_check_names_the_indexes(log_engine: Engine) -> None:
    create_table(log_engine)
    log = open_log(log_engine, log_engine.dialect.name)
    indexes = log.install().indexes
    run, close = runner(log_engine)
    values = {"shard": "a", "coverage": 0, "settled": 9, "after": 0, "through": 9, "most": 1}
    plans = [
        str(rows)
        for statement in sections(log.sql())["plans"]
        if "EXPLAIN" in statement
        for rows in [
            run(statement, **{name: value for name, value in values.items() if f":{name}" in statement})
        ]
    ]
    assert len(plans) == 4
    assert [indexes.open in plan for plan in plans].count(True) == 2
    assert [indexes.all in plan for plan in plans].count(True) == 2
    close()


@pytest.mark.parametrize("shard", ["a", "b'; DROP TABLE conversations; --"])
def test_values_are_never_part_of_a_statement(log_engine: Engine, shard: str) -> None:
    create_table(log_engine)
    log = open_log(log_engine, log_engine.dialect.name)
    log.install()
    add(log_engine, shard, ["delivered"])
    claimed = log.claim(shard)
    assert claimed is not None
    log.cover(claimed)
    assert log.coverage(shard) == 1
