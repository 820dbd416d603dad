"""Delivery frontiers in a storm of writers on PostgreSQL: none is false by the barrier, and the simpler methods are.

Every frontier is judged after the storm, when no transaction is open any more: the rows that ever became visible in its
range must be the ones that were visible, and terminal, when it was claimed.
"""

import contextlib

import pytest
from own_postgres import OwnServer
from simpler_methods import SIMPLER, by_the_barrier
from writer_storm import SHARDS, TERMINAL, Claim, Look, Observer, Storm

from gapless.delivery import LogTable, MessageLog, barrier_for
from gapless.errors import CoverageMoved, DatabaseUnavailable

BARRIER = "the barrier"


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


def worker_of(log: MessageLog) -> Look:
    """Claims what is due, hands it on, and covers it, for one shard after another."""

    def look(observer: Observer) -> None:
        for shard in SHARDS:
            with contextlib.suppress(DatabaseUnavailable, CoverageMoved):
                due = log.claim(shard)
                if due is not None:
                    handed_on = Claim(shard, due.after, due.through, due.rows, None, 0)
                    observer.storm.claims[observer.name].append(handed_on)
                    log.cover(due)

    return look


def test_ranges_handed_on_in_a_storm_hold_each_row_once_over_a_crash(storm: Storm) -> None:
    # Two logs, as in two processes, and two workers on each.
    logs = [MessageLog(storm.server.url, table="log", terminal=TERMINAL, ids="identity") for _ in range(2)]
    try:
        for log in logs:
            log.install()
        workers = {f"worker {number}": worker_of(logs[number % 2]) for number in range(4)}
        storm.blow(workers, seconds=6, trouble=storm.server.crash_one_session)
        assert not any(storm.false().values())
        handed_on = {claim for claims in storm.claims.values() for claim in claims}
        for shard in SHARDS:
            ranges = sorted((claim.after, claim.through) for claim in handed_on if claim.shard == shard)
            assert len(ranges) > 20
            assert [after for after, _ in ranges] == [0, *(through for _, through in ranges[:-1])]
            assert logs[0].coverage(shard) in (ranges[-1][0], ranges[-1][1])
        assert logs[0].violations() == []
    finally:
        for log in logs:
            log.close()


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
