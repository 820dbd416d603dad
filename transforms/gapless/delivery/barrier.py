"""The barrier that a log's database needs."""

from gapless.delivery.log_table import ReflectedLog
from gapless.delivery.sequence_barrier import SequenceBarrier
from gapless.delivery.settled import Barrier
from gapless.delivery.snapshot_barrier import SnapshotBarrier


def barrier_for(log: ReflectedLog, *, freshness: float = 0.0) -> Barrier:
    """A new one: keep it, since what it has waited for is lost with it. `freshness` as in `SequenceBarrier`, in seconds."""
    if log.dialect == "postgresql":
        return SequenceBarrier(log, freshness=freshness)
    return SnapshotBarrier(log)
