"""A batch backfill: plan, read until every chain is done, publish, and say how it ended by the durable rows.

Beam is imported late: while it loads, the first pages are being fetched.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from gapless.clock import Clock, SystemClock
from gapless.effects.protocol import Effect, Step, no_step
from gapless.errors import GaplessError, StoreError
from gapless.explain import explain
from gapless.paging.readahead import FeedPool
from gapless.paging.source import Source
from gapless.plan import Plan, partition_of, plan_run, policy_in_force
from gapless.polling import Polling
from gapless.progress import Bound, ChainState
from gapless.settling.chain_access import feed_key
from gapless.settling.heartbeat import beating
from gapless.settling.local_run import LocalRun, ignore_progress, local_run
from gapless.settling.open_run import DeadLetterEffect
from gapless.settling.retrying import RetryPolicy
from gapless.store import Store
from gapless.store.records import FAILED, FINISHED, STOPPED, MembershipPolicy, Snapshot
from gapless.store_ref import StoreRef
from gapless.updates import PartitionProgress, PlanRequest
from gapless_pipelines.due_chains import DueChains
from gapless_pipelines.list_follower import ListFollower, read_on
from gapless_pipelines.options import LOCAL, EngineOptions
from gapless_pipelines.pacing import first_pace

if TYPE_CHECKING:
    from gapless.complete_through import CompleteThrough
    from gapless_pipelines.reader_processes import ReaderProcess

MOST_READERS = 8


def ignore_start(run: LocalRun, plan: Plan) -> None:
    """Nobody is told of the plan."""


def ignore_reading() -> None:
    """Nobody is told that reading begins."""


@dataclass(frozen=True)
class Backfill:
    """What is to be run. `readers` bounds how many partitions are read at once; a job's `connections`.

    `processes` is how many processes read on the local engine; 0: as many as serve, which is one where pages come slowly."""

    source: Source
    effect: Effect
    store: StoreRef
    engine: EngineOptions
    dead_letters: DeadLetterEffect | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    membership: MembershipPolicy | None = None
    readers: int = MOST_READERS
    processes: int = 1
    on_step: Step = no_step


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """How a backfill ended, by its durable rows. `number` is the run's fencing token."""

    run_id: str
    number: int
    snapshot: Snapshot
    passes: int
    seconds: float
    pages: int
    events: int
    stop: Bound | None

    @property
    def exit_status(self) -> int:
        """0 done; 4 fenced by a newer run; 5 a violation was recorded; 3 withheld, held or short of the range's end."""
        if any(row.fencing_token > self.number for row in self.snapshot.chains):
            return 4
        if self.snapshot.violations:
            return 5
        return 0 if self.complete else 3

    def _repr_html_(self) -> str:
        """For a notebook: how it ended, the frontier, who holds it, the partitions."""
        from gapless.notebook import backfill_html
        from gapless.status_document import status_document

        return backfill_html(
            status_document(self.snapshot),
            VERDICTS[self.exit_status],
            pages=self.pages,
            events=self.events,
            seconds=self.seconds,
        )

    @property
    def complete(self) -> bool:
        """Everything that was to be read is read and proved."""
        scope = self.snapshot.scope
        if scope.frontier is None or not explain(self.snapshot).settled:
            return False
        if self.stop is not None:
            return scope.frontier >= self.stop
        return all(row.state is not ChainState.OPEN for row in self.snapshot.chains if row.is_live)


VERDICTS = {
    0: "done: everything that was to be read is read and proved",
    3: "not complete: run it again to go on from here",
    4: "a newer run has taken over; this one changes nothing any more",
    5: "the source broke a promise: what it certified was not all",
}
"""A result's exit status in words."""


def run_backfill(
    backfill: Backfill,
    on_progress: Callable[[PartitionProgress], None] = ignore_progress,
    clock: Clock | None = None,
    on_start: Callable[[LocalRun, Plan], None] = ignore_start,
    on_reading: Callable[[], None] = ignore_reading,
) -> BackfillResult:
    """Run to the end. `on_start` is called when the plan is made, `on_reading` when everything is loaded: before that, no
    thread may be started. Raises ConfigurationError and SourceError (where the list of partitions cannot be had) before anything
    is read, StoreError at any time: what is promoted by then stays."""
    clock = clock or SystemClock()
    began = clock.monotonic()
    with ExitStack() as stack:
        store = stack.enter_context(backfill.store.open(create=True))
        request = PlanRequest(backfill.source.scope, uuid4().hex, backfill.engine.engine)
        session = backfill.source.open()
        stack.callback(session.close)
        policy = policy_in_force(
            backfill.membership, backfill.source, replaceable=backfill.effect.replaceable
        )
        plan = plan_run(backfill.source, store, request, session, clock, policy)
        run = LocalRun(
            request.run_id, FeedPool(backfill.source.open, backfill.readers), on_progress=on_progress
        )
        on_start(run, plan)
        with recorded(store, run):
            follower = ListFollower(backfill.source, store, session, policy, run, clock)
            if not plan.tasks:
                passes = 0
            elif backfill.engine.engine == LOCAL:
                passes = _local(backfill, store, request, plan, run, clock, on_reading, follower)
            else:
                passes = _elsewhere(backfill, store, request, on_reading, follower)
            follower.publish()
        after = store.snapshot(request.scope)
        number = plan.number
        pages, events = store.promoted_by(request.scope, number)
        stop = backfill.source.range.stop
        return BackfillResult(
            run_id=request.run_id,
            number=number,
            snapshot=after,
            passes=passes,
            seconds=clock.monotonic() - began,
            pages=pages,
            events=events,
            stop=None if stop is None else Bound.before(stop),
        )


