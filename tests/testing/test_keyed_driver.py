"""The driver of stateful DoFns keeps to what an engine promises: bundles commit as a whole, timers fire when they are due."""

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import VarIntCoder
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from gapless.testing.keyed_driver import BundleLost, KeyedDriver


class Summing(beam.DoFn):
    """Emits the sum so far of each key; at the end of the window all of its values; every minute of the clock, its sum."""

    SUM = ReadModifyWriteStateSpec("sum", VarIntCoder())
    ALL = BagStateSpec("all", VarIntCoder())
    END = TimerSpec("end", TimeDomain.WATERMARK)
    MINUTE = TimerSpec("minute", TimeDomain.REAL_TIME)

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.seen = 0
        self.torn_down = False

    def process(
        self,
        element: tuple[str, int],
        total=beam.DoFn.StateParam(SUM),
        every=beam.DoFn.StateParam(ALL),
        end=beam.DoFn.TimerParam(END),
        minute=beam.DoFn.TimerParam(MINUTE),
        timestamp=beam.DoFn.TimestampParam,
        window=beam.DoFn.WindowParam,
    ) -> Iterator[Any]:
        self.seen += 1
        total.write((total.read() or 0) + element[1])
        every.add(element[1])
        end.set(window.max_timestamp())
        minute.set(Timestamp(self._clock.now().timestamp() + 60))
        if element[1] == 13:
            raise RuntimeError("thirteen")
        yield element[0], total.read(), timestamp

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield WindowedValue("done", MIN_TIMESTAMP, (GlobalWindow(),))

    def teardown(self) -> None:
        self.torn_down = True

    @on_timer(END)
    def at_the_end(self, key=beam.DoFn.KeyParam, every=beam.DoFn.StateParam(ALL)) -> Iterator[Any]:
        yield key, sorted(every.read())
        every.clear()

    @on_timer(MINUTE)
    def each_minute(self, key=beam.DoFn.KeyParam, total=beam.DoFn.StateParam(SUM)) -> Iterator[Any]:
        yield key, "minute", total.read()


@pytest.fixture
def driver() -> KeyedDriver:
    driver = KeyedDriver(lambda: Summing(driver.clock))
    return driver


def test_state_is_of_a_key_and_stays_between_bundles(driver: KeyedDriver) -> None:
    at = Timestamp(7)
    assert driver.bundle([("a", 1), ("b", 5), ("a", 2)], timestamp=at) == [
        ("a", 1, at),
        ("b", 5, at),
        ("a", 3, at),
        "done",
    ]
    driver.lose_worker()
    assert driver.bundle([("a", 4)])[0][:2] == ("a", 7)
    assert driver.worker.seen == 1
    assert (driver.state_entries("a"), driver.state_entries()) == (4, 6)
    assert driver.state_bytes("a") == 4


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_lost_bundle_changes_nothing_but_what_the_worker_remembers(driver: KeyedDriver, after: int) -> None:
    driver.bundle([("a", 1)])
    with pytest.raises(BundleLost):
        driver.bundle([("a", 2), ("c", 3)], crash_after=after)
    assert driver.worker.seen == 1 + after
    assert driver.state_entries("c") == 0
    assert driver.bundle([("a", 2)])[0][:2] == ("a", 3)
    assert [value for value in driver.outputs if value != "done"] == [
        ("a", 1, MIN_TIMESTAMP),
        ("a", 3, MIN_TIMESTAMP),
    ]


def test_a_bundle_in_which_the_dofn_raises_is_lost(driver: KeyedDriver) -> None:
    with pytest.raises(RuntimeError, match="thirteen"):
        driver.bundle([("a", 1), ("a", 13)])
    assert (driver.state_bytes(), driver.timers, driver.outputs) == (0, 0, [])


def test_timers_fire_once_when_they_are_due(driver: KeyedDriver) -> None:
    driver.bundle([("a", 2), ("a", 1)])
    assert driver.timers == 2
    assert driver.fire() == ["done"]
    driver.clock.advance(60)
    assert driver.fire() == [("a", "minute", 3), "done"]
    assert driver.fire(end_of_window=True) == [("a", [1, 2]), "done"]
    assert (driver.timers, driver.fire(end_of_window=True)) == (0, ["done"])


def test_a_worker_that_leaves_in_order_is_torn_down(driver: KeyedDriver) -> None:
    driver.bundle([("a", 1)])
    first = driver.worker
    driver.lose_worker()
    second = driver.worker
    driver.close()
    assert (first.torn_down, second.torn_down) == (False, True)
