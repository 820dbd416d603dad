"""Which table a coverage belongs to: on PostgreSQL the relation's oid and the server's system identifier.

A table that is dropped and created anew under its name gives out its ids from the beginning: a coverage of the former one would
jump over its rows. SQLite keeps no such identity.
"""

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from gapless.delivery.database import execute
from gapless.delivery.log_table import ReflectedLog
from gapless.delivery.own_tables import OwnTables
from gapless.errors import UnsafeSetup

_READABLE = "SELECT has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')"
_SYSTEM = "SELECT system_identifier FROM pg_catalog.pg_control_system()"


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """`relation`: the table's oid. `system_identifier`: its server's. None: there is none, or the role may not read it.

    >>> stored = TableIdentity(16401, None)
    >>> stored.admits(TableIdentity(16401, 7)), stored.admits(TableIdentity(16999, 7))
    (True, False)
    """

    relation: int | None
    system_identifier: int | None

    def admits(self, now: "TableIdentity") -> bool:
        """Whether it may be the same table. What one of both does not know contradicts nothing."""
        pairs = ((self.relation, now.relation), (self.system_identifier, now.system_identifier))
        return all(stored is None or found is None or stored == found for stored, found in pairs)


def table_identity(connection: Connection, log: ReflectedLog) -> TableIdentity:
    """Of the table as it was found."""
    if log.dialect == "sqlite":
        return TableIdentity(None, None)
    # Two statements: a function's privilege is looked at even where a condition keeps it from being called.
    readable = execute(connection, _READABLE, {}).scalar_one()
    system = int(execute(connection, _SYSTEM, {}).scalar_one()) if readable else None
    return TableIdentity(log.relation, system)


def refuse_other_table(stored: TableIdentity, now: TableIdentity, log: ReflectedLog, own: OwnTables) -> None:
    """Raises UnsafeSetup where the coverage was installed for another table of this name."""
    if stored.admits(now):
        return
    what = (
        f"oid {stored.relation}, and this one has oid {now.relation}"
        if not TableIdentity(stored.relation, None).admits(now)
        else f"server {stored.system_identifier}, and this one is {now.system_identifier}"
    )
    raise UnsafeSetup(
        f"{own.coverage} is a coverage from elsewhere: it was installed for a table of {what}",
        where=log.where,
        remedy="the same rows under the same ids, as after a restore: `gapless delivery install JOB --redeclare`, or"
        f" MessageLog.install(redeclare=True), keeps it; other rows: drop {own.coverage_sql} and {own.violation_sql} first",
        setup="coverage_from_elsewhere",
    )
