"""A stream: the same scope read on for ever, until somebody stops it, a newer run takes over, or its range is proved.

On the local engine it is a loop of bounded passes, as a backfill is, over the chains that are due. Each of them ends where its
source has nothing further at present, and is published there. What is kept between passes only saves work: after a kill the next
stream goes on from the durable rows. On another engine it is one pipeline that never ends by itself.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from gapless.clock import Clock, SystemClock
from gapless.paging.readahead import FeedPool
from gapless.plan import Plan, plan_run, policy_in_force, readable
from gapless.polling import Polling
from gapless.progress import Bound
from gapless.settling.heartbeat import beating
from gapless.settling.local_run import LocalRun, ignore_progress, local_run
from gapless.settling.worker import Tally
from gapless.store import Store
from gapless.store.records import ChainRow, MembershipPolicy, Snapshot
from gapless.updates import PartitionProgress, PlanRequest
from gapless_pipelines.backfill import (
    Backfill,
    collect_from_here_on,
    ignore_reading,
    ignore_start,
    recorded,
    transform_of,
)
from gapless_pipelines.list_follower import ListFollower
from gapless_pipelines.options import LOCAL
from gapless_pipelines.pacing import Pace, first_pace, next_pace
from gapless_pipelines.polled_chains import PolledChains

if TYPE_CHECKING:
    from apache_beam.runners.runner import PipelineResult

LONGEST_PASS = 5.0
"""Seconds, while every chain is behind; with one that is not, no pass takes longer than until that one is polled again."""
CANCELLED_WITHIN = 30.0
"""Seconds that an engine is given to end a pipeline that was cancelled."""
DOZE = 0.1
"""Seconds. A signal that asks to stop is heard so soon."""


def ignore_violations(count: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class Stream:
    """What is to be run: `run` with the stream's view of its source, and how it polls."""

    run: Backfill
    polling: Polling = field(default_factory=Polling)


@dataclass(frozen=True, slots=True)
class StreamResult:
    """How a stream ended, by its durable rows. `number` is the run's fencing token; `stopped`: because it was asked to."""

    run_id: str
    number: int
    snapshot: Snapshot
    passes: int
    seconds: float
    pages: int
    events: int
    stopped: bool

    @property
    def fenced(self) -> bool:
        """A newer run has taken over."""
        return _is_fenced(self.snapshot, self.number)

    @property
    def exit_status(self) -> int:
        """0 stopped, or read to the range's end; 4 fenced by a newer run; 5 a violation was recorded."""
        if self.fenced:
            return 4
        return 5 if self.snapshot.violations else 0


def run_stream(
    stream: Stream,
    on_progress: Callable[[PartitionProgress], None] = ignore_progress,
    clock: Clock | None = None,
    on_start: Callable[[LocalRun, Plan], None] = ignore_start,
    on_reading: Callable[[], None] = ignore_reading,
    on_violations: Callable[[int], None] = ignore_violations,
) -> StreamResult:
    """Run until the end. `on_start` is called when the plan is made, `on_reading` when everything is loaded, `on_violations` with
    their number whenever more were recorded.

    Raises ConfigurationError and SourceError (where the list of partitions cannot be had) before anything is read, StoreError at
    any time: what is promoted by then stays."""
    clock = clock or SystemClock()
    began = clock.monotonic()
    backfill = stream.run
    with ExitStack() as stack:
        store = stack.enter_context(backfill.store.open(create=True))
        request = PlanRequest(backfill.source.scope, uuid4().hex, backfill.engine.engine)
        policy = policy_in_force(
            backfill.membership, backfill.source, replaceable=backfill.effect.replaceable
        )
        with closing(backfill.source.open()) as session:
            plan = plan_run(backfill.source, store, request, session, clock, policy)
        run = LocalRun(
            request.run_id, FeedPool(backfill.source.open, backfill.readers), on_progress=on_progress
        )
        on_start(run, plan)
        with recorded(store, run), beating(backfill.store, run.run_id, to_the_end=True):
            if backfill.engine.engine == LOCAL:
                local = _LocalStream(stream, store, plan, run, clock, on_violations)
                passes = local.read(request, policy, on_reading)
            else:
                passes = _elsewhere(stream, request, run, clock, on_reading)
        after = store.snapshot(request.scope)
        pages, events = store.promoted_by(request.scope, plan.number)
        return StreamResult(
            run_id=request.run_id,
            number=plan.number,
            snapshot=after,
            passes=passes,
            seconds=clock.monotonic() - began,
            pages=pages,
            events=events,
            stopped=run.stopping.is_set(),
        )


