"""The settled id on SQLite, where there is one writer at a time: it is the largest id of a snapshot.

A transaction that is given an id has the write lock until it ends, and whoever rolls back gives its ids back. So all
ids up to the largest one of a snapshot are settled in it, and in every later one.
"""

from sqlalchemy.engine import Connection

from gapless.delivery.log_table import ReflectedLog, literal
from gapless.delivery.settled import Settled

_INCARNATION = "sqlite"


class SnapshotBarrier:
    """The `Barrier` of a log on SQLite; it keeps nothing between two calls. The connection may be in a read transaction, and must
    not be in one that writes: rows that nobody else can see yet may still be rolled back."""

    incarnation_sql = f"'{_INCARNATION}'"

    def __init__(self, log: ReflectedLog) -> None:
        # What AUTOINCREMENT itself goes by: the larger one of its record, which may have been reset by hand, and the rows.
        # With the table's name: SQLite takes a quoted name that is no column for a text.
        self._largest = (
            f"SELECT max(coalesce((SELECT max({log.table_sql}.{log.id_sql}) FROM {log.table_sql}), 0),"  # noqa: S608
            f" coalesce((SELECT max(seq) FROM {log.sequence_sql} WHERE name = {literal(log.table)}), 0))"
        )

    def settled(self, connection: Connection) -> Settled:
        """The largest id of the present snapshot; nobody ever keeps it from rising."""
        return Settled(connection.exec_driver_sql(self._largest).scalar_one(), (), _INCARNATION)
