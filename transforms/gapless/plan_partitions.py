"""`PlanPartitions`: freeze or observe the membership, number the run, and name the chains to read."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import apache_beam as beam
from apache_beam import pvalue
from apache_beam.coders import Coder
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.options.pipeline_options import DirectOptions
from apache_beam.pipeline import AppliedPTransform
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.typehints.decorators import IOTypeHints
from apache_beam.utils.timestamp import Duration

from gapless.paging.source import Source, following
from gapless.plan import plan_run, policy_in_force, scope_identity
from gapless.polling import Polling
from gapless.reading_dofn import ReadingDoFn
from gapless.settling.heartbeat import beating
from gapless.settling.local_run import current_run
from gapless.settling.planned_here import another_source
from gapless.state_format import OffsetRangeCoder
from gapless.store.records import MembershipPolicy, ScopeIdentity
from gapless.store.scopes import fingerprint
from gapless.store_ref import StoreRef, store_ref
from gapless.stream_format import WatchStateCoder
from gapless.stream_tracker import StateTracker
from gapless.streaming import CertifiedWatermark, EventTime, require_streaming_engine, unbounded
from gapless.updates import PartitionProgress, PlannedTasks, PlanRequest, ReadTask
from gapless.watching import Watch, WatchState

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
    `membership` says what follows a list that has changed; by default the next epoch as soon as everything is proved,
    where nothing has to be read again for it. With `polling` a stream: the list is looked at again every `look_every` seconds,
    chains that are new are handed out, and the planner ends when a newer run has taken over."""

    def __init__(
        self,
        source: Source,
        store: "str | StoreRef",
        run_id: str | None = None,
        engine: str = "beam",
        observe: bool = True,
        membership: MembershipPolicy | None = None,
        polling: Polling | None = None,
    ) -> None:
        super().__init__()
        # Outcomes of a pipeline are nothing that reading again could replace.
        self._membership = membership or policy_in_force(None, source, replaceable=False)
        self._polling = polling
        self._source = source if polling is None else following(source)
        self._store = store_ref(store)
        self._request = PlanRequest(source.scope, run_id or uuid4().hex, engine, observe)

    @property
    def run_id(self) -> str:
        """The run that this begins."""
        return self._request.run_id

    @property
    def store(self) -> StoreRef:
        """Where the run is numbered."""
        return self._store

    @property
    def identity(self) -> ScopeIdentity:
        """Of the source that this plans for."""
        return scope_identity(self._source)

    def default_type_hints(self) -> IOTypeHints:
        # Beam reads them from `expand` and warns at a result that is a tuple of collections; each has its own type.
        return IOTypeHints.empty()

    def expand(self, pbegin: PBegin) -> Planned:
        planner: beam.DoFn = _Plan(self._source, self._store, self._membership)
        if self._polling is not None:
            require_streaming_engine(pbegin.pipeline)
            planner = _Watch(self._source, self._store, self._membership, self._polling)
        planned = (
            pbegin
            | beam.Create([self._request]).with_output_types(PlanRequest)
            | "Plan"
            >> beam.ParDo(planner).with_output_types(PlannedTasks).with_outputs(PROGRESS, main="tasks")
        )
        planned_tasks: PCollection[PlannedTasks] = planned.tasks
        progress: PCollection[PartitionProgress] = planned[PROGRESS]
        progress.element_type = PartitionProgress
        if self._polling is not None:
            planned_tasks, progress = unbounded(planned_tasks), unbounded(progress)
        in_turns = self._polling is not None or _hands_out_in_turns(pbegin)
        hand_out: beam.DoFn = _InTurns() if in_turns else _AtOnce()
        tasks = planned_tasks | "Hand out" >> beam.ParDo(hand_out).with_output_types(ReadTask)
        # Spreads the chains over the workers: without it they are fused into the one bundle of the plan.
        return Planned(tasks | "Spread" >> beam.Reshuffle(), progress)


