"""Set-ups on which no safe answer exists, each by its name: found at the start, and watched for later.

A frontier is true where ids are given out in order by something whose open holders can be seen, where every row can be
seen, and where no row gets an id from elsewhere. What breaks one of these is refused, with the way out of it.

    standby, logical_subscriber           rows arrive without their writers' locks
    temporary_table, unlogged_table,      rows or ids do not survive the session, or a crash
    unlogged_sequence, no_journal
    partitioned_table, inherited_table    rows stand in other tables, with other sequences
    row_security, read_uncommitted        rows are hidden, or shown before they are there
    cached_sequence, cycling_sequence,    ids are not given out in order, or not inside the transaction that writes them
    descending_sequence, spaced_sequence,
    not_autoincrement
    explicit_ids, foreign_default,        ids come from elsewhere
    insert_triggers, insert_rules
    ids_below_one, nullable_shard,        rows that no range of any shard would hold
    nullable_id
    coverage_above_sequence               ids to come would be behind what is covered
    replaced_sequence                     the ids are given out by another sequence than at the start
"""

from sqlalchemy.engine import Connection

from gapless.delivery.log_table import ReflectedLog
from gapless.errors import UnsafeSetup


def unsafe_setups(
    log: ReflectedLog, connection: Connection, *, highest_coverage: int | None = None, rows: bool = True
) -> tuple[UnsafeSetup, ...]:
    """Everything that is unsafe about the log, empty where nothing is. Raises NotAMessageLog where the table is gone.

    `highest_coverage`: the largest id that any shard's coverage or claim has reached, read before this call; None where there
    is no coverage yet. `rows`: False looks at the catalogue alone, in one statement, whatever the table's size."""
    if log.dialect == "postgresql":
        from gapless.delivery.setups_on_postgresql import unsafe
    else:
        from gapless.delivery.setups_on_sqlite import unsafe
    return unsafe(log, connection, highest_coverage=highest_coverage, rows=rows)


def refuse_unsafe(log: ReflectedLog, connection: Connection, *, highest_coverage: int | None = None) -> None:
    """At the start: raises UnsafeSetup for the first of what is unsafe."""
    _refuse(unsafe_setups(log, connection, highest_coverage=highest_coverage))


def watch(log: ReflectedLog, connection: Connection, *, highest_coverage: int | None = None) -> None:
    """Later, as often as one likes: the same by the catalogue alone."""
    _refuse(unsafe_setups(log, connection, highest_coverage=highest_coverage, rows=False))


def _refuse(found: tuple[UnsafeSetup, ...]) -> None:
    if found:
        raise found[0]
