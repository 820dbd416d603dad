"""Who the holders are: sessions and prepared transactions, as far as the role may know."""

from collections.abc import Iterable, Set

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.delivery.barrier_rule import Holder
from gapless.delivery.settled import OpenWriter

_SESSIONS = sa.text(
    'SELECT pid, usename AS "user", application_name AS application, xact_start AS since'
    " FROM pg_stat_activity WHERE pid = ANY (:pids)"
)
# A prepared transaction has no session; its number is that of the lock which it holds on itself.
_PREPARED = sa.text(
    'SELECT x.virtualtransaction AS transaction, p.gid, p.owner AS "user", p.prepared AS since'
    " FROM pg_locks AS x JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid"
    " WHERE x.locktype = 'transactionid' AND x.pid IS NULL AND x.virtualtransaction = ANY (:transactions)"
)


def open_writers(holders: Set[Holder], connection: Connection) -> dict[Holder, OpenWriter]:
    """Each of them by name. Of one that has ended in the meantime only its pid is known."""
    sessions = {holder.pid: holder for holder in holders if holder.pid is not None}
    prepared = {holder.transaction: holder for holder in holders if holder.prepared}
    named = {
        holder: OpenWriter("prepared_transaction" if holder.prepared else "open_writer", pid=holder.pid)
        for holder in holders
    }
    if sessions:
        for row in connection.execute(_SESSIONS, {"pids": list(sessions)}):
            named[sessions[row.pid]] = OpenWriter(
                "open_writer",
                pid=row.pid,
                user=row.user,
                application=row.application or None,
                since=row.since,
            )
    if prepared:
        for row in connection.execute(_PREPARED, {"transactions": list(prepared)}):
            named[prepared[row.transaction]] = OpenWriter(
                "prepared_transaction", user=row.user, since=row.since, gid=row.gid
            )
    return named


def longest_first(writers: Iterable[OpenWriter]) -> tuple[OpenWriter, ...]:
    """The longest open first, those of unknown age last."""

    def age(writer: OpenWriter) -> tuple[bool, float, int, str]:
        began = writer.since.timestamp() if writer.since else 0.0
        return (writer.since is None, began, writer.pid or 0, writer.gid or "")

    return tuple(sorted(writers, key=age))
