"""Any history of runs, twins, crashes, failing events, skips and pages cut elsewhere, drawn by a seed: judged at every step."""

import random

import pytest
from moving_source import MovingSource, through, universe_of
from recording_effect import RecordingEffect

from gapless.progress import ChainState
from gapless.settling.retrying import RetryPolicy
from gapless.settling.worker import Slice
from gapless.testing import WorkerCrash

STEPS = ("taken", "fetched", "applied", "durable", "committed", "published", "held")
TWICE = RetryPolicy(attempts=2, backoff=1.0)


class History:
    """`going` are the calls that have not ended, each as a generator with its run and partition."""

    def __init__(self, bench, seed: int) -> None:
        self.bench = bench
        self.draw = random.Random(seed)
        self.universe = universe_of(
            self.draw, partitions=self.draw.randint(1, 3), events=self.draw.randint(1, 25)
        )
        self.source = MovingSource(self.universe, seed)
        self.dead = self.draw.random() < 0.4
        for event in (event for events in self.universe.values() for event, _ in events):
            if self.draw.random() < 0.15:
                bench.effect.failing[event] = self.draw.choice((1, 2, 5, None))
        self.runs = [self.new_run()]
        self.going = []

    def new_run(self, **options):
        return self.bench.run(
            self.source,
            effect=RecordingEffect(self.bench.disk, self.bench.effect.failing),
            dead_letters=self.bench.letters if self.dead else None,
            retry=TWICE,
            local=self.draw.random() < 0.5,
            target_rows=self.draw.randint(1, 8),
            **options,
        )

    def act(self) -> None:
        actions = [
            (self.begin, 4),
            (self.go_on, 10),
            (self.run_anew, 1),
            (self.twin, 1),
            (self.crash, 1),
            (self.skip, 2),
        ]
        self.draw.choices([action for action, _ in actions], [weight for _, weight in actions])[0]()

    def begin(self) -> None:
        run = self.draw.choice(self.runs[-3:])
        if not run.plan.tasks:
            return
        partition = self.draw.choice(run.plan.tasks).partition
        pages = self.draw.choice((None, None, 1, 3))
        self.going.append(run.stepping(partition, Slice(pages=pages)))

    def go_on(self) -> None:
        if not self.going:
            return self.begin()
        one = self.draw.choice(self.going)
        try:
            ended = next(one, None) is None
        except WorkerCrash:
            ended = True
        if ended:
            self.going.remove(one)
        return None

    def run_anew(self) -> None:
        self.runs.append(self.new_run())

    def twin(self) -> None:
        self.runs.append(self.new_run(twin_of=self.runs[-1]))

    def crash(self) -> None:
        """The worker of some run dies when it comes to a step the next time."""
        step, run = self.draw.choice(STEPS), self.draw.choice(self.runs[-3:])

        def die(name: str) -> None:
            if name == step:
                run.worker.on_step = lambda name: None
                raise WorkerCrash(step)

        run.worker.on_step = die

    def skip(self) -> None:
        held = [
            row for row in self.bench.snapshot().chains if row.blocker is not None and row.blocker.event_id
        ]
        if held:
            row = self.draw.choice(held)
            self.bench.store.skip("scripted", row.partition, row.blocker.event_id, "known bad", "ops")

    def judge(self) -> None:
        """At any instant: each chain a prefix, each event once, or a dead letter; nothing claimed that is not there."""
        data, dead = self.bench.data(), set(self.bench.dead())
        snapshot = self.bench.snapshot()
        assert snapshot.totals.dead_letters == len(self.bench.dead()) == len(dead)
        frontier = snapshot.scope.frontier
        for name, events in self.universe.items():
            have = data.get(name, [])
            assert len(set(have)) == len(have), f"{name}: repeated"
            assert not dead.intersection(have), f"{name}: delivered, and a dead letter"
            alive = [event for event, _ in events if event not in dead]
            assert have == alive[: len(have)], f"{name}: a hole, or another order"
            if frontier is not None:
                missing = [
                    event for event in through(events, frontier) if event not in dead and event not in have
                ]
                assert not missing, f"{missing} are missing, {frontier} is claimed"

    def finish(self) -> None:
        """Everybody comes to an end; then runs, and an operator who skips what is held, until every chain has ended."""
        for one in self.going:
            one.close()
        for _ in range(200):
            self.new_run().settle_all()
            self.judge()
            rows = self.bench.snapshot().chains
            if all(row.state is ChainState.ENDED for row in rows):
                break
            self.skip()
            self.bench.clock.advance(100.0)
        else:
            pytest.fail("it does not come to an end")
        snapshot = self.bench.snapshot()
        dead, data = set(self.bench.dead()), self.bench.data()
        for name, events in self.universe.items():
            assert data.get(name, []) == [event for event, _ in events if event not in dead]
        assert snapshot.totals.events == sum(map(len, self.universe.values()))
        assert snapshot.scope.frontier is not None
        assert snapshot.scope.frontier.position == 10**6
        assert all(self.bench.store.receipts(row.chain) == {} for row in snapshot.chains)
        assert list(self.bench.store.violations("scripted")) == []
        assert self.bench.disk.begun == self.bench.disk.ended


@pytest.mark.parametrize("seed", range(12))
def test_any_history_keeps_every_promise(bench, seed):
    history = History(bench, seed)
    for _ in range(120):
        history.act()
        history.judge()
    history.finish()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_many_histories_keep_every_promise(bench, seed):
    test_any_history_keeps_every_promise(bench, seed)
