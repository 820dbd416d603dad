"""What is seen of a run while it goes on: a picture that is redrawn on a terminal, else a line now and then.

A thread of its own draws. It reads the published frontier from the store, by a connection of its own; readers only leave where
their chains stand. Rich is imported where there is a terminal, once the run has begun.
"""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from gapless.clock import Clock
from gapless.errors import StoreError
from gapless.plan import progress_of
from gapless.updates import PartitionProgress
from gapless_pipelines.cli.printing import on_terminal, say
from gapless_pipelines.cli.run_progress import RunProgress, View, frontier_text, partition_cells, view_line

if TYPE_CHECKING:
    from rich.console import Console

    from gapless.store import Store
    from gapless.store_ref import StoreRef

DRAW_SECONDS = 0.25
LINE_SECONDS = 10.0
FRONTIER_SECONDS = 1.0
_ROWS_SHOWN = 12


class Screen(Protocol):
    """Shows views, one in place of the other."""

    @property
    def every(self) -> float: ...

    def show(self, view: View) -> None: ...

    def close(self) -> None: ...


class Lines:
    """A line a view, for logs and pipes."""

    every = LINE_SECONDS

    def show(self, view: View) -> None:
        say(view_line(view))

    def close(self) -> None:
        """There is nothing to be put back."""


class News:
    """A line a view where something has come, or is held, since the one before; for streams, which are mostly quiet."""

    every = LINE_SECONDS

    def __init__(self) -> None:
        self._shown: tuple[object, ...] = ()

    def show(self, view: View) -> None:
        told = (view.events, view.pages, view.held, view.partitions, view.frontier)
        if told != self._shown:
            self._shown = told
            say(view_line(view))

    def close(self) -> None:
        """There is nothing to be put back."""


class Picture:
    """A summary line and the partitions that stand lowest, redrawn in place."""

    every = DRAW_SECONDS

    def __init__(self, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = console or Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, view: View) -> None:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="bold")
        for heading in ("partition", "state", "complete"):
            table.add_column(heading, overflow="ellipsis", no_wrap=True)
        for heading in ("pages", "events"):
            table.add_column(heading, justify="right")
        room = max(1, min(_ROWS_SHOWN, self._console.height - 5))
        for cells in partition_cells(view.lowest[:room]):
            table.add_row(*map(Text, cells))
        more = len(view.lowest) - room
        rest = [Text(f"  and {more:,} more", style="dim")] if more > 0 else []
        bar = ProgressBar(
            total=max(1, view.partitions), completed=view.done, width=min(60, self._console.width)
        )
        self._live.update(Group(Text(view_line(view), style="bold"), bar, table, *rest), refresh=True)

    def close(self) -> None:
        self._live.stop()


class Display:
    """Draws a run from `begin` to `end`. `update` is the run's `on_progress`: cheap, from any thread.

    `follow_store`: chains are read from the store where the readers are in other processes."""

    def __init__(
        self, store: "StoreRef", scope: str, clock: Clock, screen: Callable[[], Screen] | None = None
    ) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._make_screen = screen or (Picture if on_terminal() else Lines)
        self._screen: Screen | None = None
        self._progress: RunProgress | None = None
        self._follow_store = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="gapless-display", daemon=True)

    def begin(self, progress: RunProgress, *, follow_store: bool = False) -> None:
        self._progress = progress
        self._follow_store = follow_store
        self._thread.start()

    def update(self, progress: PartitionProgress) -> None:
        if self._progress is not None:
            self._progress.update(progress)

    def end(self) -> None:
        """Stop drawing and put the terminal back. Ending what has not begun does nothing."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def put_back(self) -> None:
        """Make the cursor visible again, now, whatever the thread is doing: the process ends right after."""
        if self._screen is not None and on_terminal():
            # Past Python's buffers: this runs in a signal handler.
            os.write(2, b"\x1b[?25h")

    def _draw(self) -> None:
        self._screen = screen = self._make_screen()
        try:
            with self._store.open(readonly=True) as store:
                self._draw_until_ended(screen, store)
        except StoreError:
            # The run meets the same error, and is who tells it.
            return
        finally:
            screen.close()

    def _draw_until_ended(self, screen: Screen, store: "Store") -> None:
        assert self._progress is not None
        frontier, read_at = "no frontier yet", float("-inf")
        while not self._ended.wait(screen.every):
            now = self._clock.monotonic()
            if now - read_at >= FRONTIER_SECONDS:
                frontier, read_at = self._look(store, frontier), now
            screen.show(self._progress.view(now, frontier))

    def _look(self, store: "Store", before: str) -> str:
        """The published frontier; what was seen before where the store is too busy to say. The run itself reports errors."""
        try:
            if self._follow_store:
                self._take_from(store)
            return frontier_text(store.scope(self._scope))
        except StoreError:
            return before

    def _take_from(self, store: "Store") -> None:
        snapshot = store.snapshot(self._scope)
        members = sum(row.is_member for row in snapshot.chains)
        for row in snapshot.chains:
            self.update(progress_of(row, snapshot.scope.domain, snapshot.scope.epoch, members))
