"""`PublishFrontier`: one monotonic UPDATE from durable rows; what it emits is what a reader of the store sees."""

from collections.abc import Iterator

import apache_beam as beam
from apache_beam.pvalue import PCollection

from gapless import state_format  # noqa: F401 - registers the coders of what comes and goes
from gapless.explain import explain
from gapless.progress_merge import FrontierHint
from gapless.settling.publisher import Publisher
from gapless.store import Store
from gapless.store_ref import StoreRef, store_ref
from gapless.updates import FrontierUpdate


class PublishFrontier(beam.PTransform[PCollection[FrontierHint], PCollection[FrontierUpdate]]):
    """A hint only says that it is worth trying: the minimum is recomputed from the members' rows, under the scope's epoch."""

    def __init__(self, store: "str | StoreRef") -> None:
        super().__init__()
        self._store = store_ref(store)

    def expand(self, hints: PCollection[FrontierHint]) -> PCollection[FrontierUpdate]:
        return hints | "Publish" >> beam.ParDo(_Publish(self._store)).with_output_types(FrontierUpdate)


class _Publish(beam.DoFn):
    def __init__(self, store: StoreRef) -> None:
        self._ref = store
        self._store: Store | None = None
        self._publishers: dict[str, Publisher] = {}

    def process(self, element: FrontierHint) -> Iterator[FrontierUpdate]:
        if self._store is None:
            self._store = self._ref.open(patient=True)
        publisher = self._publishers.setdefault(element.scope, Publisher(self._store, element.scope))
        publisher.publish()
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
