"""What the readers of one stream share in a process: a chain that one of them leaves may be taken up by another."""

import threading
from dataclasses import dataclass, field

from gapless.paging.readahead import FeedPool
from gapless.paging.source import Source
from gapless.settling.retrying import Failures

FEEDS_KEPT = 64
"""So many chains of a stream go on fetching between two calls; each has a thread and a session."""


@dataclass(slots=True)
class SharedFeeds:
    """The feeds of a run's chains in this process, and what has failed in them. `give_up` when no longer used."""

    key: tuple[str, str]
    feeds: FeedPool
    failures: Failures = field(default_factory=Failures)
    users: int = 0

    def give_up(self) -> None:
        """The last user closes the feeds."""
        with _lock:
            self.users -= 1
            if self.users or _shared.get(self.key) is not self:
                return
            del _shared[self.key]
        self.feeds.close()


_shared: dict[tuple[str, str], SharedFeeds] = {}
_lock = threading.Lock()


def shared_feeds(run_id: str, source: Source) -> SharedFeeds:
    """Join the readers of that run in this process."""
    key = (run_id, source.scope)
    with _lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = SharedFeeds(key, FeedPool(source.open, parked=FEEDS_KEPT))
        found.users += 1
        return found
