"""A nemesis: runs, twins, kills, pauses and sweeps in any order at once, while the API is hostile and the oracle watches."""

import os
import random
import signal
from multiprocessing.process import BaseProcess
from uuid import uuid4

import pytest
from backfill_process import FILE_STEPS, SETTLING_STEPS, At
from hostile_universe import END, HOSTILE, Knobs
from truth_oracle import Watch

from gapless.progress import ChainState

MOST_AT_ONCE = 3
KILLED, BUSY = -signal.SIGKILL, 2


class Nemesis:
    """Draws what happens next. `going` are the processes that have not ended, `stopped` those of them that are paused."""

    def __init__(self, site, seed: int, sweep) -> None:
        self.site = site
        self.draw = random.Random(seed)
        self.sweep = sweep
        self.going: list[BaseProcess] = []
        self.stopped: list[BaseProcess] = []
        self.run_id = uuid4().hex

    def act(self) -> None:
        self.going = [one for one in self.going if one.is_alive()]
        self.stopped = [one for one in self.stopped if one in self.going]
        actions = [
            (self.start, 5),
            (self.kill, 3),
            (self.pause, 2),
            (self.wake, 3),
            (self.sweep_up, 1),
            (self.wait, 4),
        ]
        action = self.draw.choices([action for action, _ in actions], [weight for _, weight in actions])[0]
        action()

    def start(self) -> None:
        if len(self.going) >= MOST_AT_ONCE:
            return
        if self.draw.random() < 0.7:
            self.run_id = uuid4().hex
        at = None
        if self.draw.random() < 0.5:
            step = self.draw.choice([*SETTLING_STEPS, *FILE_STEPS])
            action = self.draw.choice(("kill", "no_space") if step in FILE_STEPS else ("kill",))
            at = At(step, self.draw.randint(1, 12), action)
        self.going.append(
            self.site.start(run_id=self.run_id, at=at, processes=self.draw.choice((1, 1, 2, 3)))
        )

    def kill(self) -> None:
        if self.going:
            one = self.draw.choice(self.going)
            one.kill()
            one.join(30)

    def pause(self) -> None:
        awake = [one for one in self.going if one not in self.stopped]
        if awake:
            one = self.draw.choice(awake)
            _signal(one, signal.SIGSTOP)
            self.stopped.append(one)

    def wake(self) -> None:
        if self.stopped:
            _signal(self.stopped.pop(self.draw.randrange(len(self.stopped))), signal.SIGCONT)

    def sweep_up(self) -> None:
        self.sweep(self.site)

    def wait(self) -> None:
        if self.going:
            self.draw.choice(self.going).join(self.draw.uniform(0.0, 0.7))

    def rest(self) -> None:
        """Everybody goes on to the end."""
        while self.stopped:
            self.wake()
        for one in self.going:
            self.site.ended(one)


def _signal(process: BaseProcess, number: int) -> None:
    assert process.pid is not None
    if process.is_alive():
        os.kill(process.pid, number)


def oppose(make_site, store_url, seed: int, actions: int, sweep) -> None:
    draw = random.Random(seed)
    knobs = Knobs(
        seed=seed, partitions=draw.randint(1, 5), events=draw.choice((150, 400)), page=30, **HOSTILE
    )
    settings = {"target_rows": draw.choice((15, 60, 10_000)), "workers": draw.choice((None, 1, 4))}
    site = make_site(store_url, knobs, **settings)
    if draw.random() < 0.4:
        # What does not fit the schema of the first pages, which is much here, is given up on.
        letters = {"type": "parquet", "path": str(site.folder / "dead")}
        site.write_job(**settings, on_drift="hold", dead_letters=letters)
    nemesis = Nemesis(site, seed, sweep)
    with Watch(site.oracle):
        for _ in range(actions):
            nemesis.act()
        nemesis.rest()
        ended = site.run()
    now = site.oracle.finish()
    gaps = [chain for chain in now.chains.values() if chain.state == ChainState.GAP.value]
    assert all(chain.bound is None for chain in gaps), site.said()
    assert (ended == 0) == (not gaps), site.said()
    if not gaps:
        assert now.frontier is not None
        assert now.frontier.position == END
    site.close()


@pytest.mark.postgres
def test_a_nemesis(make_site, new_postgres_url, sweep_up):
    oppose(make_site, None, seed=31, actions=25, sweep=sweep_up)
    oppose(make_site, new_postgres_url(), seed=32, actions=25, sweep=sweep_up)


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.timeout(3600)
def test_a_nemesis_that_does_not_tire(make_site, new_postgres_url, sweep_up):
    """`GAPLESS_SEED` begins with other histories."""
    rounds = int(os.environ.get("GAPLESS_KILLS", "200")) // 10
    first = int(os.environ.get("GAPLESS_SEED", "100"))
    for seed in range(first, first + rounds):
        oppose(make_site, new_postgres_url() if seed % 2 else None, seed=seed, actions=60, sweep=sweep_up)
