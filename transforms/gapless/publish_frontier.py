"""`PublishFrontier`: one monotonic UPDATE from durable rows; what it emits is what a reader of the store sees."""

from collections.abc import Iterator

import apache_beam as beam
from apache_beam.pvalue import PCollection

from gapless import state_format  # noqa: F401 - registers the coders of what comes and goes
from gapless.explain import explain
from gapless.plan_partitions import plans_upstream
from gapless.progress_merge import FrontierHint
from gapless.settling.local_run import current_run
from gapless.settling.publisher import Publisher
from gapless.store import Store
from gapless.store_ref import StoreRef, store_ref
from gapless.updates import FrontierUpdate


class PublishFrontier(beam.PTransform[PCollection[FrontierHint], PCollection[FrontierUpdate]]):
    """A hint only says that it is worth trying: the minimum is recomputed from the members' rows, under the scope's epoch.

    In a batch the last hint ends the run that `PlanPartitions` began upstream, or the one of `run_id`: it is `finished`, unless
    somebody has said before how it ended. A stream ends when whoever started it ends it."""

    def __init__(self, store: "str | StoreRef", run_id: str | None = None) -> None:
        super().__init__()
        self._store = store_ref(store)
        self._run_id = run_id

    def expand(self, hints: PCollection[FrontierHint]) -> PCollection[FrontierUpdate]:
        runs: tuple[str, ...] = ()
        if hints.is_bounded:
            runs = self._runs_upstream(hints) if self._run_id is None else (self._run_id,)
        return hints | "Publish" >> beam.ParDo(_Publish(self._store, runs)).with_output_types(FrontierUpdate)

    def _runs_upstream(self, hints: PCollection[FrontierHint]) -> tuple[str, ...]:
        """The runs of every `PlanPartitions` that these come from."""
        plans = plans_upstream(hints)
        if len({plan.identity.scope for plan in plans}) > 1:
            # What is planned in another store helps here, by a join or a side input, and is published there.
            plans = [plan for plan in plans if plan.store == self._store]
        return tuple(sorted({plan.run_id for plan in plans}))


class _Publish(beam.DoFn):
    def __init__(self, store: StoreRef, runs: tuple[str, ...]) -> None:
        self._ref = store
        self._runs = runs
        self._store: Store | None = None
        self._publishers: dict[str, Publisher] = {}

    def process(self, element: FrontierHint) -> Iterator[FrontierUpdate]:
        if self._store is None:
            self._store = self._ref.open(patient=True)
        publisher = self._publishers.setdefault(element.scope, Publisher(self._store, element.scope))
        publisher.publish()
        for run_id in self._runs:
            # A pass of a local run is not its end.
            if current_run(run_id) is None:
                self._store.finish_run(run_id)
        yield frontier_update(self._store, element.scope)

    def teardown(self) -> None:
        store, self._store = self._store, None
        self._publishers = {}
        if store is not None:
            store.close()


def frontier_update(store: Store, scope: str) -> FrontierUpdate:
    """The published frontier and its blockers, of one consistent read."""
    snapshot = store.snapshot(scope)
    why = explain(snapshot)
    row = snapshot.scope
    return FrontierUpdate(
        scope=scope,
        domain=row.domain,
        lineage=row.lineage,
        membership_epoch=row.epoch,
        after=row.after,
        bound=row.frontier,
        basis=row.basis,
        withheld=why.withheld.code if why.withheld else None,
        blockers=tuple(why.blockers),
    )
