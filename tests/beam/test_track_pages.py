"""`TrackPartitions(store)` on Beam's local runner: pages and what the pipeline says of them become durable progress."""

from contextlib import closing
from typing import Any

import apache_beam as beam
import pytest
from emitted_pages import Deliver, Emit
from scripted_universe import SCOPE

from gapless import CombineFrontier, PublishFrontier, TrackPartitions
from gapless.audit.auditing import audit
from gapless.plan import plan_run
from gapless.store import open_store
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
