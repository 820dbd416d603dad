"""One chain under one take: fetch, apply, promote, until the slice, the range, the source or an error ends the reading."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from gapless.effects.protocol import EventFailure
from gapless.errors import (
    EffectError,
    InvalidPage,
    RangeTrimmed,
    RoutingChanged,
    SchemaDrift,
    SourceError,
    SourceUnavailable,
    TokenCycle,
    TokenExpired,
)
from gapless.paging.chain import CheckedPage, PageChain
from gapless.paging.page import Page
from gapless.paging.readahead import PageFeed
from gapless.plan import partition_of, progress_of, to_be_read
from gapless.settling.hold import EventHeld, blocker_for, state_for
from gapless.settling.open_run import OpenRun
from gapless.settling.worker import Slice, Tally, Worker
from gapless.store.records import ChainRow, DeadLetter
from gapless.updates import PartitionProgress, ReadTask

MAX_RESTARTS = 3
"""Restarts at the certified bound without a promotion in between, before the chain is left as a gap."""

Emitted = PartitionProgress | DeadLetter


class ChainReading:
    """Reads on from `row`, which this worker has just taken. Used once."""

    def __init__(self, worker: Worker, task: ReadTask, row: ChainRow, limit: Slice, tally: Tally) -> None:
        self._worker = worker
        self._task = task
        self._row = row
        self._limit = limit
        self._tally = tally
        self._partition = partition_of(task)
        self._key = (task.scope, task.chain)
        self._receipts = worker.store.receipts(row.chain) if row.blocker is not None else {}
        self._deadline = None if limit.seconds is None else worker.clock.monotonic() + limit.seconds
        self._pages_left = limit.pages
        self._restarts = 0
        self._failures = 0
        self._finished = False
        self._feed: PageFeed | None = None
        self._chain = self._page_chain()
        self._run = self._new_run()

    def read(self, claim: Callable[[], bool]) -> Iterator[Emitted]:
        """Yields after each promotion and hold. Raises StoreError only."""
        try:
            while not self._finished:
                try:
                    more = self._step(claim)
                    if not more or self._run.full(self._worker.clock.monotonic()):
                        yield from self._promote()
                    if not more:
                        return
                except (SourceError, EffectError) as error:
                    yield from self._stop_at(error)
        finally:
            self._run.abandon()
            self._leave_feed()

    def _step(self, claim: Callable[[], bool]) -> bool:
        """Fetch and apply one page; False when this call is to read no further."""
        if self._run.finishes_chain or not to_be_read(self._row, self._worker.source):
            return False
        if self._slice_is_over() or not claim():
            return False
        page = self._fetch()
        if page is None:
            return False
        began = self._worker.clock.monotonic()
        self._worker.on_step("fetched")
        checked = self._chain.accept(page)
        self._apply(checked)
        self._worker.on_step("applied")
        self._tally.pages += 1
        if self._pages_left is not None:
            self._pages_left -= 1
        self._tally.worked += self._worker.clock.monotonic() - began
        return True

    def _slice_is_over(self) -> bool:
        if self._pages_left is not None and self._pages_left <= 0:
            return True
        return self._deadline is not None and self._worker.clock.monotonic() >= self._deadline

    def _fetch(self) -> Page | None:
        # What is fetched and not promoted is read again after a crash: together with the open run at most one run.
        room = max(0, self._worker.target_rows - self._run.rows)
        if self._feed is None:
            self._feed = self._worker.feeds.take(self._key, self._partition, self._chain.next_token, room)
        else:
            self._feed.set_room(room)
        began = self._worker.clock.monotonic()
        timeout = self._limit.patience
        if self._deadline is not None:
            left = max(0.0, self._deadline - began)
            timeout = left if timeout is None else min(timeout, left)
        try:
            return self._feed.next(timeout)
        finally:
            self._tally.waited += self._worker.clock.monotonic() - began

    def _apply(self, checked: CheckedPage) -> None:
        """Give the page to the effect until every event has an outcome. Raises EventHeld where one is to be held."""
        skip = frozenset(self._receipts)
        dead: list[EventFailure] = []
        while failures := self._run.apply(checked, skip):
            tried = self._count_failure()
            if tried < self._worker.retry.attempts and any(f.code == "unsettled_event" for f in failures):
                self._wait_in_place(failures[0], tried)
            elif self._worker.dead_letters is not None:
                dead.extend(failures)
                skip |= {failure.event_id for failure in failures}
            else:
                raise EventHeld(failures[0])
        self._run.accept(checked, self._worker.clock.monotonic(), dead)

    def _count_failure(self) -> int:
        if self._worker.retries is not None:
            return self._worker.retries.failed(self._row.chain, self._run.next_sequence)
        self._failures += 1
        return self._failures

    def _wait_in_place(self, failure: EventFailure, tried: int) -> None:
        """Wait before the next attempt; where a later call tries again, raise EventHeld instead and hold nobody up."""
        delay = self._worker.retry.delay(tried)
        if self._worker.retries is not None:
            raise EventHeld(failure, retry_at=self._worker.clock.now() + timedelta(seconds=delay))
        self._worker.clock.sleep(delay)

    def _promote(self) -> Iterator[Emitted]:
        """Make the open run durable and swap the row. A lost swap rereads; a run of another generation is dropped."""
        run, self._run = self._run, self._new_run()
        if run.pages == 0:
            return
        try:
            if run.unproven_generation and self._row.generation:
                self._refuse_other_generation(self._generation_now())
            promotion = run.promotion()
        finally:
            run.abandon()
        self._worker.on_step("durable")
        promoted = self._worker.store.promote(promotion)
        self._worker.on_step("committed")
        if promoted is None:
            yield from self._go_on_from(self._worker.store.chain(self._row.chain))
            return
        self._row = promoted
        self._receipts = {}
        self._failures = self._restarts = 0
        self._run = self._new_run()
        self._worker.publisher.tick()
        self._worker.on_step("published")
        yield self._progress()
        yield from promotion.dead_letters

    def _go_on_from(self, row: ChainRow) -> Iterator[Emitted]:
        """This worker lost the swap: a twin or a newer run was first. Old and new are never merged."""
        fenced = row.fencing_token != self._task.fencing_token
        self._row = row
        self._leave_feed()
        self._chain = self._page_chain()
        self._run = self._new_run()
        self._finished = fenced or not to_be_read(row, self._worker.source)
        yield self._progress()

    def _generation_now(self) -> str:
        session = self._worker.feeds.session()
        try:
            return session.generation()
        finally:
            self._worker.feeds.give_back(session)

    def _refuse_other_generation(self, generation: str | None) -> None:
        if generation is not None and generation != self._row.generation:
            raise RoutingChanged(
                f"the source answers under routing generation {generation!r}; this chain is read under {self._row.generation!r}",
                where=f"partition {self._row.partition}",
                remedy="the run of pages was dropped; gapless status shows the membership",
            )

    def _stop_at(self, error: SourceError | EffectError) -> Iterator[Emitted]:
        """Promote what was settled before the error, then restart the chain, or make the error its durable state."""
        try:
            yield from self._promote()
        except (SourceError, EffectError) as later:
            # The run before the error could not be promoted either: that comes first in the chain, and is what holds it.
            error = later
        if self._finished:
            return
        if isinstance(error, TokenExpired) and self._restarts < MAX_RESTARTS:
            token = None if self._row.bound is None else self._worker.source.restart_token(self._row.bound)
            if token is not None:
                yield from self._restart(token, error)
                return
        retry_at = self._retry_at(error)
        if retry_at is not None and self._worker.retries is None:
            # Nobody calls again: wait here. What was not promoted is fetched anew.
            self._worker.clock.sleep((retry_at - self._worker.clock.now()).total_seconds())
            yield from self._go_on_from(self._row)
        else:
            yield from self._hold(error, retry_at)

    def _retry_at(self, error: SourceError | EffectError) -> datetime | None:
        """When this error may be tried again within the run; None: its budget is used up, or trying does not help."""
        now = self._worker.clock.now()
        if isinstance(error, EventHeld):
            return error.retry_at
        if isinstance(
            error, (SchemaDrift, InvalidPage, TokenExpired, RangeTrimmed, TokenCycle, RoutingChanged)
        ):
            return None
        if isinstance(error, SourceUnavailable) and error.retry_after is None:
            return None
        tried = self._count_failure()
        if tried >= self._worker.retry.attempts:
            return None
        wait = self._worker.retry.delay(tried)
        if isinstance(error, SourceUnavailable) and error.retry_after is not None:
            wait = max(wait, error.retry_after)
        return now + timedelta(seconds=wait)

    def _restart(self, token: str, error: TokenExpired) -> Iterator[Emitted]:
        self._restarts += 1
        row = self._worker.store.restart(self._row, token, error.what)
        yield from self._go_on_from(self._worker.store.chain(self._row.chain) if row is None else row)

    def _hold(self, error: SourceError | EffectError, retry_at: datetime | None) -> Iterator[Emitted]:
        blocker = blocker_for(error, self._worker.clock.now(), retry_at)
        held = self._worker.store.hold(self._row, state_for(error), blocker)
        self._worker.on_step("held")
        yield from self._go_on_from(self._worker.store.chain(self._row.chain))
        self._finished = self._finished or held

    def _progress(self) -> PartitionProgress:
        return progress_of(self._row, self._task.domain, self._task.epoch, self._task.members)

    def _page_chain(self) -> PageChain:
        return PageChain(
            partition=self._partition,
            domain=self._task.domain,
            start_token=self._row.page_token,
            bound=self._row.bound,
            range=self._worker.source.range,
            read_to=self._row.read_to,
            generation=self._row.generation or None,
            certifies=self._worker.source.basis() == "certified",
        )

    def _new_run(self) -> OpenRun:
        return OpenRun(
            self._row,
            self._task.domain,
            self._worker.effect,
            self._worker.dead_letters,
            self._worker.target_rows,
            self._worker.max_run_seconds,
        )

    def _leave_feed(self) -> None:
        """Park the feed where it stands at the committed token, so that a later call takes it up; else end it."""
        feed, self._feed = self._feed, None
        if feed is None:
            return
        if (
            feed.token == self._row.page_token
            and not feed.failed
            and to_be_read(self._row, self._worker.source)
        ):
            self._worker.feeds.park(self._key, feed)
        else:
            self._worker.feeds.retire(feed)
