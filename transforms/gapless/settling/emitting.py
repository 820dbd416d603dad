"""Reading for settling in the pipeline: claim, fetch, check, prove the generation, emit; page after page of one chain.

The loop knows no engine. It reads on from a `ReadingPoint`, the committed one at first, and never waits for what becomes of
the pages it has emitted: their outcomes come to somebody else, who promotes them. A page whose routing generation it does not
name itself is kept until the assignment, read after it, still says the chain's; then the run goes out, else it is dropped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from uuid import uuid4

from gapless.clock import Clock, SystemClock
from gapless.effects.protocol import Step, no_step
from gapless.emitted_page import EmittedPage, ReaderStop
from gapless.errors import SourceError
from gapless.paging.chain import CheckedPage, PageChain
from gapless.paging.page import Page
from gapless.paging.readahead import FeedPool, PageFeed
from gapless.paging.source import Source
from gapless.plan import progress_of
from gapless.progress import Bound, Terminal, highest
from gapless.settling.chain_access import ChainAccess, feed_key
from gapless.settling.foreign_errors import of_source
from gapless.settling.retrying import Failures, RetryPolicy
from gapless.settling.worker import MAX_RUN_SECONDS, Slice
from gapless.store import Store
from gapless.store.records import ChainRow
from gapless.updates import PartitionProgress, ReadTask

ROWS_AT_ONCE = 8192
"""A run of pages whose generation is not proved goes out at this size at the latest."""


@dataclass(frozen=True, slots=True)
class ReadingPoint:
    """Where a reader goes on: the page token, the sequence that page will have, and what the pages before it have shown.

    `bound` is what they certified and `read_to` covers their last position, promoted or not. `ended`: no page follows."""

    token: str | None = None
    number: int = 0
    bound: Bound | None = None
    read_to: Bound | None = None
    ended: bool = False

    @classmethod
    def of(cls, row: ChainRow) -> "ReadingPoint":
        """The committed one."""
        return cls(row.page_token, row.sequence, row.bound, row.read_to)

    def after(self, checked: CheckedPage) -> "ReadingPoint":
        """Where the page leads to.

        >>> page = Page("t1", "t2", False, ["a"], [7], [{}])
        >>> ReadingPoint("t1", 3).after(CheckedPage(page))
        ReadingPoint(token='t2', number=4, bound=None, read_to=Bound.through(7), ended=False)
        """
        page = checked.page
        certified = None if page.certificate is None else page.certificate.bound
        last = Bound.through(max(page.positions)) if page.positions else None
        return ReadingPoint(
            page.next_token,
            self.number + 1,
            highest(self.bound, certified),
            highest(self.read_to, last),
            checked.done,
        )


Move = Callable[[Sequence[EmittedPage], ReadingPoint], bool]


class Left(Enum):
    """Why a reading has ended."""

    REFUSED = "the engine or the process wants it to end"
    SLICE = "it has read its slice, and more is there"
    WAITING = "the next page did not come within its patience"
    CAUGHT_UP = "the source has nothing further at present"
    DONE = "the chain or its range has ended"
    FAILED = "the source raised an error"


@dataclass(slots=True)
class EmittingWorker:
    """What one thread needs to read chains, one at a time. `failures` are shared by the calls that follow each other."""

    source: Source
    store: Store
    feeds: FeedPool
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    failures: Failures = field(default_factory=Failures)
    clock: Clock = field(default_factory=SystemClock)
    max_run_seconds: float = MAX_RUN_SECONDS
    on_step: Step = no_step

    def access(self, task: ReadTask) -> ChainAccess:
        return ChainAccess(task, self.source, self.feeds, self.failures, self.retry, self.clock)


class Emission:
    """One reading of `row`'s chain from `point` on, within `limit`. Used once; afterwards `point` is where the next one goes on,
    `left` says why it ended, `error` with what, and `sent` counts the pages that went out."""

    def __init__(
        self, worker: EmittingWorker, task: ReadTask, row: ChainRow, point: ReadingPoint, limit: Slice
    ) -> None:
        self.point = point
        self.left: Left | None = Left.DONE if point.ended else None
        self.error: SourceError | None = None
        self.sent = 0
        self._worker = worker
        self._task = task
        self._row = row
        self._access = worker.access(task)
        self._limit = limit
        self._read = 0
        self._deadline = None if limit.seconds is None else worker.clock.monotonic() + limit.seconds
        self._receipts: Mapping[str, str] | None = None
        self._feed: PageFeed | None = None
        self._chain: PageChain | None = None
        self._reached = point
        self._run: list[EmittedPage] = []
        self._rows = 0
        self._unproven = False
        self._opened = 0.0

    def read(self, claim: Callable[[], bool], move: Move) -> Iterator[EmittedPage]:
        """The pages, in order. `claim` is asked before each fetch, and `move` before pages go out, with them and the point after
        them: where it says no, they do not, and whoever reads on from the point before them reads them again.

        Raises StoreError, and ConfigurationError where the source cannot be opened; errors of the source end the reading."""
        try:
            while self.left is None:
                try:
                    self.left = self._step(claim)
                except SourceError as error:
                    self.left, self.error = Left.FAILED, error
                if self.left is not None or self._is_due():
                    yield from self._send(move)
        finally:
            self._leave_feed()

    def _step(self, claim: Callable[[], bool]) -> Left | None:
        """Fetch and check one page."""
        if self._slice_is_over():
            return Left.SLICE
        if not claim():
            return Left.REFUSED
        page = self._fetch()
        if page is None:
            # The run has come of age first, or this call's patience has ended.
            return None if self._is_due() else Left.WAITING
        self._worker.on_step("fetched")
        with of_source(self._access.where):
            checked = self._judgement().accept(page)
        if not checked.idle:
            self._take(checked)
        if checked.done:
            return Left.DONE
        return Left.CAUGHT_UP if page.caught_up else None

    def _slice_is_over(self) -> bool:
        if self._limit.pages is not None and self._read >= self._limit.pages:
            return True
        return self._deadline is not None and self._worker.clock.monotonic() >= self._deadline

    def _fetch(self) -> Page | None:
        feed = self._feed or self._taken_feed()
        left = None if self._limit.pages is None else self._limit.pages - self._read
        self._make_room(feed, left)
        now = self._worker.clock.monotonic()
        waits = [] if self._limit.patience is None else [self._limit.patience]
        if self._deadline is not None:
            waits.append(self._deadline - now)
        if self._run:
            waits.append(self._opened + self._worker.max_run_seconds - now)
        with of_source(self._access.where):
            page = feed.next(max(0.0, min(waits)) if waits else None)
        if page is not None and left is not None:
            self._make_room(feed, left - 1)
        return page

    def _make_room(self, feed: PageFeed, left: int | None) -> None:
        if left is None or self._limit.goes_on:
            feed.set_room(ROWS_AT_ONCE)
        else:
            # Beyond the slice it would be fetched for nothing.
            feed.set_room(ROWS_AT_ONCE, left)

    def _take(self, checked: CheckedPage) -> None:
        page = checked.page
        if not self._run:
            self._opened = self._worker.clock.monotonic()
        if self._receipts is None:
            self._receipts = self._worker.store.receipts(self._row.chain)
        known = {event: Terminal(self._receipts[event]) for event in page.ids if event in self._receipts}
        self._run.append(
            EmittedPage(
                task=self._task,
                attempt=uuid4().hex,
                number=self._reached.number,
                start_token=page.start_token,
                next_token=page.next_token,
                ids=page.ids,
                positions=page.positions,
                rows=page.rows,
                certificate=page.certificate,
                generation=self._row.generation,
                violations=checked.violations,
                settled=known or None,
                resume=page.resume,
            )
        )
        self._rows += len(page)
        self._read += 1
        self._unproven = self._unproven or (page.generation is None and bool(self._row.generation))
        self._reached = self._reached.after(checked)

    def _is_due(self) -> bool:
        """Whether what was read is to go out: at once where its generation is proved."""
        if not self._run:
            return False
        age = self._worker.clock.monotonic() - self._opened
        return not self._unproven or self._rows >= ROWS_AT_ONCE or age >= self._worker.max_run_seconds

    def _send(self, move: Move) -> Iterator[EmittedPage]:
        run, self._run = self._run, []
        if not run:
            return
        try:
            if self._unproven:
                self._access.require_generation(self._row)
        except SourceError as error:
            # It comes before whatever else has failed, and is what stops the chain.
            self.left, self.error = Left.FAILED, error
            return
        self._unproven, self._rows = False, 0
        if not move(run, self._reached):
            self.left, self.error = Left.REFUSED, None
            return
        self.point = self._reached
        self.sent += len(run)
        self._worker.failures.promoted(self._row.chain)
        for page in run:
            yield page
            self._worker.on_step("emitted")

    def _taken_feed(self) -> PageFeed:
        """The feed that an earlier call has left, with what that one knew of the pages before, or a new one."""
        access = self._access
        feed = self._worker.feeds.take(feed_key(self._row), access.partition, self.point.token, room=0)
        self._chain, feed.chain = feed.chain, None
        self._feed = feed
        return feed

    def _judgement(self) -> PageChain:
        if self._chain is None:
            point = self.point
            self._chain = self._access.page_chain(self._row, point.token, point.bound, point.read_to)
        return self._chain

    def _leave_feed(self) -> None:
        feed, self._feed = self._feed, None
        if feed is None:
            return
        if self._limit.goes_on and not self.point.ended and feed.stands_at(self.point.token):
            # Only where nothing is known beyond the point: what was read and did not go out is read again.
            feed.chain = self._chain if self._reached == self.point else None
            self._worker.feeds.park(feed_key(self._row), feed)
        else:
            self._worker.feeds.retire(feed)


def told(task: ReadTask, row: ChainRow) -> EmittedPage:
    """The element that tells where a chain stands."""
    progress = progress_of(row, task.domain, task.epoch, task.members)
    return EmittedPage(task, "", row.sequence, row.page_token, row.page_token, progress=progress)


def stopped(task: ReadTask, point: ReadingPoint, stop: ReaderStop) -> EmittedPage:
    """The element that tells why a reader has stopped."""
    return EmittedPage(task, "", point.number, point.token, point.token, stop=stop)


def as_planned(progress: PartitionProgress) -> EmittedPage:
    """Where a chain stood when it was planned, as the element that tells of it. Its task names the chain; it is none to read."""
    task = ReadTask(
        scope=progress.scope,
        domain=progress.domain,
        chain=progress.chain,
        partition=progress.partition,
        fields="{}",
        fencing_token=progress.fencing_token,
        lineage=progress.lineage,
        epoch=progress.epoch,
        members=progress.members,
        member=progress.member,
        run_id="",
    )
    return EmittedPage(task, "", progress.sequence, progress=progress)
