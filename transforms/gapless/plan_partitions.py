"""`PlanPartitions`: freeze or observe the membership, number the run, and name the chains to read."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import apache_beam as beam
from apache_beam import pvalue
from apache_beam.coders import Coder
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.options.pipeline_options import DirectOptions
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.typehints.decorators import IOTypeHints
from apache_beam.utils.timestamp import Duration

from gapless.paging.source import Source
from gapless.plan import plan_run
from gapless.settling.local_run import current_run
from gapless.state_format import OffsetRangeCoder
from gapless.store.records import MembershipPolicy
from gapless.store_ref import StoreRef, store_ref
from gapless.updates import PartitionProgress, PlannedTasks, PlanRequest, ReadTask

PROGRESS = "progress"
TURNS = 64
"""In so many shares the chains are handed out at most: every share carries the whole list along."""
_DIRECT = ("DirectRunner", "SwitchingDirectRunner")


class Planned(NamedTuple):
    """`tasks`: chains to read. `progress`: where every member stands before anything is read."""

    tasks: PCollection[ReadTask]
    progress: PCollection[PartitionProgress]


class PlanPartitions(beam.PTransform[PBegin, Planned]):
    """Reads the source's list once, checks the scope against the store, and numbers the run.

    `run_id` is made where the pipeline is built, so that a bundle run again gets the number it had; a pipeline whose graph
    is run again later (a template) must be given a new one each time. `observe=False` goes by the durable rows alone.
    `membership` says what follows a list that has changed."""

    def __init__(
        self,
        source: Source,
        store: "str | StoreRef",
        run_id: str | None = None,
        engine: str = "beam",
        observe: bool = True,
        membership: MembershipPolicy | None = None,
    ) -> None:
        super().__init__()
        self._membership = membership
        self._source = source
        self._store = store_ref(store)
        self._request = PlanRequest(source.scope, run_id or uuid4().hex, engine, observe)

    @property
    def run_id(self) -> str:
        """The run that this begins."""
        return self._request.run_id

    def default_type_hints(self) -> IOTypeHints:
        # Beam reads them from `expand` and warns at a result that is a tuple of collections; each has its own type.
        return IOTypeHints.empty()

    def expand(self, pbegin: PBegin) -> Planned:
        planned = (
            pbegin
            | beam.Create([self._request]).with_output_types(PlanRequest)
            | "Plan"
            >> beam.ParDo(_Plan(self._source, self._store, self._membership))
            .with_output_types(PlannedTasks)
            .with_outputs(PROGRESS, main="tasks")
        )
        progress: PCollection[PartitionProgress] = planned[PROGRESS]
        progress.element_type = PartitionProgress
        hand_out: beam.DoFn = _InTurns() if _hands_out_in_turns(pbegin) else _AtOnce()
        tasks = planned.tasks | "Hand out" >> beam.ParDo(hand_out).with_output_types(ReadTask)
        # Spreads the chains over the workers: without it they are fused into the one bundle of the plan.
        return Planned(tasks | "Spread" >> beam.Reshuffle(), progress)


def _hands_out_in_turns(pbegin: PBegin) -> bool:
    """Prism reads as one bundle, one chain after the other, whatever is there when a worker comes free; only what is handed out
    piece by piece is read at once. Beam's local runner loses the rest of a hand-out as soon as it has several workers, and
    `DirectRunner` may be either."""
    runner = type(pbegin.pipeline.runner).__name__
    workers = pbegin.pipeline.options.view_as(DirectOptions).direct_num_workers
    return runner == "PrismRunner" or (runner in _DIRECT and workers == 1)


class _Plan(beam.DoFn):
    def __init__(self, source: Source, store: StoreRef, membership: MembershipPolicy | None) -> None:
        self._source = source
        self._store = store
        self._membership = membership

    def process(self, element: PlanRequest) -> Iterator[Any]:
        with self._store.open(create=True, patient=True) as store:
            plan = plan_run(self._source, store, element, policy=self._membership)
        run = current_run(element.run_id)
        due = None if run is None else run.due
        yield PlannedTasks(tuple(task for task in plan.tasks if due is None or task.chain in due))
        for progress in plan.progress:
            yield pvalue.TaggedOutput(PROGRESS, progress)


class _AtOnce(beam.DoFn):
    def process(self, element: PlannedTasks) -> Iterator[ReadTask]:
        yield from element.tasks


class _TurnRestrictions(RestrictionProvider):
    def initial_restriction(self, element: PlannedTasks) -> OffsetRange:
        return OffsetRange(0, min(TURNS, len(element.tasks)))

    def create_tracker(self, restriction: OffsetRange) -> OffsetRestrictionTracker:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, element: PlannedTasks, restriction: OffsetRange) -> int:
        return int(restriction.size())

    def restriction_coder(self) -> Coder:
        return OffsetRangeCoder()


_TURNS = _TurnRestrictions()


class _InTurns(beam.DoFn):
    """A splittable DoFn that gives a share of the tasks and defers the rest, so that each share is a bundle of its own."""

    def process(
        self, element: PlannedTasks, tracker: Any = beam.DoFn.RestrictionParam(_TURNS)
    ) -> Iterator[ReadTask]:
        turn = tracker.current_restriction().start
        if tracker.try_claim(turn):
            yield from element.tasks[turn::TURNS]
            # At the last turn there is no rest, and nothing is deferred.
            tracker.defer_remainder(Duration(0))
