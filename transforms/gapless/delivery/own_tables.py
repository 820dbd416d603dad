"""The tables that a message log keeps beside the user's, in its schema: coverage, violations, and what was declared.

gapless_message_log            a row for each log: its columns and terminal statuses, as declared when it was installed, and
                               which table it was installed for
gapless_coverage_TABLE         a row for each shard: covered through, the end of a claimed range, a tally of what was covered
gapless_violation_TABLE        what contradicted a coverage: once for each row or range
"""

import json
from dataclasses import dataclass
from hashlib import sha256

from gapless.delivery.log_table import ReflectedLog, quoted

FORMAT = 1
"""Of these tables. A change is a migration, and a line under "State format" in the changelog."""

_LONGEST_NAME = 63
"""PostgreSQL cuts longer names, so that two of them could become one."""


@dataclass(frozen=True, slots=True)
class OwnTables:
    """Names as the database has them; what ends in `_sql` is quoted and qualified."""

    schema: str
    coverage: str
    violation: str
    registry: str
    open_index: str
    all_index: str

    @property
    def coverage_sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.coverage)}"

    @property
    def violation_sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.violation)}"

    @property
    def registry_sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.registry)}"


def own_tables(log: ReflectedLog) -> OwnTables:
    """Their names follow from the table's. The index of open rows is named by its predicate too, so that another declaration
    never takes it for its own."""
    predicate = sha256(f"{log.shard_sql}, {log.id_sql} WHERE {log.open_sql}".encode()).hexdigest()[:8]
    columns = sha256(f"{log.shard_sql}, {log.id_sql}".encode()).hexdigest()[:8]
    return OwnTables(
        log.schema,
        fitting("gapless_coverage_", log.table),
        fitting("gapless_violation_", log.table),
        "gapless_message_log",
        fitting("gapless_open_", log.table, f"_{predicate}"),
        fitting("gapless_all_", log.table, f"_{columns}"),
    )


def fitting(prefix: str, table: str, suffix: str = "") -> str:
    """A name that no database cuts: of a long table, its beginning and a digest.

    >>> fitting("gapless_coverage_", "conversations")
    'gapless_coverage_conversations'
    >>> len(fitting("gapless_coverage_", "ä" * 40).encode()) <= 63
    True
    """
    name = f"{prefix}{table}{suffix}"
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    digest = f"_{sha256(table.encode()).hexdigest()[:8]}{suffix}"
    room = _LONGEST_NAME - len((prefix + digest).encode())
    return prefix + table.encode()[:room].decode(errors="ignore") + digest


def declaration(log: ReflectedLog) -> str:
    """What must not change under a coverage, as JSON text: the same text for the same declaration."""
    return json.dumps(
        {
            "id": log.id,
            "shard": log.shard,
            "status": log.status,
            "terminal": sorted(log.log.terminal, key=lambda value: (isinstance(value, int), value)),
        },
        sort_keys=True,
    )


def tables_ddl(log: ReflectedLog, own: OwnTables) -> tuple[str, ...]:
    """One statement a table. The shard has the user's type and collation, so that equal shards are equal here too."""
    return (
        f"CREATE TABLE IF NOT EXISTS {own.registry_sql} (\n"
        "  log text NOT NULL PRIMARY KEY,\n"
        "  format integer NOT NULL,\n"
        "  declaration text NOT NULL,\n"
        "  relation bigint,\n"
        "  system_identifier bigint\n"
        ")",
        f"CREATE TABLE IF NOT EXISTS {own.coverage_sql} (\n"
        f"  shard {log.shard_ddl} NOT NULL PRIMARY KEY,\n"
        "  through bigint NOT NULL DEFAULT 0,\n"
        "  claimed bigint CHECK (claimed > through),\n"
        "  claimed_count bigint,\n"
        "  claimed_sum bigint,\n"
        "  covered_count bigint NOT NULL DEFAULT 0,\n"
        "  covered_sum bigint NOT NULL DEFAULT 0\n"
        ")",
        f"CREATE TABLE IF NOT EXISTS {own.violation_sql} (\n"
        f"  shard {log.shard_ddl} NOT NULL,\n"
        "  code text NOT NULL,\n"
        "  after bigint NOT NULL,\n"
        "  through bigint NOT NULL,\n"
        "  number bigint NOT NULL,\n"
        "  id bigint,\n"
        "  detail text NOT NULL,\n"
        "  found_at text NOT NULL,\n"
        "  PRIMARY KEY (shard, code, after, through, number)\n"
        ")",
    )


def indexes_ddl(log: ReflectedLog, own: OwnTables) -> tuple[str, str]:
    """The index of open rows and that of all rows. Concurrently on PostgreSQL, where a plain one would block every writer."""
    columns = f"{log.shard_sql}, {log.id_sql}"
    if log.dialect == "postgresql":
        head, table = "CREATE INDEX CONCURRENTLY IF NOT EXISTS ", log.table_sql
    else:
        # SQLite has the schema before the index, and takes none before the table.
        head, table = f"CREATE INDEX IF NOT EXISTS {quoted(log.schema)}.", quoted(log.table)
    return (
        f"{head}{quoted(own.open_index)} ON {table} ({columns}) WHERE {log.open_sql}",
        f"{head}{quoted(own.all_index)} ON {table} ({columns})",
    )
