"""`TrackPartitions(store)` on Beam's local runner: pages and what the pipeline says of them become durable progress."""

from contextlib import closing
from typing import Any

import apache_beam as beam
import pytest
from emitted_pages import Deliver, Emit
from scripted_universe import SCOPE

import gapless
from gapless import CombineFrontier, PlanPartitions, PublishFrontier, ReadPages, TrackPartitions
from gapless.audit.auditing import audit
from gapless.emitted_page import EmittedPage, Outcome
from gapless.errors import ConfigurationError
from gapless.plan import plan_run
from gapless.store import open_store
from gapless.testing import ScriptedPage, ScriptedSource
from gapless.updates import PlanRequest


def settle(scene: Any, options: Any, step: Any = None) -> None:
    with closing(open_store(scene.url, create=True)) as store:
        plan = plan_run(scene.source, store, PlanRequest(SCOPE, "run-1", "test"))
        for task in plan.tasks:
            store.take(task.chain, task.fencing_token)
    with beam.Pipeline("FnApiRunner", options=options) as pipeline:
        pages = pipeline | beam.Create(plan.tasks, reshuffle=False) | "Read" >> beam.ParDo(Emit(scene.source))
        outcomes = pages | "Apply" >> (step or beam.ParDo(Deliver()))
        (pages, outcomes) | TrackPartitions(scene.url) | CombineFrontier() | PublishFrontier(scene.url)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_settled_pages_are_promoted_and_published(scene: Any, options: Any, one_by_one: bool) -> None:
    settle(scene, options, beam.ParDo(Deliver(one_by_one)))
    now = scene.snapshot()
    assert now.scope.frontier == scene.end
    assert {row.state.value for row in now.chains} == {"ended"}
    assert sum(row.events for row in now.chains) == sum(map(len, scene.universe.values()))
    with closing(scene.open()) as store:
        assert audit(store, SCOPE).clean


def test_the_data_set_of_a_scope_settled_in_the_pipeline_has_no_files_and_its_history_is_whole(
    scene: Any, options: Any
) -> None:
    settle(scene, options)
    with gapless.Progress(scene.url) as progress:
        scope = progress.scope(SCOPE)
        assert scope.files() == []
        assert scope.blockers() == []
        told = scope.history(all_partitions=True)
        assert len(told.bounds) == len(scene.universe)
        assert scope.frontier is not None


@pytest.mark.parametrize("given", ["no store", "one collection", "windowed"])
def test_what_cannot_be_tracked_is_refused_when_the_pipeline_is_built(given: str) -> None:
    pipeline = beam.Pipeline()
    pages = pipeline | "Pages" >> beam.Create([], reshuffle=False).with_output_types(EmittedPage)
    outcomes = pages | "Outcomes" >> beam.ParDo(Deliver()).with_output_types(Outcome)
    windowed = outcomes | beam.WindowInto(beam.window.FixedWindows(60))
    told, store = {
        "no store": ((pages, outcomes), None),
        "one collection": (pages, "sqlite:///nowhere.db"),
        "windowed": ((pages, windowed), "sqlite:///nowhere.db"),
    }[given]
    with pytest.raises(ConfigurationError):
        told | TrackPartitions(store)


def test_what_has_a_state_stands_behind_a_shuffle_of_its_own() -> None:
    """Fused with the readers, it would keep them from reading in parallel."""
    pipeline = beam.Pipeline()
    pages = pipeline | "Pages" >> beam.Create([], reshuffle=False).with_output_types(EmittedPage)
    outcomes = pages | "Outcomes" >> beam.ParDo(Deliver()).with_output_types(Outcome)
    (pages, outcomes) | TrackPartitions("sqlite:///nowhere.db")
    transforms = pipeline.to_runner_api().components.transforms.values()
    (track,) = (each for each in transforms if each.unique_name.endswith("TrackPartitions/Track"))
    (given,) = track.inputs.values()
    producers = [each.unique_name for each in transforms if given in each.outputs.values()]
    assert any("TrackPartitions/Apart" in name for name in producers)


@pytest.mark.parametrize("given", ["a plan", "tasks to read"])
def test_what_is_no_collection_of_pages_is_refused_by_a_clear_error(given: str) -> None:
    pipeline = beam.Pipeline()
    source, store = ScriptedSource({"p0": {None: ScriptedPage()}}), "sqlite:///nowhere.db"
    plan = pipeline | PlanPartitions(source, store)
    outcomes = pipeline | "Outcomes" >> beam.Create([], reshuffle=False).with_output_types(Outcome)
    with pytest.raises(ConfigurationError, match="not Planned" if given == "a plan" else "a whole plan"):
        _ = (
            (plan, outcomes) | TrackPartitions(store)
            if given == "a plan"
            else plan.tasks | ReadPages(source, store)
        )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([None], "holds outcomes, not NoneType"),
        ([("key", Outcome("s", 1, "a", None, number=0))], "holds outcomes, not tuple"),
        ([Outcome("s", 1, "a", ("e",))], "names no number"),
    ],
)
def test_what_is_no_outcome_of_a_page_is_refused_by_a_clear_error(
    said: list[Any], message: str, sqlite_url: str
) -> None:
    pipeline = beam.Pipeline("FnApiRunner")
    pages = pipeline | "Pages" >> beam.Create([], reshuffle=False).with_output_types(EmittedPage)
    outcomes = pipeline | "Outcomes" >> beam.Create(said, reshuffle=False).with_output_types(Any)
    _ = (pages, outcomes) | TrackPartitions(sqlite_url)
    with pytest.raises((TypeError, ValueError), match=message):
        pipeline.run()
