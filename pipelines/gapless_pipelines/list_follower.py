"""The source's list followed while a run reads: looked at again whenever everything planned is read."""

import logging
from collections.abc import Callable

from gapless.clock import Clock
from gapless.errors import SourceError
from gapless.paging.source import Session, Source
from gapless.plan import observe_again, readable
from gapless.progress import ChainState
from gapless.settling.local_run import LocalRun
from gapless.settling.publisher import Publisher
from gapless.store import Store
from gapless.store.records import MembershipPolicy

_LOGGER = logging.getLogger(__name__)


class ListFollower:
    """Takes in what the list has brought since the plan: newcomers, leavers, another routing. Raises StoreError."""

    def __init__(
        self,
        source: Source,
        store: Store,
        session: Session,
        policy: MembershipPolicy,
        run: LocalRun,
        clock: Clock,
    ) -> None:
        self._source = source
        self._store = store
        self._session = session
        self._policy = policy
        self._run = run
        self._clock = clock

    def again(self) -> bool:
        """Follow the list as far as is proved; whether something is to be read that was not before.

        A list that cannot be had, or must not be believed, stops nobody: what is read stays, and the next run tells of it."""
        if self._run.stopping.is_set():
            return False
        known = self._to_read()
        self.publish()
        try:
            observe_again(self._source, self._store, self._session, self._policy)
        except SourceError as error:
            _LOGGER.warning("the list of partitions was not looked at again: %s", error.what)
        self.publish()
        return not self._to_read() <= known

    def publish(self) -> None:
        Publisher(self._store, self._source.scope, clock=self._clock).publish()

    def _to_read(self) -> frozenset[tuple[int, str]]:
        """What a pass would read now: open chains, each under its routing generation."""
        snapshot = self._store.snapshot(self._source.scope)
        rows = readable(snapshot.scope, snapshot.chains, self._source)
        return frozenset((row.chain, row.generation) for row in rows if row.state is ChainState.OPEN)


def read_on(follower: ListFollower, read: Callable[[], int]) -> int:
    """Read and look at the list again, until there is nothing more to read; the passes that took."""
    done = read()
    while follower.again():
        done += read()
    return done
