"""How a run ends in its row: by its pipeline, by whoever started it, and never too early."""

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from scripted_universe import SCOPE

from gapless import CombineFrontier, CompleteThrough, PlanPartitions, PublishFrontier, StoreRef
from gapless.errors import SourceUnavailable
from gapless.store import open_store
from gapless_pipelines.backfill import Backfill, run_backfill
from gapless_pipelines.options import EngineOptions


def state_of(scene):
    return scene.snapshot().run.state


def run_pipeline(*transforms):
    with beam.Pipeline(FnApiRunner()) as pipeline:
        for number, transform in enumerate(transforms):
            _ = pipeline | f"{number}" >> transform


def test_a_users_own_batch_ends_its_run(scene):
    run_pipeline(CompleteThrough(scene.source, scene.effect, scene.url))
    assert state_of(scene) == "finished"


def test_a_bundle_that_runs_again_ends_it_once_more_and_nothing_else(scene):
    with beam.Pipeline(FnApiRunner(bundle_repeat=1)) as pipeline:
        _ = pipeline | CompleteThrough(scene.source, scene.effect, scene.url)
    assert state_of(scene) == "finished"


class Planned(beam.PTransform):
    """Only a plan and its publishing; nothing is read."""

    def __init__(self, scene, run_id, publish):
        super().__init__()
        self._scene = scene
        self._run_id = run_id
        self._publish = publish

    def expand(self, pbegin):
        planned = pbegin | PlanPartitions(self._scene.source, self._scene.url, run_id=self._run_id)
        return planned.progress | CombineFrontier() | self._publish


def test_the_run_is_found_upstream_and_only_there(scene):
    run_pipeline(
        Planned(scene, "one", PublishFrontier(scene.url)),
        Planned(scene, "two", PublishFrontier(scene.url, run_id="one")),
    )
    with open_store(scene.url) as store:
        assert {run_id: store.heartbeat(run_id) for run_id in ("one", "two")} == {"one": False, "two": True}


def test_a_run_that_was_stopped_stays_so_when_its_pipeline_ends_after_all(scene):
    run_pipeline(Planned(scene, "one", PublishFrontier(scene.url)))
    with scene.open() as store:
        store.end_run("one", "stopped")
    run_pipeline(Planned(scene, "one", PublishFrontier(scene.url)))
    assert state_of(scene) == "stopped"


def backfill_of(scene, engine):
    return Backfill(scene.source, scene.effect, StoreRef(scene.url), engine)


LOCAL = EngineOptions("local", ("--runner=FnApiRunner",), 2)
ELSEWHERE = EngineOptions("FnApiRunner", ("--runner=FnApiRunner",), 1)
both = pytest.mark.parametrize("engine", [LOCAL, ELSEWHERE], ids=["local", "as if elsewhere"])


@both
def test_while_a_run_reads_it_is_running_however_many_pipelines_it_takes(scene, engine):
    states = set()

    def look(progress):
        with scene.open() as store:
            states.add(store.snapshot(SCOPE).run.state)

    result = run_backfill(backfill_of(scene, engine), on_progress=look)
    assert result.snapshot.run.state == state_of(scene) == "finished"
    assert states <= {"running"}


def test_a_local_run_that_is_asked_to_stop_is_stopped(scene):
    running = []

    def stop(progress):
        if progress.sequence > 0:
            running[0].stop()

    result = run_backfill(
        backfill_of(scene, LOCAL), on_progress=stop, on_start=lambda run, plan: running.append(run)
    )
    assert (state_of(scene), result.complete) == ("stopped", False)


@both
def test_a_run_that_is_interrupted_is_stopped(scene, engine):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_backfill(backfill_of(scene, engine), on_reading=interrupt)
    assert state_of(scene) == "stopped"


@both
def test_a_run_that_fails_has_failed(scene, engine):
    def fail():
        raise SourceUnavailable("whatever it is")

    with pytest.raises(SourceUnavailable):
        run_backfill(backfill_of(scene, engine), on_reading=fail)
    assert state_of(scene) == "failed"
