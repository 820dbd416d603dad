"""Fetching ahead: one thread a chain asks for the next page while the present one is being applied.

A page fetched ahead is a fetch attempt like any other: it is used only where its start token equals the committed one, so
nothing rests on it. What is fetched and not promoted is read again after a crash; the room bounds how much that can be.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable

from gapless.paging.chain import PageChain
from gapless.paging.page import Page, Partition
from gapless.paging.source import Session

MAX_PAGES_AHEAD = 32
MAX_ROWS_AHEAD = 8192


class PageFeed:
    """The pages of one chain from `token` on, fetched by a thread of its own, at most `room` events ahead.

    `next` gives them in order; an error of the source surfaces there, after the pages before it. After a page at which the source
    has nothing further, another one is asked for only when it is wanted. Used by one consumer. `chain` is where that consumer
    may leave what it knows of the pages so far, while the feed is parked. `fetched_in` is how many seconds the source took for
    the page that was given last."""

    def __init__(self, session: Session, partition: Partition, token: str | None, room: int) -> None:
        self.session = session
        self.token = token
        self.chain: PageChain | None = None
        self.fetched_in = 0.0
        self._partition = partition
        self._room = room
        self._pages = MAX_PAGES_AHEAD
        self._ready: deque[Page | BaseException] = deque()
        self._seconds: deque[float] = deque()
        self._rows = 0
        self._changed = threading.Condition()
        self._stopped = False
        self._finished = False
        self._wanted = False
        self._given_out = False
        self._caught_up = False
        self._thread = threading.Thread(target=self._fill, args=(token,), name="gapless-fetch", daemon=True)
        self._thread.start()

    def next(self, timeout: float | None = None) -> Page | None:
        """The next page; None when `timeout` seconds passed without one. Raises what the fetch raised."""
        with self._changed:
            self._wanted = True
            self._changed.notify_all()
            try:
                if not self._changed.wait_for(lambda: self._ready, timeout):
                    return None
            finally:
                self._wanted = False
            item = self._ready[0]
            if isinstance(item, BaseException):
                raise item
            self._ready.popleft()
            self.fetched_in = self._seconds.popleft()
            self._rows -= len(item)
            self._changed.notify_all()
        self.token = item.next_token
        self._given_out = item.end
        return item

    def stands_at(self, token: str | None) -> bool:
        """Whether the next thing this feed gives is the page that starts with `token`, and no error.

        A feed that has given the chain's last page stands nowhere: its next token, None, is no start."""
        return self.token == token and not self._given_out and not self._failed()

    def set_room(self, room: int, pages: int = MAX_PAGES_AHEAD) -> None:
        """How many events and pages may be fetched and not yet taken. A page that is waited for is fetched in any case."""
        with self._changed:
            self._room = room
            self._pages = min(pages, MAX_PAGES_AHEAD)
            self._changed.notify_all()

    @property
    def waiting(self) -> bool:
        """True while nothing is ready: the consumer would have to wait."""
        return not self._ready

    def stop(self) -> None:
        """Ask the thread to end after the fetch it is in. Does not wait."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def finished(self) -> bool:
        """The thread makes no further use of the session."""
        return self._finished

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _failed(self) -> bool:
        with self._changed:
            return bool(self._ready) and isinstance(self._ready[0], BaseException)

    def _may_fetch(self) -> bool:
        if self._stopped:
            return True
        ahead = len(self._ready)
        if self._caught_up:
            return ahead == 0 and self._wanted
        if ahead == 0:
            return self._wanted or (self._room > 0 and self._pages > 0)
        return ahead < self._pages and self._rows + self._rows // ahead <= min(self._room, MAX_ROWS_AHEAD)

    def _fill(self, token: str | None) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(self._may_fetch)
                    if self._stopped:
                        return
                began = time.monotonic()
                try:
                    page = self.session.fetch(self._partition, token)
                except BaseException as error:  # noqa: BLE001 - handed to the consumer, which raises it
                    with self._changed:
                        self._ready.append(error)
                        self._changed.notify_all()
                    return
                with self._changed:
                    self._ready.append(page)
                    self._seconds.append(time.monotonic() - began)
                    self._rows += len(page)
                    self._caught_up = page.caught_up
                    self._changed.notify_all()
                if page.end:
                    return
                token = page.next_token
        finally:
            self._finished = True


class FeedPool:
    """The feeds of one process for one source: a feed that is parked goes on fetching and is taken up where it stands.

    At most `limit` are parked. Sessions are used again, so that connections are; never by two threads at a time. Thread-safe."""

    def __init__(self, open_session: Callable[[], Session], parked: int = 8) -> None:
        self._open_session = open_session
        self.limit = parked
        self._parked: OrderedDict[Hashable, PageFeed] = OrderedDict()
        self._retired: list[PageFeed] = []
        self._idle: list[Session] = []
        self._lock = threading.Lock()
        self._closed = False

    def take(self, key: Hashable, partition: Partition, token: str | None, room: int) -> PageFeed:
        """The parked feed of `key` where it stands at `token`, else a new one from there."""
        with self._lock:
            feed = self._parked.pop(key, None)
        if feed is not None:
            if feed.stands_at(token):
                feed.set_room(room)
                return feed
            self.retire(feed)
        return PageFeed(self.session(), partition, token, room)

    def park(self, key: Hashable, feed: PageFeed) -> None:
        """Let it go on fetching ahead until it is taken again, or pushed out by newer ones."""
        out: list[PageFeed] = []
        with self._lock:
            if self._closed:
                out.append(feed)
            else:
                stale = self._parked.pop(key, None)
                if stale is not None:
                    out.append(stale)
                self._parked[key] = feed
                while len(self._parked) > self.limit:
                    out.append(self._parked.popitem(last=False)[1])
        for old in out:
            self.retire(old)

    def retire(self, feed: PageFeed) -> None:
        """End a feed; its session is used again once its thread is out of it."""
        feed.stop()
        with self._lock:
            self._retired.append(feed)

    def session(self) -> Session:
        """An open session nobody uses now."""
        with self._lock:
            still = []
            for feed in self._retired:
                if feed.finished:
                    self._idle.append(feed.session)
                else:
                    still.append(feed)
            self._retired = still
            if self._idle:
                return self._idle.pop()
        return self._open_session()

    def give_back(self, session: Session) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(session)
                return
        session.close()

    def close(self) -> None:
        """Stop every feed; sessions are closed as their threads leave them, without waiting for a slow source."""
        with self._lock:
            self._closed = True
            feeds = [*self._parked.values(), *self._retired]
            self._parked.clear()
            self._retired = []
            idle, self._idle = self._idle, []
        for feed in feeds:
            feed.stop()
        for feed in feeds:
            feed.join(timeout=0.2)
            if feed.finished:
                idle.append(feed.session)
        for session in idle:
            session.close()
