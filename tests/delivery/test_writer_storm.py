"""Delivery frontiers in a storm of writers on PostgreSQL: none is false by the barrier, and the simpler methods are.

Every frontier is judged after the storm, when no transaction is open any more: the rows that ever became visible in its
range must be the ones that were visible, and terminal, when it was claimed.
"""

import pytest
from own_postgres import OwnServer
from simpler_methods import SIMPLER, by_the_barrier
from writer_storm import Look, Storm

from gapless.delivery import LogTable, barrier_for

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
