"""A bench for settling: a scripted source, a recording effect, a manual clock, a real store, and as many workers as wanted."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from recording_effect import Recorded, RecordingDeadLetters, RecordingEffect

from gapless.paging.readahead import FeedPool
from gapless.plan import plan_run
from gapless.progress import Bound
from gapless.settling.publisher import Publisher
from gapless.settling.retrying import RetryPolicy
from gapless.settling.settle import settle_chain
from gapless.settling.worker import Slice, Tally, Worker
from gapless.store import Store, open_store
from gapless.store.records import ChainRow, Snapshot
from gapless.testing import ManualClock
from gapless.updates import PlanRequest

PLENTY = 1000
TO_THE_END = Slice()


class Run:
    """One run of a source by one worker, as a process has it: its own store, feeds and effect session.

    `local`: failures are tried again by a later call, as in a local run; else within the call. `twin_of` another run."""

    def __init__(self, bench: "Bench", source: Any, twin_of: "Run | None" = None, **options: Any) -> None:
        self.bench = bench
        self.source = source
        self.store = options.pop("store", None) or bench.open()
        policy = options.pop("policy", None)
        self.plan = (
            plan_run(source, self.store, bench.request(source), policy=policy)
            if twin_of is None
            else twin_of.plan
        )
        self.feeds = FeedPool(source.open)
        effect = options.pop("effect", bench.effect)
        self.worker = Worker(
            source=source,
            effect=effect,
            target_rows=options.pop("target_rows", PLENTY),
            store=options.pop("settling_store", self.store),
            feeds=self.feeds,
            publisher=Publisher(self.store, source.scope, clock=bench.clock, every=0.0),
            retry=options.pop("retry", RetryPolicy(attempts=3)),
            called_again=options.pop("local", False),
            clock=bench.clock,
            **options,
        )
        self.tally = Tally()
        bench.stack.callback(self.feeds.close)

    def stepping(
        self, partition: str, limit: Slice = TO_THE_END, claim: Callable[[], bool] = lambda: True
    ) -> Iterator[Any]:
        """The generator itself: it stops after each promotion."""
        task = next(task for task in self.plan.tasks if task.partition == partition)
        return settle_chain(self.worker, task, claim, limit, self.tally)

    def settle(self, partition: str, limit: Slice = TO_THE_END) -> list[Any]:
        """One call for one chain, to its end; what it emitted."""
        return list(self.stepping(partition, limit))

    def settle_all(self) -> "Run":
        """Every chain of the plan to its end, then publish, as every run does."""
        for task in self.plan.tasks:
            self.settle(task.partition)
        self.worker.publisher.publish()
        return self


class Bench:
    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = ManualClock()
        self.disk = Recorded()
        self.effect = RecordingEffect(self.disk)
        self.letters = RecordingDeadLetters(self.disk)
        self.stack = ExitStack()
        self.store = self.open(create=True)
        self._runs = 0

    def open(self, create: bool = False) -> Store:
        return self.stack.enter_context(closing(open_store(self.url, create=create, clock=self.clock)))

    def request(self, source: Any) -> PlanRequest:
        self._runs += 1
        return PlanRequest(source.scope, f"run-{self._runs}", "test")

    def run(self, source: Any, **options: Any) -> Run:
        """Plan a run, the newest."""
        return Run(self, source, **options)

    def snapshot(self, scope: str = "scripted") -> Snapshot:
        return self.store.snapshot(scope)

    def chain(self, partition: str, scope: str = "scripted") -> ChainRow:
        return next(row for row in self.snapshot(scope).chains if row.partition == partition)

    def frontier(self, scope: str = "scripted") -> Bound | None:
        return self.store.scope(scope).frontier

    def data(self, scope: str = "scripted") -> dict[str, list[str]]:
        """The data set: partition -> event ids, through the manifest alone, and as the manifest says."""
        found: dict[str, list[str]] = {}
        for row in self.store.promotions(scope):
            events = self.disk.durable[row.path]
            assert len(events) == row.rows
            assert all(row.sequence <= sequence < row.sequence + row.pages for sequence, _ in events)
            found.setdefault(row.partition, []).extend(event for _, event in events)
        return found

    def dead(self, scope: str = "scripted") -> list[str]:
        return [letter.event_id for letter in self.store.dead_letters(scope)]


@pytest.fixture
def bench(sqlite_url: str) -> Iterator[Bench]:
    """On SQLite."""
    bench = Bench(sqlite_url)
    with bench.stack:
        yield bench


@pytest.fixture
def each_bench(store_url: str) -> Iterator[Bench]:
    """On each kind of store in turn."""
    bench = Bench(store_url)
    with bench.stack:
        yield bench
