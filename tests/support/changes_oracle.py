"""The oracle of sources that change: what is published, held against what the source itself knows of its events.

At any moment every event at or below the frontier that a member of the epoch owns, or one that has left in order, is in the data
set; where the list is certified, every event there is.
"""

from collections.abc import Sequence

import pyarrow.parquet as pq
from restless_api import RestlessApi

from gapless.progress import Bound
from gapless.store import Store, open_store
from gapless.store.records import FrontierRow


class Untrue(AssertionError):
    """What is published does not hold."""


class Oracle:
    """What is in the data set, held against what is published."""

    def __init__(self, url: str, api: RestlessApi) -> None:
        self._url = url
        self._api = api
        self._rows: dict[str, list[str]] = {}
        self._last: tuple[int, Bound | None] = (0, None)
        self.looks = 0

    def look(self) -> None:
        with open_store(self._url, readonly=True) as store:
            # The data set first: it only grows under one membership epoch, and the epoch is looked at again afterwards.
            while True:
                before = store.snapshot("changing").scope
                rows = self.delivered(store)
                snapshot = store.snapshot("changing")
                departed = self._departed(store)
                if snapshot.scope.epoch == before.epoch == store.scope("changing").epoch:
                    break
        self._judge(before, rows, [row.partition for row in snapshot.chains if row.is_member], departed)

    def _departed(self, store: Store) -> list[str]:
        return [row.partition for row in store.promotions("changing")]

    def _judge(
        self, scope: FrontierRow, rows: set[str], members: Sequence[str], departed: Sequence[str]
    ) -> None:
        self.looks += 1
        epoch, frontier = self._last
        if scope.epoch < epoch or (
            frontier is not None and (scope.frontier is None or scope.frontier < frontier)
        ):
            raise Untrue(f"went back from {self._last} to {(scope.epoch, scope.frontier)}")
        self._last = (scope.epoch, scope.frontier)
        if scope.frontier is None:
            return
        names = {*members, *departed}
        promised = self._api.promised(scope.generation, names)
        if scope.list_certified:
            promised = {f"e{at}": at for at in self._api.owners[scope.generation]}
        missing = [one for one, at in promised.items() if scope.frontier.covers(at) and one not in rows]
        if missing:
            raise Untrue(f"{scope.frontier} is published under epoch {scope.epoch} without {sorted(missing)}")

    def delivered(self, store: Store) -> set[str]:
        return {event for path in self._paths(store) for event in self._in(path)}

    def every_row(self) -> list[str]:
        with open_store(self._url, readonly=True) as store:
            return sorted(event for path in self._paths(store) for event in self._in(path))

    def _paths(self, store: Store) -> list[str]:
        return [row.path for row in store.promotions("changing") if row.path is not None]

    def _in(self, path: str) -> list[str]:
        if path not in self._rows:
            self._rows[path] = pq.read_table(path, columns=["_event_id"])["_event_id"].to_pylist()
        return self._rows[path]