def _local(
    backfill: Backfill,
    store: Store,
    request: PlanRequest,
    plan: Plan,
    run: LocalRun,
    clock: Clock,
    on_reading: Callable[[], None],
    follower: ListFollower,
) -> int:
    most = backfill.engine.workers or backfill.readers
    pace = first_pace(plan.list_seconds, most)
    several = backfill.processes > 1 or (
        backfill.processes == 0 and backfill.engine.workers is None and pace.workers == 1
    )
    with local_run(run):
        if not several:
            _fetch_ahead(run, plan, backfill)
        from gapless_pipelines.local_passes import LocalPasses
        from gapless_pipelines.reader_processes import fork_readers, processes_for

        passes = LocalPasses(transform_of(backfill, request), backfill.engine.pipeline_options(), run)
        collect_from_here_on()
        count = processes_for(len(plan.tasks), backfill.processes) if several else 1
        shares = [frozenset(task.chain for task in plan.tasks[first::count]) for first in range(count)]
        most = max(1, most // count)

        def read(through: Store, share: frozenset[int] | None, *, anew: bool) -> int:
            due = DueChains(backfill.source, through, plan.number, run, clock, share, anew=anew)
            return passes.until(pace, due, clock.monotonic, most)

        def read_apart(share: frozenset[int]) -> int:
            with backfill.store.open() as own:
                return read(own, share, anew=True)

        store.disconnect()
        others = fork_readers(shares[1:], run, read_apart)
        on_reading()
        with beating(backfill.store, run.run_id, to_the_end=True):
            with _joined(others, run):
                done = read(store, shares[0], anew=True)
            done += sum(other.passes for other in others)
            # What a process that died has left, and whatever the list or its routing has brought since the plan.
            return done + read_on(follower, lambda: read(store, None, anew=False))


@contextmanager
def _joined(others: "Sequence[ReaderProcess]", run: LocalRun) -> Iterator[None]:
    """Hear the other processes while this one reads, and wait for them. Raises what one of them raised."""
    for other in others:
        other.listen(run)
    run.on_stop = partial(_stop_all, others)
    try:
        yield
    except BaseException:
        for other in others:
            other.kill()
        raise
    for other in others:
        other.join()


def _stop_all(others: "Sequence[ReaderProcess]") -> None:
    for other in others:
        other.stop()


def transform_of(
    backfill: Backfill, request: PlanRequest, polling: Polling | None = None
) -> "CompleteThrough":
    """The pipeline of a run that is planned already; with `polling` one that never ends by itself."""
    from gapless.complete_through import CompleteThrough

    return CompleteThrough(
        backfill.source,
        backfill.effect,
        backfill.store,
        dead_letters=backfill.dead_letters,
        retry=backfill.retry,
        membership=backfill.membership,
        run_id=request.run_id,
        engine=request.engine,
        observe=False,
        polling=polling,
        on_step=backfill.on_step,
    )


def _fetch_ahead(run: LocalRun, plan: Plan, backfill: Backfill) -> None:
    """Begin fetching the first chains while Beam loads; a reader takes the feed up where it stands."""
    for task, row in zip(plan.tasks[: backfill.readers], plan.rows, strict=False):
        key = feed_key(row)
        feed = run.feeds.take(key, partition_of(task), row.page_token, backfill.effect.target_rows)
        run.feeds.park(key, feed)


def collect_from_here_on() -> None:
    """What is loaded now stays until the end: the collector need not walk over it again and again while pages are decoded."""
    gc.freeze()
    gc.enable()


def _elsewhere(
    backfill: Backfill,
    store: Store,
    request: PlanRequest,
    on_reading: Callable[[], None],
    follower: ListFollower,
) -> int:
    """One pipeline on the engine that was asked for, which reads every chain to its end; another one where the list has
    changed meanwhile."""
    import apache_beam as beam

    transform = transform_of(backfill, request)
    collect_from_here_on()
    on_reading()

    def read() -> int:
        # The pipeline before this one has ended the run.
        store.resume_run(request.run_id)
        with beam.Pipeline(options=backfill.engine.pipeline_options()) as pipeline:
            _ = pipeline | "CompleteThrough" >> transform
        return 1

    with beating(backfill.store, request.run_id, to_the_end=True):
        return read_on(follower, read)


@contextmanager
def recorded(store: Store, run: LocalRun) -> Iterator[None]:
    """Write how the run ended beside its number: finished, stopped before its end, or failed. What ended it is raised as itself,
    and not as the engine wraps it."""
    try:
        yield
    except BaseException as error:
        # Where the store is the trouble, this fails as well, and says nothing new.
        with suppress(StoreError):
            store.end_run(run.run_id, STOPPED if isinstance(error, KeyboardInterrupt) else FAILED)
        known = _ours(error)
        if known is None or known is error:
            raise
        raise known from error
    store.end_run(run.run_id, STOPPED if run.stopping.is_set() else FINISHED)


def _ours(error: BaseException | None) -> GaplessError | None:
    """The error of gapless that an engine's exception carries; None where it is another's."""
    while error is not None and not isinstance(error, GaplessError):
        error = error.__cause__
    return error
