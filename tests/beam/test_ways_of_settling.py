"""The same recorded source, settled in place and in the pipeline, ends in the same durable rows, bounds and frontier."""

from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from recording_effect import Recorded, RecordingDeadLetters, RecordingEffect
from scripted_universe import SCOPE, source_of, universe
from tracked_chains import TrackedChains

from gapless import CompleteThrough, ParquetEffect, Progress
from gapless.audit.auditing import audit
from gapless.emitted_page import EmittedPage, Outcome
from gapless.outcomes import dead_lettered, delivered, part
from gapless.paging.readahead import FeedPool
from gapless.plan import plan_run
from gapless.settling.publisher import Publisher
from gapless.settling.retrying import RetryPolicy
from gapless.settling.settle import settle_chain
from gapless.settling.worker import Slice, Tally, Worker
from gapless.store import Store, open_store
from gapless.store.records import ChainRow
from gapless.testing import ManualClock
from gapless.testing.keyed_driver import BundleLost
from gapless.updates import PlanRequest

THERE = universe(partitions=4, pages=5, events=4)
FAILING = {f"p{n}-{k}" for n in range(4) for k in (3, 8, 9)}


def in_place(url: str) -> None:
    """One run, in which what fails for good becomes a dead letter."""
    source = source_of(THERE, events=4)
    disk = Recorded()
    with closing(open_store(url, create=True)) as store:
        plan = plan_run(source, store, PlanRequest(SCOPE, "run-1", "test"))
        feeds = FeedPool(source.open)
        worker = Worker(
            source=source,
            effect=RecordingEffect(disk, failing=dict.fromkeys(FAILING)),
            target_rows=7,
            store=store,
            feeds=feeds,
            publisher=Publisher(store, SCOPE, every=0.0),
            dead_letters=RecordingDeadLetters(disk),
            retry=RetryPolicy(attempts=1),
            clock=ManualClock(),
        )
        for task in plan.tasks:
            list(settle_chain(worker, task, lambda: True, Slice(), Tally()))
        feeds.close()
        worker.publisher.publish()


def in_the_pipeline(url: str, seed: int) -> None:
    """Shuffled, repeated, with lost bundles and workers, and two readers of everything."""
    random = Random(seed)
    chains = TrackedChains(url, source_of(THERE, events=4))
    net: list[EmittedPage | Outcome] = []
    for reader in ("one", "two"):
        for partition in THERE:
            pages = chains.read(partition, reader)
            net += pages
            for page in pages:
                net += said_of(page, random)
    net += random.sample(net, len(net) // 4)
    random.shuffle(net)
    while net:
        size = random.randint(1, 9)
        some, net = net[:size], net[size:]
        try:
            chains.bundle(*some, crash_after=random.randint(0, size) if random.random() < 0.25 else None)
        except BundleLost:
            net += some
        if random.random() < 0.1:
            chains.driver.lose_worker()
    chains.driver.fire(end_of_window=True)
    assert chains.driver.state_entries() == 0
    Publisher(chains.store, SCOPE).publish()
    chains.close()


def said_of(page: EmittedPage, random: Random) -> list[Outcome]:
    dead = {event: "no" for event in page.ids if event in FAILING}
    well = [event for event in page.ids if event not in dead]
    if random.random() < 0.3:
        return [delivered(page, but=dead)]
    if random.random() < 0.5:
        return [*(delivered(page, [event]) for event in well), dead_lettered(page, dead)]
    return [
        part(delivered(page, well), 0, 2),
        part(delivered(page, but=dead), 1, 2),
        dead_lettered(page, dead),
    ]


def durable(row: ChainRow) -> tuple[Any, ...]:
    """Of a chain's row what both ways have to agree in: all but when, and in how many steps."""
    return (
        row.partition,
        row.state,
        row.fencing_token,
        row.sequence,
        row.page_token,
        row.bound,
        row.read_to,
        row.basis,
        row.events,
        row.dead_letters,
        row.blocker,
    )


def outcome(store: Store) -> tuple[Any, ...]:
    snapshot = store.snapshot(SCOPE)
    letters = sorted(
        (one.partition, one.event_id, one.position, one.sequence) for one in store.dead_letters(SCOPE)
    )
    return (
        snapshot.scope.frontier,
        snapshot.scope.basis,
        sorted(map(durable, snapshot.chains), key=lambda row: str(row[0])),
        letters,
        list(store.violations(SCOPE)),
    )


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_end_alike(tmp_path: Path, seed: int) -> None:
    one, other = f"sqlite:///{tmp_path}/in_place.db", f"sqlite:///{tmp_path}/in_the_pipeline.db"
    in_place(one)
    in_the_pipeline(other, seed)
    with closing(open_store(one)) as first, closing(open_store(other)) as second:
        assert outcome(first) == outcome(second)
        assert first.snapshot(SCOPE).scope.frontier is not None
        assert audit(second, SCOPE).clean


def test_what_the_pipeline_delivered_of_an_open_page_is_in_the_files_when_its_page_is_settled_in_place(
    tmp_path: Path, sqlite_url: str
) -> None:
    """Whoever reads the manifest finds every event of the pages that it is of: one that went elsewhere before is given again."""
    source = source_of(universe(partitions=1, pages=2, events=3), events=3)
    chains = TrackedChains(sqlite_url, source)
    first, second = chains.read("p0", "r")
    chains.bundle(first, second, delivered(first, first.ids[:2], but={first.ids[1]: "no"}), delivered(second))
    chains.driver.fire(end_of_window=True)
    assert len(chains.store.receipts(first.task.chain)) == 5
    effect = ParquetEffect(str(tmp_path / "out"))
    with beam.Pipeline(FnApiRunner()) as pipeline:
        _ = pipeline | CompleteThrough(source, effect, sqlite_url, dead_letters=None)
    with Progress(sqlite_url) as progress:
        files = progress.scope(SCOPE).files()
    ids = [event for file in files for event in pq.read_table(file.path).column("_event_id").to_pylist()]
    assert sorted(ids) == sorted({*first.ids, *second.ids} - {first.ids[1]})
    assert not chains.store.receipts(first.task.chain)
    assert audit(chains.store, SCOPE).clean
    chains.close()
