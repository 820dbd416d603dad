"""A chain's number means nothing beyond its store, and a plan nothing for another source: such are refused, and move nobody's
frontier."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from gapless import (
    CombineFrontier,
    ParquetEffect,
    PlanPartitions,
    PublishFrontier,
    ReadPages,
    TrackPartitions,
)
from gapless.emitted_page import Outcome
from gapless.errors import ConfigurationError
from gapless.outcomes import delivered
from gapless.plan import plan_run
from gapless.progress import Bound
from gapless.settle_pages import SettleInPlace, SettlePages
from gapless.store import open_store
from gapless.store_ref import StoreRef
from gapless.testing import ScriptedPage, ScriptedSource
from gapless.updates import PlanRequest


def source_of(scope: str, partition: str, bound: int = 9) -> ScriptedSource:
    page = ScriptedPage([(f"{partition}-1", 1)], certificate=Bound.through(bound))
    return ScriptedSource({partition: {None: page}}, scope=scope)


MINE, OTHERS = source_of("mine", "eu"), source_of("others", "us")


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    """Another store, in which somebody else's chain has the number that ours has in our own."""
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    with closing(open_store(url, create=True)) as store:
        (task,) = plan_run(OTHERS, store, PlanRequest("others", "run-of-others", "test")).tasks
        store.take(task.chain, task.fencing_token)
    return url


def nothing_has_moved(url: str, scope: str) -> bool:
    with closing(open_store(url)) as store:
        snapshot = store.snapshot(scope)
        return snapshot.scope.frontier is None and [row.sequence for row in snapshot.chains] == [0]


def in_the_pipeline(pipeline: beam.Pipeline, planned: str, read: str, tracked: str, reads: object) -> None:
    pages = pipeline | PlanPartitions(MINE, planned) | ReadPages(reads, read)
    outcomes = pages | beam.Map(delivered).with_output_types(Outcome)
    _ = (pages, outcomes) | TrackPartitions(tracked) | CombineFrontier() | PublishFrontier(planned)


def refused(build: Callable[[beam.Pipeline], object], message: str) -> None:
    with pytest.raises(Exception, match=message), beam.Pipeline(FnApiRunner()) as pipeline:
        build(pipeline)


def test_pages_of_another_store_settle_nothing(sqlite_url: str, elsewhere: str) -> None:
    refused(lambda p: in_the_pipeline(p, sqlite_url, sqlite_url, elsewhere, MINE), "planned in another store")
    assert nothing_has_moved(elsewhere, "others")


def test_a_reader_on_another_store_takes_no_chain(sqlite_url: str, elsewhere: str) -> None:
    refused(lambda p: in_the_pipeline(p, sqlite_url, elsewhere, elsewhere, MINE), "planned in another store")
    assert nothing_has_moved(elsewhere, "others")


def test_settling_in_place_on_another_store_takes_no_chain(sqlite_url: str, elsewhere: str) -> None:
    settle = SettleInPlace(MINE, ParquetEffect("out"), StoreRef(elsewhere))
    refused(
        lambda p: (p | PlanPartitions(MINE, sqlite_url)).tasks | SettlePages(settle),
        "planned in another store",
    )
    assert nothing_has_moved(elsewhere, "others")


def test_a_plan_is_read_from_its_own_source(sqlite_url: str) -> None:
    settle = SettleInPlace(OTHERS, ParquetEffect("out"), StoreRef(sqlite_url))
    for build in (
        lambda p: in_the_pipeline(p, sqlite_url, sqlite_url, sqlite_url, OTHERS),
        lambda p: (p | PlanPartitions(MINE, sqlite_url)).tasks | SettlePages(settle),
    ):
        with pytest.raises(ConfigurationError, match="planned for another source"):
            build(beam.Pipeline(FnApiRunner()))


def test_a_source_of_the_same_name_is_not_the_same_source(sqlite_url: str) -> None:
    other = Ranged({"eu": {None: ScriptedPage()}}, scope="mine")
    with pytest.raises(ConfigurationError, match="planned for another source"):
        in_the_pipeline(beam.Pipeline(FnApiRunner()), sqlite_url, sqlite_url, sqlite_url, other)


class Ranged(ScriptedSource):
    """The same scope's name, and something else behind it."""

    def identity(self) -> dict[str, object]:
        return {**super().identity(), "type": "another"}


def test_tasks_that_come_without_their_plan_are_read_from_their_own_source_all_the_same(
    sqlite_url: str,
) -> None:
    with closing(open_store(sqlite_url, create=True)) as store:
        tasks = plan_run(MINE, store, PlanRequest("mine", "run-1", "test")).tasks
    settle = SettleInPlace(OTHERS, ParquetEffect("out"), StoreRef(sqlite_url))
    refused(lambda p: p | beam.Create(tasks) | SettlePages(settle), "planned for another source")
    assert nothing_has_moved(sqlite_url, "mine")


def test_pages_of_another_scope_in_another_store_may_help_to_settle(tmp_path: Path, sqlite_url: str) -> None:
    other = f"sqlite:///{tmp_path}/other.db"
    with beam.Pipeline(FnApiRunner()) as pipeline:
        mine = pipeline | PlanPartitions(MINE, sqlite_url) | ReadPages(MINE, sqlite_url)
        others = (
            pipeline
            | "Plan others" >> PlanPartitions(OTHERS, other)
            | "Read others" >> ReadPages(OTHERS, other)
        )
        by_kind = {
            "mine": mine | beam.Map(lambda page: (page.is_page, page)),
            "others": others | "By kind" >> beam.Map(lambda page: (page.is_page, len(page.ids))),
        }
        said = by_kind | beam.CoGroupByKey() | beam.FlatMap(lambda both: map(delivered, both[1]["mine"]))
        _ = (mine, said) | TrackPartitions(sqlite_url) | CombineFrontier() | PublishFrontier(sqlite_url)
    with closing(open_store(sqlite_url)) as store:
        snapshot = store.snapshot("mine")
    assert snapshot.scope.frontier == Bound.through(9)
    assert snapshot.run is not None
    assert snapshot.run.state == "finished"
