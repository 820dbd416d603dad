"""The driver of splittable DoFns calls them as an engine does, through Beam's own wrappers of the tracker."""

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.utils.timestamp import Duration, Timestamp

from gapless.testing.splittable_driver import SplittableDriver


class _Numbers(RestrictionProvider):
    def initial_restriction(self, element: int) -> OffsetRange:
        return OffsetRange(0, element)

    def create_tracker(self, restriction: OffsetRange) -> OffsetRestrictionTracker:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, element: int, restriction: OffsetRange) -> int:
        return restriction.size()


_NUMBERS = _Numbers()
_WATERMARK = ManualWatermarkEstimator.default_provider()


class Counting(beam.DoFn):
    """Emits the numbers of its restriction, three a call, then defers for five seconds. `lazy` leaves it unfinished."""

    def __init__(self, lazy: bool = False) -> None:
        self._lazy = lazy
        self.torn_down = False

    def process(
        self,
        element: int,
        tracker: Any = beam.DoFn.RestrictionParam(_NUMBERS),
        watermark: Any = beam.DoFn.WatermarkEstimatorParam(_WATERMARK),
    ) -> Iterator[int]:
        number = start = tracker.current_restriction().start
        while number < start + 3:
            if not tracker.try_claim(number):
                return
            yield number
            watermark.set_watermark(Timestamp(number))
            number += 1
        if not self._lazy:
            tracker.defer_remainder(Duration(seconds=5))

    def teardown(self) -> None:
        self.torn_down = True


def test_a_call_defers_what_is_left_with_its_delay_and_its_watermark() -> None:
    driver = SplittableDriver(Counting())
    first = driver.call(4)
    assert (first.emitted, first.residual) == ([0, 1, 2], OffsetRange(3, 4))
    assert first.delay == pytest.approx(5.0, abs=2.0)
    assert first.watermark == Timestamp(2)
    second = driver.call(4, first.residual, watermark_state=first.watermark_state)
    assert (second.emitted, second.residual, second.delay) == ([3], None, None)


def test_a_split_leaves_the_call_its_primary() -> None:
    called = SplittableDriver(Counting()).call(10, split_after=2)
    assert called.emitted == [0, 1]
    assert (called.primary, called.residual) == (OffsetRange(0, 2), OffsetRange(2, 10))


def test_a_restriction_that_is_left_unfinished_is_an_error() -> None:
    with pytest.raises(ValueError, match="claimed"):
        SplittableDriver(Counting(lazy=True)).call(10)


def test_a_call_may_die_in_the_middle() -> None:
    seen: list[int] = []
    called = SplittableDriver(Counting()).call(10, stop_after=1, on_emitted=seen.append)
    assert (called.emitted, called.residual, seen) == ([0], None, [0])


def test_it_is_torn_down_once() -> None:
    dofn = Counting()
    driver = SplittableDriver(dofn)
    driver.call(1)
    driver.close()
    driver.close()
    assert dofn.torn_down
