"""Each transform by itself: what goes in, in whatever order and however often, and what comes out."""

import random
from contextlib import closing
from dataclasses import replace

import apache_beam as beam
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing import test_stream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from scripted_universe import source_of

from gapless import (
    CombineFrontier,
    PlanPartitions,
    PublishFrontier,
    SettleInPlace,
    SettlePages,
    StoreRef,
    TrackPartitions,
)
from gapless.errors import ConfigurationError, SourceUnavailable
from gapless.plan import plan_run
from gapless.progress import Bound, ChainState, IntegerDomain
from gapless.progress_merge import FrontierHint
from gapless.store import open_store
from gapless.updates import FrontierUpdate, PartitionProgress, PlanRequest, ReadTask

DOMAIN = IntegerDomain()


def pipeline(options=None) -> beam.Pipeline:
    return beam.Pipeline(FnApiRunner(), options=options)


def progress(chain: int, sequence: int, bound: int | None, **changes) -> PartitionProgress:
    plain = PartitionProgress(
        "orders", DOMAIN, chain, f"p{chain}", 1, 1, 3, True, ChainState.OPEN, 1, sequence, 10 * sequence,
        None if bound is None else Bound.through(bound), "certified",
    )  # fmt: skip
    return replace(plain, **changes)


# --- PlanPartitions ---


def test_a_plan_names_every_chain_to_read_under_the_runs_number(scene, options):
    with pipeline(options) as p:
        planned = p | PlanPartitions(scene.source, scene.url, run_id="one")

        def tasks(elements: list[ReadTask]) -> None:
            assert sorted(task.partition for task in elements) == sorted(scene.universe)
            assert {(t.fencing_token, t.epoch, t.members, t.member, t.run_id) for t in elements} == {
                (1, 1, 10, True, "one")
            }

        def standing(elements: list[PartitionProgress]) -> None:
            assert len(elements) == 10
            assert {(one.sequence, one.bound) for one in elements} == {(0, None)}

        assert_that(planned.tasks, tasks, label="tasks")
        assert_that(planned.progress, standing, label="progress")


def test_a_plan_that_is_run_again_by_the_engine_gets_the_same_number(scene):
    for _ in range(2):
        with beam.Pipeline(FnApiRunner(bundle_repeat=1)) as p:
            planned = p | PlanPartitions(scene.source, scene.url, run_id="one")
            assert_that(planned.tasks | beam.Map(lambda task: task.fencing_token), equal_to([1] * 10))


def test_every_plan_built_anew_is_another_run(scene):
    numbers = []
    for _ in range(2):
        with pipeline() as p:
            _ = p | PlanPartitions(scene.source, scene.url)
        with closing(open_store(scene.url)) as store:
            numbers.append(store.snapshot("scripted").run.number)
    assert numbers == [1, 2]


def test_a_list_that_cannot_be_read_writes_nothing(scene):
    source = source_of(scene.universe, assignments=[SourceUnavailable("HTTP 503")])
    with pytest.raises(RuntimeError, match="HTTP 503"), pipeline() as p:
        _ = p | PlanPartitions(source, scene.url)
    with closing(open_store(scene.url)) as store:
        assert store.scopes() == []


# --- SettlePages ---


def test_pages_are_read_for_the_tasks_that_are_given_and_for_no_others(scene, options):
    with closing(open_store(scene.url, create=True)) as store:
        plan = plan_run(scene.source, store, PlanRequest("scripted", "one", "beam"))
    some = [task for task in plan.tasks if task.partition in ("p2", "p5")]
    settle = SettleInPlace(scene.source, scene.effect, StoreRef(scene.url))
    with pipeline(options) as p:
        read = p | beam.Create(some).with_output_types(ReadTask) | SettlePages(settle)
        assert_that(
            read.progress
            | beam.Filter(lambda one: one.state is ChainState.ENDED)
            | beam.Map(lambda one: one.partition),
            equal_to(["p2", "p5"]),
        )
    now = scene.oracle.look()
    assert {chain.partition for chain in now.chains.values() if chain.sequence} == {"p2", "p5"}
    assert now.frontier is None


# --- TrackPartitions ---


