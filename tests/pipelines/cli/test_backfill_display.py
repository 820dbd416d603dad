import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gapless.errors import StoreBusy
from gapless.plan import progress_of
from gapless.store_ref import StoreRef
from gapless.testing import ManualClock
from gapless_pipelines.cli.backfill_display import Display, Lines, Picture
from gapless_pipelines.cli.run_progress import RunProgress, View

BUSY = StoreBusy("locked")


class Screen:
    """Keeps what it was shown; `until` waits for a view that is wanted."""

    every = 0.001

    def __init__(self) -> None:
        self.views: list[View] = []
        self.closed = False
        self._changed = threading.Condition()

    def show(self, view: View) -> None:
        with self._changed:
            self.views.append(view)
            self._changed.notify_all()

    def close(self) -> None:
        self.closed = True

    def until(self, wanted: Any) -> View:
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(wanted, self.views)), 30)
            return next(filter(wanted, self.views))


def begin(orders: Any, screen: Screen, clock: ManualClock, **options: Any) -> Display:
    display = Display(StoreRef("sqlite:///progress.db"), "orders", clock, lambda: screen)
    scope = orders.store.scope("orders")
    start = [progress_of(row, scope.domain, 1, 2) for row in orders.rows.values()]
    display.begin(RunProgress(start, clock.monotonic()), **options)
    return display


def test_it_shows_what_readers_leave_and_what_is_published(orders: Any) -> None:
    orders.begin("a", "b")
    screen, clock = Screen(), ManualClock()
    display = begin(orders, screen, clock)
    try:
        assert screen.until(lambda view: True).frontier == "no frontier yet"
        for name in ("a", "b"):
            row = orders.promote(name, 40)
            display.update(progress_of(row, orders.domain, 1, 2))
        orders.publish()
        clock.advance(2.0)
        view = screen.until(lambda view: view.frontier != "no frontier yet")
        assert (view.frontier, view.events, view.rate) == ("complete through 40, certified", 20, 10.0)
    finally:
        display.end()
    assert screen.closed


def test_it_reads_the_chains_from_the_store_where_readers_are_elsewhere(orders: Any) -> None:
    orders.begin("a", "b")
    screen, clock = Screen(), ManualClock()
    display = begin(orders, screen, clock, follow_store=True)
    try:
        orders.promote("a", 40)
        clock.advance(2.0)
        assert screen.until(lambda view: view.events).events == 10
    finally:
        display.end()


def test_a_busy_store_leaves_what_was_seen_before(orders: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.begin("a")
    orders.promote("a", 40)
    orders.publish()
    screen, clock = Screen(), ManualClock()
    display = begin(orders, screen, clock)
    try:
        screen.until(lambda view: view.frontier == "complete through 40, certified")

        def busy(self: object, name: str) -> None:
            raise BUSY

        monkeypatch.setattr("gapless.store.Store.scope", busy)
        clock.advance(2.0)
        view = screen.until(lambda view: view.seconds == 2.0)
        assert view.frontier == "complete through 40, certified"
    finally:
        display.end()


def test_ending_what_has_not_begun_does_nothing(folder: Path) -> None:
    display = Display(StoreRef("sqlite:///progress.db"), "orders", ManualClock(), Screen)
    display.put_back()
    display.end()


def test_updates_before_the_beginning_are_of_no_use(orders: Any) -> None:
    orders.begin("a")
    display = Display(StoreRef("sqlite:///progress.db"), "orders", ManualClock(), Screen)
    display.update(progress_of(orders.rows["a"], orders.domain, 1, 1))
    display.end()


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.show(RunProgress([], now=0.0).view(1.0, "no frontier yet"))
    lines.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "1 s: 0 of 0 partitions done, 0 events, 0/s; no frontier yet\n"


def test_a_picture_shows_the_lowest_partitions_and_leaves_nothing_behind(orders: Any) -> None:
    names = [f"p{number:02}" for number in range(30)]
    orders.begin(*names)
    start = [progress_of(row, orders.domain, 1, 30) for row in orders.rows.values()]
    console = Console(file=(written := _Text()), force_terminal=True, width=100, height=20, color_system=None)
    picture = Picture(console)
    picture.show(RunProgress(start, now=0.0).view(1.0, "no frontier yet"))
    shown = written.text
    assert "0 of 30 partitions done" in shown
    assert "p00" in shown
    assert "p11" in shown
    assert "p12" not in shown
    assert "and 18 more" in shown
    picture.close()
    assert "\x1b[?25h" in written.text[len(shown) :]


class _Text:
    """A terminal that keeps what was written."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Everything is there already."""

    def isatty(self) -> bool:
        return True
