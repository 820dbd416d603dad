"""SIGKILL at random instants, over and over, while a hostile API answers and an oracle watches."""

import os
import random
import signal

import pytest
from hostile_universe import END, HOSTILE, Knobs
from truth_oracle import Watch

from gapless.progress import ChainState

KILLED = -signal.SIGKILL
A_RUN = 1.2
"""Seconds: about what a whole backfill of these takes, so that kills fall everywhere in it."""


def kill_over_and_over(make_site, store_urls, sweep_up, kills: int, seed: int) -> None:
    draw = random.Random(seed)
    done = 0
    while done < kills:
        knobs = Knobs(
            seed=draw.randrange(10**6), partitions=4, events=draw.choice((200, 400)), page=30, **HOSTILE
        )
        site = make_site(next(store_urls), knobs, target_rows=draw.choice((20, 60, 10_000)))
        with Watch(site.oracle):
            while done < kills:
                process = site.start(processes=draw.choice((1, 2)))
                process.join(draw.uniform(0.0, A_RUN))
                process.kill()
                if site.ended(process) != KILLED:
                    break
                done += 1
                if draw.random() < 0.5:
                    sweep_up(site)
            ended_well = site.run() == 0
        now = site.oracle.finish()
        gaps = [chain for chain in now.chains.values() if chain.state == ChainState.GAP.value]
        # A token that dies before anything was certified leaves nowhere to restart: all else has to be complete.
        assert all(chain.bound is None for chain in gaps), site.said()
        assert ended_well == (not gaps), site.said()
        if not gaps:
            assert now.frontier is not None
            assert now.frontier.position == END
        site.close()


@pytest.fixture
def store_urls(request):
    """Fresh stores, on SQLite and PostgreSQL in turn."""
    made = request.getfixturevalue("new_postgres_url")

    def urls():
        while True:
            yield None
            yield made()

    return urls()


@pytest.mark.postgres
def test_ten_kills_at_random_instants(make_site, store_urls, sweep_up):
    kill_over_and_over(make_site, store_urls, sweep_up, kills=10, seed=20)


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.timeout(3600)
def test_very_many_kills_at_random_instants(make_site, store_urls, sweep_up):
    """`GAPLESS_SEED` begins with other histories."""
    kills = int(os.environ.get("GAPLESS_KILLS", "200"))
    kill_over_and_over(make_site, store_urls, sweep_up, kills, seed=int(os.environ.get("GAPLESS_SEED", "21")))
