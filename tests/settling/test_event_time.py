"""Event time never passes the position it is of."""

import random

import pytest

from gapless.progress import IntegerDomain, ListDomain, TextDomain, TimestampDomain
from gapless.settling.event_time import event_micros


@pytest.mark.parametrize("precision", ["s", "ms", "us", "ns"])
def test_it_is_rounded_down_and_keeps_the_order(precision):
    domain = TimestampDomain(precision)
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[precision]
    some = random.Random(7)
    positions = sorted(
        some.randrange(-(10**13) * scale // 10**3, 10**13 * scale // 10**3) for _ in range(500)
    )
    times = [event_micros(domain, position) for position in positions]
    assert times == sorted(times)
    for position, time in zip(positions, times, strict=True):
        assert time * scale <= position * 10**6 < (time + 1) * scale


def test_a_list_goes_by_its_first_item():
    domain = ListDomain((TimestampDomain("ms"), IntegerDomain()))
    assert event_micros(domain, (7, 3)) == event_micros(domain, (7, 99)) == 7000


@pytest.mark.parametrize(
    ("domain", "position"),
    [
        (IntegerDomain(), 7),
        (TextDomain(), "7"),
        (ListDomain((IntegerDomain(), TimestampDomain("s"))), (1, 2)),
    ],
)
def test_what_is_no_instant_has_none(domain, position):
    assert event_micros(domain, position) is None
