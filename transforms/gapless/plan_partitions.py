"""`PlanPartitions`: freeze or observe the membership, number the run, and name the chains to read."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import apache_beam as beam
from apache_beam import pvalue
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.typehints.decorators import IOTypeHints

from gapless import state_format
from gapless.paging.source import Source
from gapless.plan import plan_run
from gapless.settling.local_run import current_run
from gapless.store_ref import StoreRef, store_ref
from gapless.updates import PartitionProgress, PlanRequest, ReadTask

PROGRESS = "progress"


class Planned(NamedTuple):
    """`tasks`: chains to read. `progress`: where every member stands before anything is read."""

    tasks: PCollection[ReadTask]
    progress: PCollection[PartitionProgress]


class PlanPartitions(beam.PTransform[PBegin, Planned]):
    """Reads the source's list once, checks the scope against the store, and numbers the run.

    `run_id` is made where the pipeline is built, so that a bundle run again gets the number it had; a pipeline whose graph
    is run again later (a template) must be given a new one each time. `observe=False` goes by the durable rows alone."""

    def __init__(
        self,
        source: Source,
        store: "str | StoreRef",
        run_id: str | None = None,
        engine: str = "beam",
        observe: bool = True,
    ) -> None:
        super().__init__()
        self._source = source
        self._store = store_ref(store)
        self._request = PlanRequest(source.scope, run_id or uuid4().hex, engine, observe)

    def default_type_hints(self) -> IOTypeHints:
        # Beam reads them from `expand` and warns at a result that is a tuple of collections; each has its own type.
        return IOTypeHints.empty()

    def expand(self, pbegin: PBegin) -> Planned:
        planned = (
            pbegin
            | beam.Create([self._request]).with_output_types(PlanRequest)
            | "Plan"
            >> beam.ParDo(_Plan(self._source, self._store))
            .with_output_types(ReadTask)
            .with_outputs(PROGRESS, main="tasks")
        )
        progress: PCollection[PartitionProgress] = planned[PROGRESS]
        progress.element_type = PartitionProgress
        # Spreads the chains over the workers: without it they are fused into the one bundle of the plan.
        return Planned(planned.tasks | "Spread" >> beam.Reshuffle(), progress)


class _Plan(beam.DoFn):
    def __init__(self, source: Source, store: StoreRef) -> None:
        self._source = source
        self._store = store

    def process(self, element: PlanRequest) -> Iterator[Any]:
        with self._store.open(create=True, patient=True) as store:
            plan = plan_run(self._source, store, element)
        run = current_run(element.run_id)
        for task in plan.tasks:
            if run is None or run.due is None or task.chain in run.due:
                yield task
        for progress in plan.progress:
            yield pvalue.TaggedOutput(PROGRESS, progress)


_ = state_format