class _LocalStream:
    """The loop of passes. Used once, by one thread; a second one follows the list."""

    def __init__(
        self,
        stream: Stream,
        store: Store,
        plan: Plan,
        run: LocalRun,
        clock: Clock,
        on_violations: Callable[[int], None],
    ) -> None:
        self._backfill = stream.run
        self._polling = stream.polling
        self._store = store
        self._plan = plan
        self._run = run
        self._clock = clock
        self._on_violations = on_violations
        self._chains = PolledChains(stream.polling)
        self._told = store.snapshot(self._backfill.source.scope).violations
        self._most = self._backfill.engine.workers or self._backfill.readers
        self._pace = _short(first_pace(plan.list_seconds, self._most), stream.polling.every)

    def read(self, request: PlanRequest, policy: MembershipPolicy, on_reading: Callable[[], None]) -> int:
        """How many passes it took."""
        from gapless_pipelines.local_passes import LocalPasses

        backfill, passes = self._backfill, 0
        with local_run(self._run):
            local = LocalPasses(
                transform_of(backfill, request), backfill.engine.pipeline_options(), self._run
            )
            collect_from_here_on()
            on_reading()
            with _following_the_list(backfill, self._polling, policy, self._run, self._clock) as watch:
                while (due := self._wait_until_due(watch)) is not None:
                    began = self._clock.monotonic()
                    tally = local.one(self._pace, due)
                    self._chains.polled(due, self._rows() or (), tally, began)
                    self._pace = self._next_pace(tally, self._clock.monotonic() - began)
                    passes += 1
        return passes

    def _wait_until_due(self, watch: "_Watch") -> frozenset[int] | None:
        """The chains to poll next; None where the stream is to end."""
        while not self._run.stopping.is_set():
            watch.check()
            rows = self._rows()
            if rows is None:
                return None
            now, moment = self._clock.monotonic(), self._clock.now()
            if due := self._chains.due(rows, now, moment):
                return due
            self._doze(now + self._chains.seconds_left(rows, now, moment), watch)
        return None

    def _doze(self, until: float, watch: "_Watch") -> None:
        # In short turns: nothing that a signal handler sets may be waited for with a lock.
        while not self._run.stopping.is_set() and not watch.news.is_set():
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            self._clock.sleep(min(DOZE, left))
        watch.news.clear()

    def _rows(self) -> list[ChainRow] | None:
        """The chains that can be read; None where a newer run has taken over, or the whole range is proved."""
        snapshot = self._store.snapshot(self._backfill.source.scope)
        if snapshot.violations > self._told:
            self._told = snapshot.violations
            self._on_violations(snapshot.violations)
        if _is_fenced(snapshot, self._plan.number) or _is_proved(snapshot, self._backfill.source.range.stop):
            return None
        return readable(snapshot.scope, snapshot.chains, self._backfill.source)

    def _next_pace(self, tally: Tally, wall: float) -> Pace:
        if not tally.pages and tally.caught_up:
            return self._pace
        pace = next_pace(self._pace, wall, tally, self._most)
        return _short(pace, self._polling.every if self._chains.waiting else LONGEST_PASS)


def _short(pace: Pace, longest: float) -> Pace:
    return replace(pace, seconds=min(pace.seconds, longest), patience=min(pace.patience, longest), pages=None)


def _is_fenced(snapshot: Snapshot, number: int) -> bool:
    return any(row.fencing_token > number for row in snapshot.chains)


def _is_proved(snapshot: Snapshot, stop: object) -> bool:
    frontier = snapshot.scope.frontier
    return stop is not None and frontier is not None and frontier >= Bound.before(stop)  # type: ignore[arg-type]


class _Watch:
    """What the thread that follows the list has to tell. `news`: there is something to be read that was not before."""

    def __init__(self) -> None:
        self.news = threading.Event()
        self.over = threading.Event()
        self.failure: BaseException | None = None

    def check(self) -> None:
        """Raises what has ended the thread."""
        if self.failure is not None:
            raise self.failure


@contextmanager
def _following_the_list(
    backfill: Backfill, polling: Polling, policy: MembershipPolicy, run: LocalRun, clock: Clock
) -> Iterator[_Watch]:
    """Look at the list every now and then, in a thread of its own: one that answers slowly holds up no partition."""
    watch = _Watch()

    def follow() -> None:
        try:
            with backfill.store.open(patient=True) as store, closing(backfill.source.open()) as session:
                follower = ListFollower(backfill.source, store, session, policy, run, clock)
                while not watch.over.wait(polling.look_every):
                    if follower.again():
                        watch.news.set()
        except BaseException as error:  # noqa: BLE001 - raised again by the stream
            watch.failure = error

    thread = threading.Thread(target=follow, name="gapless-list", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.over.set()
        # A list that does not come keeps nobody from stopping: what it would have changed, the next run looks at.
        thread.join(timeout=2.0)


def _elsewhere(
    stream: Stream, request: PlanRequest, run: LocalRun, clock: Clock, on_reading: Callable[[], None]
) -> int:
    """One streaming pipeline on the engine that was asked for, until it ends there. Asked to stop, it is cancelled: what it had
    not promoted is read again by whoever comes next."""
    import apache_beam as beam
    from apache_beam.options.pipeline_options import StandardOptions

    options = stream.run.engine.pipeline_options()
    options.view_as(StandardOptions).streaming = True
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | "CompleteThrough" >> transform_of(stream.run, request, stream.polling)
    collect_from_here_on()
    on_reading()
    result = pipeline.run()
    waiting = _Waiting(result)
    while not waiting.over and not run.stopping.is_set():
        clock.sleep(DOZE)
    if run.stopping.is_set():
        waiting.cancel()
    else:
        waiting.raise_what_it_raised()
    return 1


class _Waiting:
    """Waits for a pipeline's end in a thread: a wait that is interrupted gives up the connection that cancelling needs."""

    def __init__(self, result: "PipelineResult") -> None:
        self._result = result
        self._failure: BaseException | None = None
        self.thread = threading.Thread(target=self._wait, name="gapless-waiting", daemon=True)
        self.thread.start()

    @property
    def over(self) -> bool:
        return not self.thread.is_alive()

    def cancel(self) -> None:
        """End the pipeline. Raises what the engine answers, unless it is gone: a signal may have reached it first."""
        try:
            self._result.cancel()
        except Exception:
            self.thread.join(CANCELLED_WITHIN)
            if not self.over:
                raise
        self.thread.join(CANCELLED_WITHIN)

    def raise_what_it_raised(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _wait(self) -> None:
        try:
            self._result.wait_until_finish()
        except BaseException as error:  # noqa: BLE001 - raised again by the stream, unless it was cancelled
            self._failure = error