@pytest.mark.parametrize("seed", range(3))
def test_only_what_moves_a_partition_comes_out_and_late_and_repeated_elements_are_counted(options, seed):
    elements = [progress(chain, n, 10 * n) for chain in (1, 2, 3) for n in range(5)] * 2
    random.Random(seed).shuffle(elements)
    with pipeline(options) as p:
        tracked = p | beam.Create(elements).with_output_types(PartitionProgress) | TrackPartitions()

        def each_once_and_the_last_one(out: list[PartitionProgress]) -> None:
            for chain in (1, 2, 3):
                steps = [one.sequence for one in out if one.chain == chain]
                assert len(steps) == len(set(steps))
                assert max(steps) == 4

        assert_that(tracked, each_once_and_the_last_one)
    found = p.result.metrics().query(MetricsFilter().with_name("late_progress"))["counters"]
    assert sum(counter.committed for counter in found) >= 15


def test_a_chain_of_another_lineage_or_generation_is_tracked_by_itself():
    elements = [progress(1, 4, 40), progress(2, 1, 10, partition="p1", lineage=2)]
    with pipeline() as p:
        tracked = p | beam.Create(elements).with_output_types(PartitionProgress) | TrackPartitions()
        assert_that(tracked, equal_to(elements))


# --- CombineFrontier ---


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_gives_one_hint_the_minimum_over_the_full_membership(options, seed):
    elements = [progress(chain, n, 10 * n + chain) for chain in (1, 2, 3) for n in range(1, 5)]
    random.Random(seed).shuffle(elements)
    with pipeline(options) as p:
        hints = p | beam.Create(elements).with_output_types(PartitionProgress) | CombineFrontier()
        assert_that(hints, equal_to([FrontierHint("orders", DOMAIN, 1, Bound.through(41), 0)]))


def test_members_not_heard_of_withhold_and_are_counted():
    with pipeline() as p:
        hints = p | beam.Create([progress(1, 1, 10)]).with_output_types(PartitionProgress) | CombineFrontier()
        assert_that(hints, equal_to([FrontierHint("orders", DOMAIN, 1, None, 2)]))


def test_nothing_at_all_is_no_hint():
    with pipeline() as p:
        hints = p | beam.Create([]).with_output_types(PartitionProgress) | CombineFrontier()
        assert_that(hints, equal_to([]))


def test_in_a_stream_the_minimum_rises_pane_by_pane():
    stream = test_stream.TestStream(coder=beam.coders.registry.get_coder(PartitionProgress))
    steps = [
        progress(1, 1, 10),
        progress(2, 1, 12),
        progress(3, 1, 14),
        progress(1, 2, 20),
        progress(2, 2, 13),
    ]
    for step in steps:
        stream = stream.add_elements([TimestampedValue(step, 0)])
    with beam.Pipeline(BundleBasedDirectRunner(), options=PipelineOptions(["--streaming"])) as p:
        hints = p | stream.advance_watermark_to_infinity() | CombineFrontier()

        def rising(out: list[FrontierHint]) -> None:
            bounds = [hint.bound for hint in out if hint.bound is not None]
            assert bounds == sorted(bounds)
            assert bounds[0] == Bound.through(10)
            assert bounds[-1] == Bound.through(13)

        assert_that(hints, rising)


# --- PublishFrontier ---


def test_a_hint_decides_nothing_what_is_published_stands_in_the_rows(scene):
    """The hint claims more than is durable."""
    with closing(open_store(scene.url, create=True)) as store:
        plan_run(scene.source, store, PlanRequest("scripted", "one", "beam"))
    hint = FrontierHint("scripted", DOMAIN, 1, Bound.through(999), 0)
    with pipeline() as p:
        published = p | beam.Create([hint]).with_output_types(FrontierHint) | PublishFrontier(scene.url)

        def withheld(out: list[FrontierUpdate]) -> None:
            (update,) = out
            assert (update.bound, update.withheld) == (None, "not_started")
            assert len(update.blockers) == 10

        assert_that(published, withheld)
    with closing(open_store(scene.url)) as store:
        assert store.scope("scripted").frontier is None


def test_the_parts_make_the_whole(scene, options):
    """As a user puts them together, and not as the composite does."""
    settle = SettleInPlace(scene.source, scene.effect, StoreRef(scene.url))
    with pipeline(options) as p:
        planned = p | PlanPartitions(scene.source, scene.url)
        read = planned.tasks | SettlePages(settle)
        moved = (planned.progress, read.progress) | beam.Flatten() | TrackPartitions()
        published = moved | CombineFrontier() | PublishFrontier(scene.url)
        assert_that(published | beam.Map(lambda update: update.bound), equal_to([scene.end]))
    scene.judge_the_end()


def test_a_store_ref_keeps_its_password_out_of_what_travels(scene):
    with pytest.raises(ConfigurationError, match="password"):
        PublishFrontier("postgresql://me:secret@host/db")
