"""Every statement of a message log, once, on either database.

On PostgreSQL the range of a shard is a comparison of rows, which keeps the planner on the index whatever its statistics say. On
SQLite that would look at the whole shard: there the columns are compared apart, and the index is named (`INDEXED BY`). So
no statistics matter, and where the index is missing the statement fails instead of becoming slow.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gapless.delivery.log_table import ReflectedLog, quoted
from gapless.delivery.own_tables import OwnTables

SUM_MODULUS = 2**31 - 1
"""Sums of ids are taken modulo this, row by row, so that no sum overflows 64 bits."""

LOWEST_ID = -(2**63)

OPEN_BEHIND = "open_behind_coverage"
"""The code of a violation that is known by its row, and so recorded once. Others may come again for the same range."""

STEADY = (
    "SELECT set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true),"
    " set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)"
)
"""On PostgreSQL, before rows are counted, for the rest of the transaction: any other index on the shards, or one on the ids,
would otherwise have the planner read a whole shard, or all new rows, when its statistics mislead."""

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Indexes:
    """The two indexes by name: on the rows that are not terminal, and on all rows; each on (shard, id)."""

    open: str
    all: str


@dataclass(frozen=True, slots=True)
class Statements:
    """Texts with named parameters: `shard`, `coverage`, `settled`, `after`, `through`, `count`, `sum`, `most`.

    `frontier` is the coverage, `first_open` and `last` in one snapshot, with the server's incarnation."""

    incarnation: str
    coverage: str
    first_open: str
    last: str
    frontier: str
    tally: str
    behind: str
    behind_all: str
    shards: str
    shards_between: str
    covered_shards: str
    begin_shard: str
    claim: str
    lock_coverage: str
    cover: str
    rebase: str
    record_violation: str
    violations: str


def statements(
    log: ReflectedLog, own: OwnTables, indexes: Indexes, incarnation_sql: str, *, for_driver: bool = True
) -> Statements:
    """`for_driver`: as the driver takes them, with its own way to write parameters; else `:name`, to be read or ported."""
    write = _for_driver(log) if for_driver else _as_is
    shard, id_, table = log.shard_sql, log.id_sql, log.table_sql
    open_rows = f"{table} INDEXED BY {quoted(indexes.open)}" if log.dialect == "sqlite" else table
    all_rows = f"{table} INDEXED BY {quoted(indexes.all)}" if log.dialect == "sqlite" else table
    keys = _keys(log)
    in_order = ", ".join(keys)
    covered = f"coalesce((SELECT through FROM {own.coverage_sql} WHERE shard = :shard), 0)"
    above = _range(log, covered, ":settled")
    first_open = (
        f"SELECT {id_} AS id, {log.status_sql} AS status FROM {open_rows}\n"
        f"  WHERE {above}\n  AND {log.open_sql}\n  ORDER BY {in_order} LIMIT 1"
    )
    last = (
        f"SELECT {id_} AS id FROM {all_rows}\n  WHERE {above}\n  ORDER BY {' DESC, '.join(keys)} DESC LIMIT 1"
    )
    behind = _range(log, None, ":coverage")
    locking = " FOR UPDATE" if log.dialect == "postgresql" else ""
    state = "through, claimed, claimed_count, claimed_sum, covered_count, covered_sum"
    texts = {
        "incarnation": f"SELECT {incarnation_sql} AS incarnation",
        "coverage": f"SELECT {state} FROM {own.coverage_sql} WHERE shard = :shard",
        "first_open": first_open,
        "last": last,
        "frontier": (
            f"SELECT {state}, o.id AS first_open, o.status AS status, l.id AS last, {incarnation_sql} AS incarnation\n"
            f"FROM (SELECT 1 AS one) AS one\nLEFT JOIN {own.coverage_sql} AS c ON c.shard = :shard\n"
            f"LEFT JOIN (\n  {first_open}\n) AS o ON 1 = 1\nLEFT JOIN (\n  {last}\n) AS l ON 1 = 1"
        ),
        "tally": _tally(log, all_rows),
        "behind": (
            f"SELECT {id_} AS id, {log.status_sql} AS status FROM {open_rows}\n"
            f"WHERE {behind}\nAND {log.open_sql}\nORDER BY {in_order} LIMIT :most"
        ),
        "behind_all": (
            "SELECT o.shard AS shard, o.id AS id, o.status AS status FROM (\n"
            f"  SELECT {shard} AS shard, {id_} AS id, {log.status_sql} AS status FROM {open_rows} WHERE {log.open_sql}\n"
            f") AS o JOIN {own.coverage_sql} AS c ON c.shard = o.shard AND o.id <= c.through\n"
            f"WHERE NOT EXISTS (SELECT 1 FROM {own.violation_sql} AS v WHERE v.shard = o.shard\n"
            f"  AND v.code = '{OPEN_BEHIND}' AND v.after = o.id - 1 AND v.through = o.id)\nLIMIT :most"
        ),
        "shards": _shards(log, all_rows),
        "shards_between": (
            f"SELECT DISTINCT {shard} AS shard FROM {table} WHERE {id_} > :after AND {id_} <= :settled"
        ),
        "covered_shards": f"SELECT shard FROM {own.coverage_sql} WHERE through > 0 OR claimed IS NOT NULL",
        "begin_shard": f"INSERT INTO {own.coverage_sql} (shard) VALUES (:shard) ON CONFLICT (shard) DO NOTHING",
        "claim": (
            f"UPDATE {own.coverage_sql} SET claimed = :through, claimed_count = :count, claimed_sum = :sum\n"
            "WHERE shard = :shard AND through = :after AND claimed IS NULL"
        ),
        "lock_coverage": f"SELECT {state} FROM {own.coverage_sql} WHERE shard = :shard{locking}",
        "cover": (
            f"UPDATE {own.coverage_sql} SET through = :through, claimed = NULL, claimed_count = NULL, claimed_sum = NULL,\n"
            "  covered_count = covered_count + :count, covered_sum = covered_sum + :sum\n"
            "WHERE shard = :shard AND through = :after AND (claimed IS NULL OR claimed = :through)"
        ),
        "rebase": (
            f"UPDATE {own.coverage_sql} SET covered_count = :count, covered_sum = :sum WHERE shard = :shard"
        ),
        "record_violation": (
            f"INSERT INTO {own.violation_sql} (shard, code, after, through, number, id, detail, found_at)\n"
            "VALUES (:shard, :code, :after, :through,\n"
            f"  CASE WHEN :code = '{OPEN_BEHIND}' THEN 0 ELSE (SELECT count(*) FROM {own.violation_sql} AS v\n"
            "    WHERE v.shard = :shard AND v.code = :code) END, :id, :detail, :found_at)\n"
            "ON CONFLICT (shard, code, after, through, number) DO NOTHING"
        ),
        "violations": (
            f"SELECT shard, code, after, through, id, detail, found_at FROM {own.violation_sql}\n"
            "ORDER BY found_at, shard, after, through, code, number"
        ),
    }
    return Statements(**{name: write(text) for name, text in texts.items()})


