"""The settled id on PostgreSQL, by the locks that writers hold on the sequence of the ids.

Whoever takes an id out of a sequence locks the sequence before, and keeps that lock until the transaction ends. So: read the
last id given out; in a later statement, see who holds the lock; once each of those has ended, every id up to
that one is settled, and a statement that begins then sees what is there. No writer is ever kept waiting. Any other order of
the steps gives wrong answers under load, and so do the table's locks, and open transaction ids.

What was found dies with the server's incarnation: after a crash a sequence may give out the same ids again. The start of the
server alone does not tell: after the crash of one session the server recovers without a new start. Its counters do, which
begin anew whenever it recovers. A sequence that was restarted has another file, and a table that was replaced has
another sequence.
"""

import threading
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.clock import Clock, SystemClock
from gapless.delivery.barrier_rule import Awaited, Holder
from gapless.delivery.barrier_session import of_log, read_committed
from gapless.delivery.barrier_writers import longest_first, open_writers
from gapless.delivery.log_table import ReflectedLog, as_text, literal
from gapless.delivery.settled import OpenWriter, Settled
from gapless.errors import UnsafeSetup

_REFUSED = {
    "standby": ("the server is a standby: it shows no open writers of its primary", "connect to the primary"),
    "replaced_sequence": (
        "ids are given out by another sequence than at the start",
        "start anew: table or sequence were replaced",
    ),
}

# RowExclusiveLock is what nextval() takes, the stronger ones what ALTER SEQUENCE and the like do: whoever has one may have both.
_HOLDERS = """
SELECT now.incarnation, l.virtualtransaction AS transaction, l.pid FROM (SELECT {incarnation} AS incarnation) AS now
LEFT JOIN pg_locks AS l ON l.locktype = 'relation' AND l.relation = {sequence} AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
"""


@dataclass(slots=True)
class _Round:
    """One time of waiting: the last id given out when it began, whose end is awaited, and what is known of them."""

    last: int
    incarnation: str
    awaited: Awaited
    named: dict[Holder, OpenWriter] = field(default_factory=dict)


class SequenceBarrier:
    """The `Barrier` of a log on PostgreSQL. Safe to share between threads.

    `freshness`, in seconds: an answer that is not older is given again without asking the server. 0 asks every time. A thread
    that asks while another one does gets the last answer, rather than wait for it."""

    def __init__(self, log: ReflectedLog, *, freshness: float = 0.0, clock: Clock | None = None) -> None:
        self.incarnation_sql = _incarnation(log)
        self._log = log
        self._freshness = freshness
        self._clock = clock or SystemClock()
        now = as_text(self.incarnation_sql)
        self._last_given_out = sa.text(
            "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS last,"  # noqa: S608 - names are quoted
            f" {now} AS incarnation FROM {as_text(log.sequence_sql)}"
        )
        self._holders = sa.text(_HOLDERS.format(incarnation=now, sequence=log.sequence))
        self._turn = threading.Lock()
        self._answer: Settled | None = None
        self._answered_at = 0.0
        self._round: _Round | None = None

    def settled(self, connection: Connection) -> Settled:
        """The settled id as far as it is known now: at most five short statements, and no waiting for any writer.

        The connection is in autocommit. Raises InsideTransaction where it is not, UnsafeSetup on a standby,
        NotAMessageLog where table or sequence are gone."""
        answer = self._answer
        if answer is None:
            self._turn.acquire()
        elif not self._turn.acquire(blocking=False):
            return answer
        try:
            answer = self._answer
            if answer is None or not self._fresh():
                answer = self._ask(connection)
                self._answer, self._answered_at = answer, self._clock.monotonic()
            return answer
        finally:
            self._turn.release()

    def _fresh(self) -> bool:
        return self._clock.monotonic() - self._answered_at < self._freshness

    def _ask(self, connection: Connection) -> Settled:
        with of_log(self._log), read_committed(connection):
            return self._go_on(connection)

    def _go_on(self, connection: Connection) -> Settled:
        """A round that is under way, one step further; where it is over, the next one, and its first step."""
        settled = self._answer or Settled(0, (), "")
        waiting, self._round = self._round, None
        if waiting is not None:
            incarnation, holders = self._look(connection)
            if incarnation == waiting.incarnation == settled.incarnation:
                waiting.awaited = waiting.awaited.later(holders)
                if not waiting.awaited.over:
                    return self._wait(waiting, settled.id, connection)
                settled = Settled(waiting.last, (), incarnation)
        last, begun = self._read_last(connection)
        if begun != settled.incarnation or last < settled.id:
            # Ids that were settled may be given out again: nothing is, until this round is over.
            settled = Settled(0, (), begun)
        if last == settled.id:
            return settled
        incarnation, holders = self._look(connection)
        if incarnation != begun:
            return Settled(0, (), incarnation)
        begins = _Round(last, incarnation, Awaited.at_first(holders))
        if begins.awaited.over:
            return Settled(last, (), incarnation)
        return self._wait(begins, settled.id, connection)

    def _wait(self, waiting: _Round, settled: int, connection: Connection) -> Settled:
        """The round stays under way, and whoever is awaited is named."""
        self._round = waiting
        unknown = waiting.awaited.holders - waiting.named.keys()
        waiting.named.update(open_writers(unknown, connection))
        return Settled(
            settled, longest_first(waiting.named[one] for one in waiting.awaited.holders), waiting.incarnation
        )

    def _read_last(self, connection: Connection) -> tuple[int, str]:
        row = connection.execute(self._last_given_out).one()
        return max(row.last, 0), self._checked(row.incarnation)

    def _look(self, connection: Connection) -> tuple[str, set[Holder]]:
        """Who holds the sequence's lock now."""
        rows = connection.execute(self._holders).all()
        holders = {Holder(row.transaction, row.pid) for row in rows if row.transaction is not None}
        return self._checked(rows[0].incarnation), holders

    def _checked(self, incarnation: str) -> str:
        if incarnation not in _REFUSED:
            return incarnation
        self._answer = None
        what, remedy = _REFUSED[incarnation]
        raise UnsafeSetup(what, where=self._log.where, remedy=remedy, setup=incarnation)


def _incarnation(log: ReflectedLog) -> str:
    """All that has to stay as it is for a settled id to hold, as one text; what is refused, by its name."""
    sequence = f"CAST(pg_get_serial_sequence({literal(log.table_sql)}, {literal(log.id)}) AS regclass)"
    return (
        "CASE WHEN pg_is_in_recovery() THEN 'standby'"
        f" WHEN {sequence} IS DISTINCT FROM CAST({log.sequence} AS regclass) THEN 'replaced_sequence'"
        " ELSE concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),"
        f" extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()), pg_relation_filenode({log.sequence})) END"
    )
