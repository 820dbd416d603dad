"""One chain under one take: fetch, apply, promote, until the slice, the range, the source or an error ends the reading."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum

from gapless.effects.protocol import EventFailure
from gapless.errors import (
    EffectError,
    SourceError,
    TokenExpired,
)
from gapless.paging.chain import CheckedPage, PageChain
from gapless.paging.page import Page
from gapless.paging.readahead import PageFeed
from gapless.plan import progress_of, to_be_read
from gapless.progress import ChainState, Terminal
from gapless.settling.chain_access import ChainAccess, feed_key
from gapless.settling.foreign_errors import of_source
from gapless.settling.hold import EventHeld, blocker_for, state_for
from gapless.settling.open_run import OpenRun
from gapless.settling.worker import Slice, Tally, Worker
from gapless.store.records import ChainRow, DeadLetter
from gapless.updates import PartitionProgress, ReadTask

Emitted = PartitionProgress | DeadLetter


class _Then(Enum):
    """What follows a step: another one; another one after the open run is promoted; or nothing more in this call."""

    READ_ON = "read on"
    PROMOTE_FIRST = "promote first"
    LEAVE = "leave"


class ChainReading:
    """Reads on from `row`, which this worker has just taken. Used once."""

    def __init__(self, worker: Worker, task: ReadTask, row: ChainRow, limit: Slice, tally: Tally) -> None:
        self._worker = worker
        self._task = task
        self._row = row
        self._limit = limit
        self._tally = tally
        self._access = ChainAccess(
            task, worker.source, worker.feeds, worker.failures, worker.retry, worker.clock
        )
        self._partition = self._access.partition
        self._where = self._access.where
        self._receipts = self._stored_receipts()
        self._deadline = None if limit.seconds is None else worker.clock.monotonic() + limit.seconds
        self._pages_left = limit.pages
        self._failures = worker.failures
        self._finished = False
        self._draining = False
        self._feed: PageFeed | None = None
        self._feed_key = feed_key(row)
        self._chain = self._page_chain()
        self._run = self._new_run()

    def read(self, claim: Callable[[], bool]) -> Iterator[Emitted]:
        """Yields after each promotion and hold. Raises StoreError, and ConfigurationError where the source cannot be opened."""
        try:
            while not self._finished:
                try:
                    then = self._step(claim)
                    if then is _Then.READ_ON and not self._run.full(self._worker.clock.monotonic()):
                        continue
                    lost = yield from self._promote()
                    if then is _Then.LEAVE and not lost:
                        break
                except (SourceError, EffectError) as error:
                    yield from self._stop_at(error)
            if self._finished or self._row.chain in self._tally.caught_up:
                # Nobody may come by for a while: what the throttle has kept back is published now.
                self._worker.publisher.flush()
        finally:
            known = self._chain if self._run.pages == 0 else None
            self._run.abandon()
            self._leave_feed(known)

    def _step(self, claim: Callable[[], bool]) -> _Then:
        """Fetch and apply one page."""
        if self._run.finishes_chain or not to_be_read(self._row, self._worker.source):
            return _Then.LEAVE
        if self._slice_is_over() or not claim():
            return _Then.LEAVE
        page = self._fetch()
        if isinstance(page, _Then):
            return page
        began = self._worker.clock.monotonic()
        self._worker.on_step("fetched")
        with of_source(self._where):
            checked = self._chain.accept(page)
        if checked.idle:
            return self._caught_up()
        self._apply(checked)
        self._worker.on_step("applied")
        self._tally.pages += 1
        if self._pages_left is not None:
            self._pages_left -= 1
        self._tally.worked += self._worker.clock.monotonic() - began
        return self._caught_up() if page.caught_up else _Then.READ_ON

    def _caught_up(self) -> _Then:
        """The source has nothing further at present: promote what is in hand, and let the caller say when to ask again."""
        self._tally.caught_up.add(self._row.chain)
        if self._run.pages == 0:
            # It answered: what it failed before is over, though no promotion says so.
            self._failures.promoted(self._row.chain)
        return _Then.LEAVE

    def _slice_is_over(self) -> bool:
        left = self._pages_left is None or self._pages_left > 0
        in_time = self._deadline is None or self._worker.clock.monotonic() < self._deadline
        if left and in_time:
            return False
        if self._limit.goes_on or self._feed is None:
            return True
        self._draining = True
        self._feed.set_room(0, 0)
        return self._feed.waiting

    def _fetch(self) -> Page | _Then:
        """The next page; where it does not come, whether the run comes of age before this call's patience ends."""
        feed = self._feed or self._taken_feed()
        self._make_room(feed)
        began = self._worker.clock.monotonic()
        patience = self._patience(began)
        age = self._run.seconds_left(began)
        comes_of_age = age is not None and (patience is None or age < patience)
        try:
            with of_source(self._where):
                page = feed.next(age if comes_of_age else patience)
        finally:
            self._tally.waited += self._worker.clock.monotonic() - began
        if page is not None:
            self._make_room(feed, page)
            self._tally.fetching += feed.fetched_in
            return page
        return _Then.PROMOTE_FIRST if comes_of_age else _Then.LEAVE

    def _make_room(self, feed: PageFeed, in_hand: Page | None = None) -> None:
        """How far the feed may run ahead of the page in hand.

        What is fetched and not promoted is read again after a crash: together with the open run at most one run. And what is
        beyond the slice, unless the feed goes on after it, would be fetched for nothing."""
        if self._draining:
            return
        taken = 0 if in_hand is None else 1
        rows = max(0, self._worker.target_rows - self._run.rows - (0 if in_hand is None else len(in_hand)))
        if self._pages_left is None or self._limit.goes_on:
            feed.set_room(rows)
        else:
            feed.set_room(rows, max(0, self._pages_left - taken))

    def _patience(self, now: float) -> float | None:
        if self._deadline is None:
            return self._limit.patience
        left = max(0.0, self._deadline - now)
        return left if self._limit.patience is None else min(self._limit.patience, left)

    def _apply(self, checked: CheckedPage) -> None:
        """Give the page to the effect until every event has an outcome. Raises EventHeld where one is to be held."""
        receipts = [event for event in checked.page.ids if event in self._receipts] if self._receipts else []
        letters = self._run.skipped_letters(checked, self._receipts) if receipts else []
        # One that a pipeline delivered elsewhere goes into the file as well: whoever reads the manifest finds it nowhere else.
        skip = frozenset(e for e in receipts if self._receipts[e] == Terminal.DEAD_LETTERED.value)
        while failures := self._run.apply(checked, skip):
            given_up = self._given_up_on(failures)
            letters += [self._dead_letter(failure, checked) for failure in given_up]
            skip |= {failure.event_id for failure in given_up}
        self._run.accept(checked, self._worker.clock.monotonic(), letters, receipts)
        self._failures.applied(self._row.chain, checked.page.ids)

    def _given_up_on(self, failures: Sequence[EventFailure]) -> Sequence[EventFailure]:
        """Those of the failures that are tried no more; waits first where others are. Raises EventHeld."""
        retry = self._worker.retry
        counts = self._failures.events_failed(self._row.chain, [failure.event_id for failure in failures])
        again = [
            failure
            for failure in failures
            if failure.code == "unsettled_event" and counts[failure.event_id] < retry.attempts
        ]
        given_up = [failure for failure in failures if failure not in again]
        if given_up and self._worker.dead_letters is None:
            raise EventHeld(given_up[0])
        if again:
            delay = retry.delay(max(counts[failure.event_id] for failure in again))
            if self._worker.called_again:
                # A later call tries again; this one holds nobody up.
                raise EventHeld(again[0], retry_at=self._worker.clock.now() + timedelta(seconds=delay))
            self._worker.clock.sleep(delay)
        return given_up

    def _dead_letter(self, failure: EventFailure, checked: CheckedPage) -> DeadLetter:
        try:
            return self._run.dead_letter(failure, checked)
        except EffectError as error:
            reason = f"{failure.reason}; and it cannot be kept as a dead letter: {error.what}"
            raise EventHeld(replace(failure, reason=reason)) from error

    def _promote(self) -> Generator[Emitted, None, bool]:
        """Make the open run durable and swap the row; True where the swap was lost, and the row reread.

        A run of another generation is dropped: then, and where the run cannot be made durable, raises."""
        run, self._run = self._run, self._new_run()
        try:
            if run.pages == 0:
                return False
            if run.unproven_generation and self._row.generation:
                self._access.require_generation(self._row)
            promotion = run.promotion()
        finally:
            run.abandon()
        self._worker.on_step("durable")
        promoted = self._worker.store.promote(promotion)
        self._worker.on_step("committed")
        if promoted is None:
            yield from self._go_on_from(self._reread())
            return True
        self._row = promoted
        self._receipts = {e: o for e, o in self._receipts.items() if e not in (promotion.settled or ())}
        self._failures.promoted(self._row.chain)
        self._run = self._new_run()
        self._worker.publisher.tick()
        self._worker.on_step("published")
        yield self._progress()
        yield from promotion.dead_letters
        return False

    def _reread(self) -> ChainRow:
        """The row as it now stands, after a lost swap. A twin that has held it is through with it: it is opened again."""
        row = self._worker.store.chain(self._row.chain)
        if row.state is ChainState.HELD and row.fencing_token == self._task.fencing_token:
            return self._worker.store.take(row.chain, row.fencing_token) or self._worker.store.chain(
                row.chain
            )
        return row

    def _go_on_from(self, row: ChainRow) -> Iterator[Emitted]:
        """Leave what is in hand and read on from `row`: old and new are never merged."""
        fenced = row.fencing_token != self._task.fencing_token
        self._tally.caught_up.discard(row.chain)
        self._row = row
        self._receipts = self._stored_receipts()
        self._leave_feed()
        self._chain = self._page_chain()
        self._run = self._new_run()
        self._finished = fenced or not to_be_read(row, self._worker.source)
        yield self._progress()

    def _stop_at(self, error: SourceError | EffectError) -> Iterator[Emitted]:
        """Promote what was settled before the error, then restart the chain, or make the error its durable state."""
        try:
            lost = yield from self._promote()
        except (SourceError, EffectError) as later:
            # The run before the error could not be promoted either: that comes first in the chain, and is what holds it.
            error, lost = later, False
        if self._finished or lost:
            return
        if (
            isinstance(error, TokenExpired)
            and (token := self._access.restart_token(self._row.bound)) is not None
        ):
            yield from self._restart(token, error)
            return
        retry_at = self._retry_at(error)
        if retry_at is not None and not self._worker.called_again:
            # Nobody calls again: wait here. What was not promoted is fetched anew.
            self._worker.clock.sleep(max(0.0, (retry_at - self._worker.clock.now()).total_seconds()))
            yield from self._go_on_from(self._row)
        else:
            yield from self._hold(error, retry_at)

    def _retry_at(self, error: SourceError | EffectError) -> datetime | None:
        """When this error may be tried again within the run; None: no more, since it is no help, or too late for this run."""
        if isinstance(error, EventHeld):
            return error.retry_at
        return self._access.retry_at(error)

    def _restart(self, token: str, error: TokenExpired) -> Iterator[Emitted]:
        row = self._worker.store.restart(self._row, token, error.what)
        yield from self._go_on_from(self._reread() if row is None else row)

    def _hold(self, error: SourceError | EffectError, retry_at: datetime | None) -> Iterator[Emitted]:
        blocker = blocker_for(error, self._worker.clock.now(), retry_at)
        held = self._worker.store.hold(self._row, state_for(error), blocker)
        self._worker.on_step("held")
        yield from self._go_on_from(self._worker.store.chain(self._row.chain) if held else self._reread())
        self._finished = self._finished or held

    def _progress(self) -> PartitionProgress:
        return progress_of(self._row, self._task.domain, self._task.epoch, self._task.members)

    def _stored_receipts(self) -> Mapping[str, str]:
        # An operator's skip counts the event as a dead letter: without one, and without a blocker, there are no receipts.
        if self._row.blocker is None and not self._row.dead_letters:
            return {}
        return self._worker.store.receipts(self._row.chain)

    def _page_chain(self) -> PageChain:
        return self._access.page_chain(self._row, self._row.page_token, self._row.bound, self._row.read_to)

    def _new_run(self) -> OpenRun:
        return OpenRun(
            self._row,
            self._task.domain,
            self._worker.effect,
            self._worker.dead_letters,
            self._worker.target_rows,
            self._worker.max_run_seconds,
        )

    def _taken_feed(self) -> PageFeed:
        """The feed that an earlier call has left, with what that one knew of the pages before, or a new one.

        (A call that knew nothing of them would never find a circle of tokens that is longer than its slice.)"""
        key = feed_key(self._row)
        feed = self._worker.feeds.take(key, self._partition, self._chain.next_token, room=0)
        self._feed, self._feed_key = feed, key
        known, feed.chain = feed.chain, None
        if known is not None:
            self._chain = known
        return feed

    def _leave_feed(self, known: PageChain | None = None) -> None:
        """Park the feed where it stands at the committed token, so that a later call takes it up; else end it.

        `known` is what was seen of the pages before; None where not all of them were promoted."""
        feed, self._feed = self._feed, None
        if feed is None:
            return
        key = feed_key(self._row)
        goes_on = key == self._feed_key and to_be_read(self._row, self._worker.source)
        if goes_on and feed.stands_at(self._row.page_token):
            feed.chain = known
            self._worker.feeds.park(key, feed)
        else:
            self._worker.feeds.retire(feed)
