"""Delivery frontiers in a storm of writers on PostgreSQL: none is false by the barrier, and the simpler methods are.

Every frontier is judged after the storm, when no transaction is open any more: the rows that ever became visible in its
range must be the ones that were visible, and terminal, when it was claimed.
"""

from collections.abc import Callable

import pytest
from own_postgres import OwnServer
from writer_storm import Look, Observer, Storm

from gapless.delivery import Barrier, LogTable, barrier_for

BARRIER = "the barrier"
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


def holders_before_the_last_id(observer: Observer) -> None:
    """No holder, and then the last id given out."""
    (holders,) = observer.connection.execute(f"SELECT count(*) {HOLDERS}").fetchone() or (1,)
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


@pytest.fixture
def storm(postgres_of_its_own: OwnServer, own_postgres_schema: str) -> Storm:
    storm = Storm(postgres_of_its_own, seed=5)
    storm.create()
    return storm


def observers_of(storm: Storm) -> dict[str, Look]:
    with storm.server.engine() as engine, engine.connect() as connection:
        log = LogTable(table="log", terminal=("delivered", "dead"), ids="identity").reflect(connection)
    # Two threads share the barrier, as shards' workers do.
    barrier = barrier_for(log)
    return {
        **{f"{BARRIER} {number}": by_the_barrier(barrier) for number in (1, 2)},
        **{name: make() for name, make in SIMPLER.items()},
    }


def judged(storm: Storm) -> tuple[int, int, set[str]]:
    """Frontiers claimed by the barrier, how many of them are false, and the simpler methods that never were."""
    false = storm.false()
    ours = [name for name in storm.claims if name.startswith(BARRIER)]
    for name, claims in storm.claims.items():
        print(f"{name:40s} {len(claims):7d} claimed {false[name]:6d} false")
    claimed = sum(len(storm.claims[name]) for name in ours)
    return claimed, sum(false[name] for name in ours), {name for name in SIMPLER if not false.get(name)}


@pytest.mark.parametrize("trouble", ["crash_one_session", "restart"])
def test_no_frontier_is_false_in_a_storm_with_a_crash_in_the_middle(storm: Storm, trouble: str) -> None:
    observers = observers_of(storm)
    storm.blow(observers, seconds=5, trouble=getattr(storm.server, trouble))
    claimed, false, _ = judged(storm)
    assert claimed > 100
    assert false == 0
    assert storm.false()["plain minimum"] > 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_thousand_frontiers_are_true_and_every_simpler_method_is_false(storm: Storm) -> None:
    observers = observers_of(storm)
    troubles = [
        storm.server.crash_one_session,
        lambda: storm.server.restart("immediate"),
        storm.server.restart,
    ]
    claimed, never_false = 0, set(SIMPLER)
    rounds = 0
    while (claimed < 10_000 or never_false) and rounds < 40:
        storm.blow(observers, seconds=20, trouble=troubles[rounds % 3])
        rounds += 1
        claimed, false, never_false = judged(storm)
        assert false == 0
    assert claimed >= 10_000
    assert not never_false
