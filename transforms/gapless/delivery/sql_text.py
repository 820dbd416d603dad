"""What `gapless delivery sql` prints: tables, indexes and statements of a log, to be ported to any language."""

from gapless.delivery.log_table import ReflectedLog, literal
from gapless.delivery.own_tables import FORMAT, OwnTables, declaration, indexes_ddl, tables_ddl
from gapless.delivery.statements import STEADY, Statements

_MODES = (
    "'RowExclusiveLock', 'ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',"
    " 'AccessExclusiveLock'"
)


def sql_text(log: ReflectedLog, own: OwnTables, texts: Statements) -> str:
    """Parameters are written `:name`. Each statement ends with a semicolon, and stands under a comment that says what it is
    for."""
    parts = [
        _HEAD.format(
            table=log.table_sql, dialect={"sqlite": "SQLite", "postgresql": "PostgreSQL"}[log.dialect]
        )
    ]
    parts += [_part("tables: once", *tables_ddl(log, own), _registration(log, own))]
    note = "; each outside of a transaction" if log.dialect == "postgresql" else ""
    parts += [_part(f"indexes: once{note}", *indexes_ddl(log, own))]
    parts += [_settled(log)]
    parts += [
        _part("coverage: where the shard stands; no row is coverage 0", texts.coverage),
        _part("frontier: the coverage, and first_open - 1, else last, else the coverage", texts.frontier),
        _part(
            "count: the rows of (:after, :through], and the sum of their ids",
            *(("BEGIN", STEADY, texts.tally, "COMMIT") if log.dialect == "postgresql" else (texts.tally,)),
        ),
    ]
    durable = [] if log.dialect == "sqlite" else ["SET LOCAL synchronous_commit = on"]
    caution = (
        "With PRAGMA synchronous=FULL"
        if log.dialect == "sqlite"
        else "Only where the incarnation is the frontier's: else ROLLBACK"
    )
    checked = [] if log.dialect == "sqlite" else [texts.incarnation]
    begin = "BEGIN IMMEDIATE" if log.dialect == "sqlite" else "BEGIN ISOLATION LEVEL READ COMMITTED"
    parts += [
        _part(
            f"claim: fix the range's end durably, then read the coverage again: ITS claimed end counts. {caution}",
            begin,
            *durable,
            *checked,
            texts.begin_shard,
            texts.claim,
            "COMMIT",
        ),
        _part(
            "cover: after the effect; no row changed means that another worker was first",
            begin,
            *durable,
            texts.cover,
            "COMMIT",
        ),
        _part(
            "behind: rows at or below the coverage that are not terminal; every one is a violation",
            texts.behind,
        ),
        _part("shards: each one once, however many rows it has", texts.shards),
        _plans(log, texts),
    ]
    return "\n\n".join(parts) + "\n"


_HEAD = """-- Message log {table} on {dialect}, by gapless.
-- A worker: settled id, coverage, frontier, count; claim; the effect, exactly on (after, through]; cover; again."""


def _part(purpose: str, *texts: str) -> str:
    return "\n".join([f"-- {purpose}", *(f"{text};" for text in texts)])


def _registration(log: ReflectedLog, own: OwnTables) -> str:
    names, values = "log, format, declaration", f"{literal(log.table)}, {FORMAT}, {literal(declaration(log))}"
    if log.dialect == "postgresql":
        names += ", relation"
        values += f", CAST(CAST({literal(log.table_sql)} AS regclass) AS oid)"
    return f"INSERT INTO {own.registry_sql} ({names}) VALUES ({values}) ON CONFLICT (log) DO NOTHING"


def _settled(log: ReflectedLog) -> str:
    if log.dialect == "sqlite":
        return _part(
            "settled id: one writer at a time, so the largest id of a snapshot is settled in it",
            f"SELECT coalesce(max({log.id_sql}), 0) AS settled FROM {log.table_sql}",
        )
    sequence = f"CAST({literal(log.sequence_sql or '')} AS regclass)"
    return _part(
        "settled id: autocommit, READ COMMITTED. 1: the last id given out. 2, in a LATER statement: who holds the sequence.\n"
        "-- Ask 2 again until none of its first answer is left; whenever one vanishes, wait for each row without a pid, too,\n"
        "-- that has appeared since. Then the id of 1 is settled for statements that begin later, until the server restarts",
        f"SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS last FROM {log.sequence_sql}",
        "SELECT virtualtransaction, pid FROM pg_locks\nWHERE locktype = 'relation' AND granted"
        f" AND relation = {sequence}\n"
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())\n"
        f"AND mode IN ({_MODES})\nAND pid IS DISTINCT FROM pg_backend_pid()",
    )


def _plans(log: ReflectedLog, texts: Statements) -> str:
    explain = "EXPLAIN QUERY PLAN" if log.dialect == "sqlite" else "EXPLAIN"
    asked = [f"{explain} {text}" for text in (texts.first_open, texts.last, texts.tally, texts.behind)]
    purpose = "plans: each one scan, by its index, entered at shard and id, with no filter"
    if log.dialect == "sqlite":
        return _part(purpose, *asked)
    off = "SET LOCAL enable_seqscan = off"
    return _part(purpose, "BEGIN", off, *asked[:2], asked[3], STEADY, asked[2], "ROLLBACK")
