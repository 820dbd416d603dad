"""`SettlePages`: a splittable DoFn that reads chains, one element each, and settles them in place."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import pvalue
from apache_beam.coders import Coder
from apache_beam.pvalue import PCollection
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.typehints.decorators import IOTypeHints

from gapless.effects.protocol import Effect, Step, no_step
from gapless.page_restriction import Claim, PageRestriction, PageRestrictionTracker
from gapless.paging.readahead import FeedPool
from gapless.paging.source import Source
from gapless.settling.heartbeat import beating
from gapless.settling.local_run import LocalRun, current_run
from gapless.settling.open_run import DeadLetterEffect
from gapless.settling.publisher import Publisher
from gapless.settling.retrying import Failures, RetryPolicy
from gapless.settling.settle import settle_chain
from gapless.settling.worker import Slice, Tally, Worker
from gapless.state_format import PageRestrictionCoder
from gapless.store.records import DeadLetter
from gapless.store_ref import StoreRef
from gapless.updates import PartitionProgress, ReadTask

DEAD_LETTERS = "dead_letters"
CLOSING_SECONDS = 60.0
"""How long a teardown waits for the page under way; what is still in use then is left to the end of the process."""


class Read(NamedTuple):
    """`progress`: where each chain durably stands after each promotion. `dead_letters`: as they became durable."""

    progress: PCollection[PartitionProgress]
    dead_letters: PCollection[DeadLetter]


@dataclass(frozen=True)
class SettleInPlace:
    """What a worker is given to settle with; picklable, without secrets. `on_step` is called at each step of the barrier."""

    source: Source
    effect: Effect
    store: StoreRef
    dead_letters: DeadLetterEffect | None = None
    retry: RetryPolicy = RetryPolicy()
    on_step: Step = no_step

    def worker(self, task: ReadTask, run: LocalRun | None) -> Worker:
        """Open everything. Raises ConfigurationError (an unset secret) or StoreError."""
        store = self.store.open(patient=True)
        return Worker(
            source=self.source,
            effect=self.effect.open(task.scope, task.domain, store.schema_store(task.scope)),
            target_rows=self.effect.target_rows,
            store=store,
            feeds=run.feeds if run else FeedPool(self.source.open),
            publisher=Publisher(store, task.scope),
            dead_letters=self.dead_letters.open(task.scope, task.domain) if self.dead_letters else None,
            retry=self.retry,
            called_again=run is not None,
            failures=run.failures if run else Failures(),
            on_step=self.on_step,
        )


class SettlePages(beam.PTransform[PCollection[ReadTask], Read]):
    """Reads each chain from its committed page token, applies the effect, and promotes runs of pages.

    Batch: a chain is read to its end in one call and never deferred. On the local runner a call reads a slice."""

    def __init__(self, settle: SettleInPlace) -> None:
        super().__init__()
        self._settle = settle

    def default_type_hints(self) -> IOTypeHints:
        # Beam reads them from `expand` and warns at a result that is a tuple of collections; each has its own type.
        return IOTypeHints.empty()

    def expand(self, tasks: PCollection[ReadTask]) -> Read:
        out = tasks | "Settle" >> beam.ParDo(_SettleChain(self._settle)).with_output_types(
            PartitionProgress
        ).with_outputs(DEAD_LETTERS, main="progress")
        dead: PCollection[DeadLetter] = out[DEAD_LETTERS]
        dead.element_type = DeadLetter
        return Read(out.progress, dead)


class _ChainRestrictions(RestrictionProvider):
    def initial_restriction(self, element: ReadTask) -> PageRestriction:
        return PageRestriction()

    def create_tracker(self, restriction: PageRestriction) -> PageRestrictionTracker:
        return PageRestrictionTracker(restriction)

    def restriction_size(self, element: ReadTask, restriction: PageRestriction) -> int:
        return 0 if restriction.done else 1

    def restriction_coder(self) -> Coder:
        return PageRestrictionCoder()

    def truncate(self, element: ReadTask, restriction: PageRestriction) -> None:
        """A drain drops the rest: the store knows where the chain stands."""
        return


_RESTRICTIONS = _ChainRestrictions()


class _SettleChain(beam.DoFn):
    """One worker's reader. Opens on the first element, when scope and run are known, and closes with the DoFn."""

    def __init__(self, settle: SettleInPlace) -> None:
        self._settle = settle
        self._worker: Worker | None = None
        self._run: LocalRun | None = None
        self._closing = False

    def setup(self) -> None:
        self._in_use = Lock()

    def process(
        self, element: ReadTask, tracker: Any = beam.DoFn.RestrictionParam(_RESTRICTIONS)
    ) -> Iterator[Any]:
        with self._in_use, beating(self._settle.store, element.run_id):
            if self._worker is None:
                self._run = current_run(element.run_id)
                self._worker = self._settle.worker(element, self._run)
            tally = Tally()
            for emitted in settle_chain(
                self._worker, element, lambda: self._may_go_on(tracker), self._limit(), tally
            ):
                if isinstance(emitted, DeadLetter):
                    yield pvalue.TaggedOutput(DEAD_LETTERS, emitted)
                else:
                    if self._run is not None:
                        self._run.progressed(emitted)
                    yield emitted
            if self._run is not None:
                self._run.add(tally)
        tracker.try_claim(Claim.END)

    def _may_go_on(self, tracker: Any) -> bool:
        if self._closing or (self._run is not None and self._run.stopping.is_set()):
            return False
        return bool(tracker.try_claim(Claim.PAGE))

    def _limit(self) -> Slice:
        return self._run.limit if self._run is not None else Slice()

    def teardown(self) -> None:
        # Where another worker of the process failed, Beam tears this one down from another thread, while it reads.
        self._closing = True
        if not self._in_use.acquire(timeout=CLOSING_SECONDS):
            return
        try:
            self._close()
        finally:
            self._in_use.release()

    def _close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.effect.close()
        if worker.dead_letters is not None:
            worker.dead_letters.close()
        if self._run is None:
            worker.feeds.close()
        worker.store.close()