def plans_upstream(collection: PCollection[Any]) -> list[PlanPartitions]:
    """Every `PlanPartitions` that this collection comes from."""
    plans: list[PlanPartitions] = []
    seen: set[AppliedPTransform] = set()
    ahead = [collection.producer]
    while ahead:
        applied = ahead.pop()
        if applied is None or applied in seen:
            continue
        seen.add(applied)
        if isinstance(applied.transform, PlanPartitions):
            plans.append(applied.transform)
        ahead += [applied.parent, *(one.producer for one in applied.inputs)]
    return plans


def require_same_source(tasks: PCollection[ReadTask], source: Source) -> None:
    """Raises ConfigurationError where these chains were planned for another source, before anything runs."""
    identity = scope_identity(source)
    for plan in plans_upstream(tasks):
        planned = plan.identity
        if planned.scope != identity.scope or fingerprint(planned) != fingerprint(identity):
            raise another_source(planned.scope, identity.scope)


def _hands_out_in_turns(pbegin: PBegin) -> bool:
    """Prism reads as one bundle, one chain after the other, whatever is there when a worker comes free; only what is handed out
    piece by piece is read at once. Beam's local runner loses the rest of a hand-out as soon as it has several workers, and
    `DirectRunner` may be either."""
    runner = type(pbegin.pipeline.runner).__name__
    workers = pbegin.pipeline.options.view_as(DirectOptions).direct_num_workers
    return runner == "PrismRunner" or (runner in _DIRECT and workers == 1)


class _Plan(beam.DoFn):
    def __init__(self, source: Source, store: StoreRef, membership: MembershipPolicy) -> None:
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


class _WatchRestrictions(RestrictionProvider):
    def initial_restriction(self, element: PlanRequest) -> WatchState:
        return WatchState()

    def create_tracker(self, restriction: WatchState) -> StateTracker[WatchState]:
        return StateTracker(restriction)

    def restriction_size(self, element: PlanRequest, restriction: WatchState) -> int:
        return 0 if restriction.done else 1

    def restriction_coder(self) -> Coder:
        return WatchStateCoder()

    def truncate(self, element: PlanRequest, restriction: WatchState) -> None:
        """A drain drops the rest: the next run looks at the list."""
        return


_LOOKS = _WatchRestrictions()
_WATERMARK = CertifiedWatermark()


class _Watch(ReadingDoFn):
    """Plans, and looks again and again. Its watermark is the published frontier: no chain enters with an event behind it."""

    def __init__(
        self, source: Source, store: StoreRef, membership: MembershipPolicy, polling: Polling
    ) -> None:
        self._source = source
        self._store = store
        self._membership = membership
        self._polling = polling
        self._watch: Watch | None = None

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        element: PlanRequest,
        tracker: Any = beam.DoFn.RestrictionParam(_LOOKS),
        watermark: Any = beam.DoFn.WatermarkEstimatorParam(_WATERMARK),
    ) -> Iterator[Any]:
        state = tracker.current_restriction()
        time = EventTime(watermark, self._source.domain)
        with self.in_use:
            if self.closing or not tracker.try_claim(state):
                return
            looked = self._opened(element).look(state)
            # From the first look on there is a run; it lives from look to look, also where nobody has anything to read.
            with beating(self._store, element.run_id, pause=self._polling.look_every):
                pass
            if not tracker.try_claim(looked.state):
                # The rest was split off meanwhile: who goes on with it looks again, and hands out what is new.
                return
            if looked.tasks:
                yield time.stamped(PlannedTasks(looked.tasks))
            for progress in looked.progress:
                yield pvalue.TaggedOutput(PROGRESS, time.stamped(progress))
            time.raise_to(looked.frontier)
        if not looked.state.done:
            tracker.defer_remainder(Duration(seconds=self._polling.look_every))

    def _opened(self, request: PlanRequest) -> Watch:
        if self._watch is None:
            store = self._store.open(create=True, patient=True)
            self._watch = Watch(self._source, store, request, self._membership)
        return self._watch

    def close(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
            watch.store.close()


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
