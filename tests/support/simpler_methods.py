"""How a storm's observers find a frontier: by the barrier, and by simpler methods, each of which is false sometimes."""

from collections.abc import Callable

from writer_storm import Look, Observer

from gapless.delivery import Barrier

HOLDERS = (
    "FROM pg_locks WHERE relation = CAST('log_id_seq' AS regclass) AND granted AND mode <> 'AccessShareLock'"
)
LAST = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM log_id_seq"
EVERYTHING = 2**62


def by_the_barrier(barrier: Barrier) -> Look:
    def look(observer: Observer) -> None:
        settled = barrier.settled(observer.alchemy)
        observer.frontiers(settled.id, also=f"{barrier.incarnation_sql} = '{settled.incarnation}'")

    return look


def plain(observer: Observer) -> None:
    """The smallest open row, else the largest row."""
    observer.frontiers(EVERYTHING)


def without_open_transaction_ids(observer: Observer) -> None:
    """The same, where the snapshot shows no open transaction."""
    observer.frontiers(
        EVERYTHING, also="pg_snapshot_xmin(pg_current_snapshot()) = pg_snapshot_xmax(pg_current_snapshot())"
    )


def without_locks_in_the_statement(observer: Observer) -> None:
    """The same, where the statement itself finds no holder."""
    observer.frontiers(EVERYTHING, also=f"(SELECT count(*) = 0 {HOLDERS})")


def holders_before_the_last_id(observer: Observer, between: Callable[[], None] = lambda: None) -> None:
    """No holder, and then the last id given out; `between` is what happens meanwhile."""
    (holders,) = observer.connection.execute(f"SELECT count(*) {HOLDERS}").fetchone() or (1,)
    between()
    (last,) = observer.connection.execute(LAST).fetchone() or (0,)
    if not holders:
        observer.frontiers(last)


def prepared_not_followed() -> Look:
    """The barrier, but a holder that becomes a prepared transaction counts as ended."""
    awaited: set[tuple[str, int | None]] = set()
    settled = last = 0

    def look(observer: Observer) -> None:
        nonlocal settled, last, awaited
        if not awaited:
            (last,) = observer.connection.execute(LAST).fetchone() or (0,)
        now = set(observer.connection.execute(f"SELECT virtualtransaction, pid {HOLDERS}").fetchall())
        awaited = awaited & now if awaited else now
        if not awaited:
            settled = last
        observer.frontiers(settled)

    return look


SIMPLER: dict[str, Callable[[], Look]] = {
    "plain minimum": lambda: plain,
    "no open transaction ids": lambda: without_open_transaction_ids,
    "locks in the same statement": lambda: without_locks_in_the_statement,
    "holders before the last id": lambda: holders_before_the_last_id,
    "prepared transactions not followed": prepared_not_followed,
}
