"""Whether each predicate is answered by its own index: the database's own plan, asked statement by statement.

On PostgreSQL sequential scans are switched off for the question, since on a small table they are right and say nothing about a
large one. Which index it takes is a matter of chance there, too: on a table of few pages any is right.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from gapless.delivery.log_table import ReflectedLog
from gapless.delivery.statements import STEADY, Indexes, Statements
from gapless.errors import UnsafeSetup

SMALL_BYTES = 2**20
"""Up to this size of a table, how PostgreSQL gets at a row costs nothing worth a word."""


@dataclass(frozen=True, slots=True)
class Scan:
    """How a plan reads the log: `kind` in the database's words, by which index, under which condition, and what is left to be
    checked row by row."""

    kind: str
    index: str | None
    condition: str
    filter: str


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """One statement's plan. `problem` is empty where it is as it has to be."""

    statement: str
    index: str
    scan: str
    problem: str


def check_plans(
    connection: Connection, log: ReflectedLog, statements: Statements, indexes: Indexes
) -> tuple[PlanCheck, ...]:
    """The plan of each statement that runs once a shard and tick."""
    expected = {
        "first_open": (statements.first_open, indexes.open),
        "behind": (statements.behind, indexes.open),
        "last": (statements.last, indexes.all),
        "tally": (statements.tally, indexes.all),
    }

    def scans(name: str, text: str) -> list[Scan]:
        if log.dialect == "sqlite":
            return sqlite_scans(connection, log, text)
        return postgresql_scans(connection, log, text, steady=name == "tally")

    small = log.dialect == "postgresql" and _small(connection, log)
    return tuple(
        _check(log, name, index, scans(name, text), small=small) for name, (text, index) in expected.items()
    )


def refuse_other_plans(checks: tuple[PlanCheck, ...], log: ReflectedLog) -> None:
    """Raises UnsafeSetup for the first statement that would read more than its own rows."""
    for check in checks:
        if check.problem:
            raise UnsafeSetup(
                f"{check.problem}: the statement `{check.statement}` would read more than its shard's new rows",
                where=f"{log.where}: {check.scan}",
                remedy="ANALYZE the table and check again; `gapless delivery sql JOB` prints statements and indexes",
                setup="index_not_used",
            )


def _small(connection: Connection, log: ReflectedLog) -> bool:
    size = connection.exec_driver_sql("SELECT pg_relation_size(%(table)s::oid)", {"table": log.relation})
    return int(size.scalar_one()) <= SMALL_BYTES


def _check(log: ReflectedLog, name: str, index: str, scans: list[Scan], *, small: bool) -> PlanCheck:
    """`small`: so is the table, and any index is right."""
    shown = (
        "; ".join(f"{scan.kind} {scan.index or ''} {scan.condition}".strip() for scan in scans) or "no scan"
    )
    problem = ""
    if small and len(scans) == 1 and scans[0].index is not None:
        return PlanCheck(name, index, shown, "")
    if len(scans) != 1:
        problem = f"{len(scans)} scans of the table instead of one"
    elif scans[0].index != index:
        problem = f"index {index} is not used"
    elif scans[0].filter:
        problem = f"rows are filtered one by one: {scans[0].filter}"
    elif not _bounded(log, scans[0].condition):
        problem = f"the index is not entered at shard and id: {scans[0].condition}"
    elif scans[0].kind.startswith("Bitmap"):
        problem = "all rows of the range are read for the first of them"
    return PlanCheck(name, index, shown, problem)


def _bounded(log: ReflectedLog, condition: str) -> bool:
    """Whether both columns lead into the index."""
    if log.dialect == "postgresql":
        return condition.count("ROW(") >= 4
    return "=?" in condition and "<?" in condition


def sqlite_scans(connection: Connection, log: ReflectedLog, statement: str) -> list[Scan]:
    """By EXPLAIN QUERY PLAN: the scans of the log's own table."""
    names = dict.fromkeys(("shard", "coverage", "settled", "after", "through", "most"), 0)
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", names).all()
    # Versions of SQLite differ in whether they write the schema.
    ours = tuple(
        f"{how} {name} " for how in ("SCAN", "SEARCH") for name in (log.table, f"{log.schema}.{log.table}")
    )
    return [_sqlite_scan(detail) for *_, detail in rows if f"{detail} ".startswith(ours)]


def _sqlite_scan(detail: str) -> Scan:
    match = re.search(r"USING (?:COVERING )?INDEX (.*) (\([^()]*\))$", detail)
    if match is None:
        return Scan(detail, None, "", "")
    return Scan(detail.split()[0], match[1], match[2], "")


_SHARDS: dict[str, Any] = {"text": "", "integer": 0, "uuid": "00000000-0000-0000-0000-000000000000"}


def postgresql_scans(
    connection: Connection, log: ReflectedLog, statement: str, *, steady: bool = False
) -> list[Scan]:
    """By EXPLAIN, without sequential scans; `steady` as rows are counted."""
    values = {
        "shard": _SHARDS[log.shard_kind],
        "coverage": 0,
        "settled": 2**31 - 2,
        "after": 0,
        "through": 2**31 - 2,
        "most": 1,
    }
    connection.exec_driver_sql("BEGIN")
    try:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        if steady:
            connection.exec_driver_sql(STEADY)
        plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values).scalar_one()
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql("ROLLBACK")
    parsed = json.loads(plan) if isinstance(plan, str) else plan
    return list(_scans(parsed[0]["Plan"], log.table))


def _scans(node: dict[str, Any], table: str) -> Iterator[Scan]:
    """Those of the log's own table."""
    if node["Node Type"] == "Bitmap Heap Scan":
        inner = node["Plans"][0]
        yield Scan(
            node["Node Type"], inner.get("Index Name"), inner.get("Index Cond", ""), node.get("Filter", "")
        )
        return
    if node.get("Relation Name") == table:
        yield Scan(
            node["Node Type"], node.get("Index Name"), node.get("Index Cond", ""), node.get("Filter", "")
        )
    for inner in node.get("Plans", ()):
        yield from _scans(inner, table)
