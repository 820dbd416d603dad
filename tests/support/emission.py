"""Readers for settling in the pipeline on the settling bench, and promotions of what they emit, as a tracker makes them."""

from collections.abc import Callable, Sequence
from typing import Any

from gapless.emitted_page import EmittedPage
from gapless.polling import Polling
from gapless.progress import Bound, highest
from gapless.settling.emit_chain import emit_chain
from gapless.settling.emit_stream import EmittingStream
from gapless.settling.emitting import EmittingWorker
from gapless.settling.retrying import RetryPolicy
from gapless.settling.stream_calls import slice_among
from gapless.settling.stream_state import StreamState
from gapless.store import Store
from gapless.store.records import ChainRow, Promotion

PLENTY = 1000
POLLING = Polling(every=1.0, longest=8.0, look_every=30.0)


def promote(store: Store, pages: Sequence[EmittedPage]) -> ChainRow:
    """Promote these pages, which begin at the committed token, under the fencing token they were read with."""
    row = store.chain(pages[0].task.chain)
    assert pages[0].start_token == row.page_token
    assert pages[0].task.fencing_token == row.fencing_token
    bound: Bound | None = None
    read_to: Bound | None = None
    for page in pages:
        bound = highest(bound, page.certificate.bound if page.certificate else None)
        read_to = highest(read_to, Bound.through(max(page.positions)) if page.positions else None)
    promoted = store.promote(
        Promotion(
            expected=row,
            pages=len(pages),
            token_in=row.page_token,
            token_out=pages[-1].next_token,
            bound=bound,
            basis=row.basis,
            read_to=read_to,
            end=pages[-1].next_token is None,
            events=sum(len(page.ids) for page in pages),
            path=None,
            digest=None,
            rows=0,
        )
    )
    assert promoted is not None
    return promoted


class EmittingRun:
    """A run of a source on the bench (`tests/settling/conftest.py`), whose chains one worker reads."""

    def __init__(self, bench: Any, source: Any, **options: Any) -> None:
        run = bench.run(source)
        self.store: Store = run.store
        self.plan = run.plan
        self.clock = bench.clock
        self.worker = EmittingWorker(
            source=source,
            store=self.store,
            feeds=run.feeds,
            retry=options.pop("retry", RetryPolicy(attempts=3)),
            clock=bench.clock,
            **options,
        )

    def task(self, partition: str) -> Any:
        return next(task for task in self.plan.tasks if task.partition == partition)

    def emit(
        self, partition: str, most: int = PLENTY, claim: Callable[[], bool] = lambda: True
    ) -> list[EmittedPage]:
        """A batch's one call, without where the chain stands."""
        out = list(emit_chain(self.worker, self.task(partition), claim, most))
        return [page for page in out if page.progress is None]

    def stream(self, partition: str, *, max_open_pages: int = 256) -> "Stream":
        return Stream(EmittingStream(self.worker, POLLING, max_open_pages), self.task(partition))


class Stream:
    """One chain of a stream, call by call. `state` is what is left to be read on from, `due` when; `out` the pages so far."""

    def __init__(self, stream: EmittingStream, task: Any) -> None:
        self._stream = stream
        self._task = task
        self.state = StreamState()
        self.due: float | None = 0.0
        self.out: list[EmittedPage] = []
        self.refuse_after: int | None = None
        """So many claims are let through, and then the engine has split the rest off."""

    def poll(self) -> list[EmittedPage]:
        """One call: the pages and stops it emitted."""
        calls = self._stream.poll(self._task, self.state, self._claim, slice_among(1))
        emitted = []
        while True:
            try:
                emitted.append(next(calls))
            except StopIteration as end:
                self.due = end.value
                break
        pages = [page for page in emitted if page.progress is None]
        self.out += [page for page in pages if page.is_page]
        return pages

    def wait(self) -> "Stream":
        """Let the clock go on until the next call is due."""
        assert self.due is not None
        self._stream.worker.clock.sleep(self.due)
        return self

    def _claim(self, state: StreamState) -> bool:
        if self.refuse_after is not None:
            if self.refuse_after == 0:
                return False
            self.refuse_after -= 1
        self.state = state
        return True


def ids(pages: Sequence[EmittedPage]) -> list[str]:
    return [event for page in pages for event in page.ids]
