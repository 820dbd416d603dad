"""Chains of a source that are settled in the pipeline, on a driver that stands for an engine."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from random import Random
from typing import Any

from emitted_pages import emitted

from gapless.emitted_page import EmittedPage, Outcome
from gapless.plan import plan_run
from gapless.store import Store, open_store
from gapless.store.records import ChainRow
from gapless.store_ref import StoreRef
from gapless.testing.keyed_driver import KeyedDriver
from gapless.track_open_pages import TrackInBatch, TrackInStream
from gapless.tracking.log_entry import LogEntry, entries_of
from gapless.updates import PlanRequest, ReadTask


def keyed(*said: EmittedPage | Outcome) -> list[tuple[str, LogEntry]]:
    """As they come to the tracker."""
    entries: list[LogEntry] = []
    for each in said:
        entries += [LogEntry(each)] if isinstance(each, Outcome) else entries_of(each)
    return [(entry.key, entry) for entry in entries]


class TrackedChains:
    """One scope of `source` in the store at `url`; `driver` tracks it."""

    def __init__(self, url: str, source: Any, *, stream: bool = False, only_at_the_end: bool = False) -> None:
        self.url = url
        self.source = source
        self.stack = ExitStack()
        self.store: Store = self.stack.enter_context(closing(open_store(url, create=True)))
        self.runs = 0
        self.tasks: dict[str, ReadTask] = {}
        self.new_run()
        kind = TrackInStream if stream else TrackInBatch
        make: Callable[[], Any] = lambda: kind(  # noqa: E731
            StoreRef(url), self.driver.clock, only_at_the_end=only_at_the_end
        )
        self.driver = KeyedDriver(make)
        self.stack.callback(self.driver.close)

    @classmethod
    def beside(cls, other: "TrackedChains") -> "TrackedChains":
        """Another engine that tracks the same chains for the same run."""
        twin = cls.__new__(cls)
        twin.__dict__.update(other.__dict__, stack=ExitStack())
        twin.driver = KeyedDriver(lambda: TrackInBatch(StoreRef(other.url), twin.driver.clock))
        twin.stack.callback(twin.driver.close)
        return twin

    def close(self) -> None:
        self.stack.close()

    def new_run(self) -> None:
        """Plan a run, the newest, and take its chains: whoever reads for the one before is fenced."""
        self.runs += 1
        plan = plan_run(self.source, self.store, PlanRequest(self.source.scope, f"run-{self.runs}", "test"))
        self.tasks = {task.partition: task for task in plan.tasks}
        for task in plan.tasks:
            self.store.take(task.chain, task.fencing_token)

    def row(self, partition: str) -> ChainRow:
        rows = self.store.snapshot(self.source.scope).chains
        return next(row for row in rows if row.partition == partition)

    def read(self, partition: str, reader: str, most: int = 10_000) -> list[EmittedPage]:
        """Pages from the committed token on, as a reader of that name reads them now."""
        row = self.row(partition)
        if row.state.value == "ended":
            return []
        return list(
            emitted(
                self.source,
                self.tasks[partition],
                token=row.page_token,
                number=row.sequence,
                reader=reader,
                bound=row.bound,
                read_to=row.read_to,
                most=most,
            )
        )

    def read_at(self, partition: str, token: str | None, number: int) -> EmittedPage:
        """The page at a token."""
        task = self.tasks[partition]
        return next(emitted(self.source, task, token=token, number=number, reader=f"at {token}", most=1))

    def bundle(self, *said: EmittedPage | Outcome, **more: Any) -> list[Any]:
        return self.driver.bundle(keyed(*said), **more)

    def shuffled(self, said: Iterable[EmittedPage | Outcome], random: Random) -> None:
        """In bundles of random size, in random order."""
        rest = list(said)
        random.shuffle(rest)
        while rest:
            size = random.randint(1, 5)
            self.bundle(*rest[:size])
            rest = rest[size:]
