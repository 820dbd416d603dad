"""`CompleteThrough`: the composite most users apply: plan, read and settle in place, track, combine, publish."""

from typing import NamedTuple

import apache_beam as beam
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.typehints.decorators import IOTypeHints

from gapless.combine_frontier import CombineFrontier
from gapless.effects.protocol import Effect, Step, no_step
from gapless.paging.source import Source
from gapless.plan import policy_in_force
from gapless.plan_partitions import PlanPartitions
from gapless.polling import Polling
from gapless.publish_frontier import PublishFrontier
from gapless.settle_pages import SettleInPlace, SettlePages
from gapless.settling.open_run import DeadLetterEffect
from gapless.settling.retrying import RetryPolicy
from gapless.store.records import DeadLetter, MembershipPolicy
from gapless.store_ref import StoreRef, store_ref
from gapless.track_partitions import TrackPartitions
from gapless.updates import FrontierUpdate, PartitionProgress


class Completed(NamedTuple):
    """`frontier`: bound or withheld, membership epoch, basis, blockers. `progress`: what moved. `dead_letters`: as recorded."""

    frontier: PCollection[FrontierUpdate]
    progress: PCollection[PartitionProgress]
    dead_letters: PCollection[DeadLetter]


class CompleteThrough(beam.PTransform[PBegin, Completed]):
    """Reads every partition of `source`, applies `effect` durably, and publishes the gap-free frontier in `store`.

    `store` is a URL or a `StoreRef` (URL and a reference to its password). With `dead_letters` a failing event is given that
    outcome after `retry.attempts`; without, it holds its partition, and only that one. `membership` says what follows a list
    of partitions that has changed; by default the next epoch, as soon as everything is proved.

    With `polling` a stream, on an engine that defers: `source` has to say when it has nothing further at present."""

    def __init__(
        self,
        source: Source,
        effect: Effect,
        store: "str | StoreRef",
        *,
        dead_letters: DeadLetterEffect | None = None,
        retry: RetryPolicy | None = None,
        membership: MembershipPolicy | None = None,
        run_id: str | None = None,
        engine: str = "beam",
        observe: bool = True,
        polling: Polling | None = None,
        on_step: Step = no_step,
    ) -> None:
        super().__init__()
        self._source = source
        self._store = store_ref(store)
        self._settle = SettleInPlace(
            source, effect, self._store, dead_letters, retry or RetryPolicy(), on_step
        )
        self._membership = policy_in_force(membership, source, replaceable=effect.replaceable)
        self._run_id = run_id
        self._engine = engine
        self._observe = observe
        self._polling = polling

    def default_type_hints(self) -> IOTypeHints:
        # Beam reads them from `expand` and warns at a result that is a tuple of collections; each has its own type.
        return IOTypeHints.empty()

    def expand(self, pbegin: PBegin) -> Completed:
        planned = pbegin | PlanPartitions(
            self._source,
            self._store,
            self._run_id,
            self._engine,
            self._observe,
            self._membership,
            self._polling,
        )
        read = planned.tasks | SettlePages(self._settle, self._polling)
        progress = (planned.progress, read.progress) | beam.Flatten() | TrackPartitions()
        frontier = progress | CombineFrontier() | PublishFrontier(self._store)
        return Completed(frontier, progress, read.dead_letters)
