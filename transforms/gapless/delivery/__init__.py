"""Message logs: a frontier without gaps over a table of rows that are delivered in any order.

    log_table     the table as declared, and as it was found
    settled       the settled id: through which id no open transaction can add a row
    barrier       how it is found on either database, without waiting for a writer
    setups        set-ups on which no safe answer exists, refused by name
    message_log   `MessageLog`: frontier, newly covered rows, claims, coverage
    worker        `Worker`: acts on what is newly covered, shard by shard
    violations    what contradicts a coverage, recorded with its id
    statements    every statement, once; indexes, plans: what answers them, and the check that it does

Needs no Beam and none of gapless's own stores: the tables it keeps stand beside the user's.
"""

from gapless.delivery.barrier import barrier_for
from gapless.delivery.coverage import CoveredRange
from gapless.delivery.log_table import LogTable, ReflectedLog
from gapless.delivery.message_log import LogRef, MessageLog
from gapless.delivery.settled import Barrier, OpenWriter, Settled
from gapless.delivery.setups import refuse_unsafe, unsafe_setups, watch
from gapless.delivery.violations import Violation
from gapless.delivery.worker import Held, RangeEffect, Work, Worker, work_shard
from gapless.progress import DeliveryBlocker, DeliveryFrontier

__all__ = [
    "Barrier",
    "CoveredRange",
    "DeliveryBlocker",
    "DeliveryFrontier",
    "Held",
    "LogRef",
    "LogTable",
    "MessageLog",
    "OpenWriter",
    "RangeEffect",
    "ReflectedLog",
    "Settled",
    "Violation",
    "Work",
    "Worker",
    "barrier_for",
    "refuse_unsafe",
    "unsafe_setups",
    "watch",
    "work_shard",
]