def _keys(log: ReflectedLog) -> tuple[str, str]:
    """Shard and id to order by. With the table's name: alone, either may be what a statement calls another of its columns."""
    return f"{log.table_sql}.{log.shard_sql}", f"{log.table_sql}.{log.id_sql}"


def _range(log: ReflectedLog, after: str | None, through: str) -> str:
    """The rows of one shard with `after` < id <= `through`, both SQL; None: from the lowest id there is."""
    shard, id_ = log.shard_sql, log.id_sql
    if log.dialect == "sqlite":
        lower = f"{id_} > {after} AND " if after else ""
        return f"{shard} = :shard AND {lower}{id_} <= {through}"
    lower = f"> (:shard, {after})" if after else f">= (:shard, {LOWEST_ID})"
    return f"({shard}, {id_}) {lower} AND ({shard}, {id_}) <= (:shard, {through})"


def _tally(log: ReflectedLog, all_rows: str) -> str:
    # The sum is beside the count, so that one row more or less is known by its id.
    tally = f"SELECT count(*) AS count, CAST(coalesce(sum(id % {SUM_MODULUS}), 0) AS bigint) AS sum FROM"
    rows = f"SELECT {log.id_sql} AS id FROM {all_rows} WHERE {_range(log, ':after', ':through')}"
    # Together with STEADY: in this order, and without sorting, there is one way to read them.
    ordered = f" ORDER BY {', '.join(_keys(log))}" if log.dialect == "postgresql" else ""
    return f"{tally} (\n  {rows}{ordered}\n) AS counted"


def _shards(log: ReflectedLog, all_rows: str) -> str:
    """Each shard once, by as many steps along the index as there are shards, however many rows they have."""
    shard = log.shard_sql
    rows = all_rows.replace(log.table_sql, f"{log.table_sql} AS t", 1)
    return (
        "WITH RECURSIVE known (shard) AS (\n"
        f"  SELECT * FROM (SELECT {shard} AS shard FROM {all_rows} ORDER BY {shard} LIMIT 1) AS first\n"
        "  UNION ALL\n"
        f"  SELECT (SELECT t.{shard} FROM {rows} WHERE t.{shard} > known.shard ORDER BY t.{shard} LIMIT 1)\n"
        "  FROM known WHERE known.shard IS NOT NULL\n"
        ")\nSELECT shard FROM known WHERE shard IS NOT NULL"
    )


def _as_is(text: str) -> str:
    return text


def _for_driver(log: ReflectedLog) -> Callable[[str], str]:
    """SQLite's driver takes `:name`; psycopg takes `%(name)s`, and every other `%` twice."""
    return _as_is if log.dialect == "sqlite" else psycopg_text


def psycopg_text(text: str) -> str:
    """`:name` as psycopg has it; what is quoted stays, but for its `%`.

    >>> psycopg_text('SELECT "a:b%" FROM t WHERE x = :shard')
    'SELECT "a:b%%" FROM t WHERE x = %(shard)s'
    """
    parts = re.split(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')""", text)
    return "".join(
        part.replace("%", "%%") if number % 2 else _PARAMETER.sub(r"%(\1)s", part.replace("%", "%%"))
        for number, part in enumerate(parts)
    )
