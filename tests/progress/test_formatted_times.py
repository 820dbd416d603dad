"""Times in a declared format and zone name one instant each, or are refused."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import ConfigurationError, PositionError
from gapless.progress import TimestampDomain, domain_from

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def in_zone(pattern: str, zone: str | None = "America/New_York", precision: str = "s") -> TimestampDomain:
    return TimestampDomain(precision, format=pattern, zone=zone)


def seconds(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(seconds=1)


@given(
    st.datetimes(datetime(1890, 1, 1), datetime(2090, 1, 1)),
    st.sampled_from(["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
)
def test_a_local_time_is_the_one_instant_at_which_clocks_there_show_it(local: datetime, zone: str) -> None:
    domain = in_zone("%Y-%m-%d %H:%M:%S.%f", zone, "us")
    text = local.strftime("%Y-%m-%d %H:%M:%S.%f")
    shown = [
        instant
        for fold in (0, 1)
        if (instant := local.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(timezone.utc))
        .astimezone(ZoneInfo(zone))
        .replace(tzinfo=None)
        == local
    ]
    instants = {(instant - EPOCH) // timedelta(microseconds=1) for instant in shown}
    if len(instants) == 1:
        assert {domain.parse(text)} == instants
    else:
        with pytest.raises(PositionError, match="occurs twice" if instants else "never occurs"):
            domain.parse(text)


def test_a_time_that_occurs_twice_or_never_is_refused_with_what_to_do() -> None:
    domain = in_zone("%m/%d/%Y %H:%M")
    assert domain.parse("11/03/2013 00:59") == seconds("2013-11-03T04:59:00+00:00")
    assert domain.parse("11/03/2013 02:00") == seconds("2013-11-03T07:00:00+00:00")
    with pytest.raises(PositionError, match=r"occurs twice in America/New_York(.|\n)*send UTC or an offset"):
        domain.parse("11/03/2013 01:30")
    with pytest.raises(PositionError, match=r"never occurs in America/New_York(.|\n)*send UTC or an offset"):
        domain.parse("03/10/2013 02:30")


@pytest.mark.parametrize(
    ("pattern", "zone", "text", "expected"),
    [
        ("%d.%m.%Y", "Europe/Berlin", "1.7.2013", "2013-06-30T22:00:00+00:00"),
        ("%b %d, %Y %I:%M %p", "UTC", "Feb 29, 2024 12:05 AM", "2024-02-29T00:05:00+00:00"),
        ("%d %B %Y %I%p", "UTC", "05 MAY 2024 12pm", "2024-05-05T12:00:00+00:00"),
        ("%Y-%m-%dT%H:%M:%S%z", None, "2026-07-23T21:59:38+0530", "2026-07-23T16:29:38+00:00"),
        ("%Y-%m-%dT%H:%M:%S%z", None, "2026-07-23T21:59:38-05:30", "2026-07-24T03:29:38+00:00"),
        ("%Y-%m-%d %H:%M:%S %z", None, "1969-12-31 23:59:59 Z", "1969-12-31T23:59:59+00:00"),
        ("100%% %Y%m%d", "UTC", "100% 20240229", "2024-02-29T00:00:00+00:00"),
    ],
)
def test_these_formats_are_read(pattern: str, zone: str | None, text: str, expected: str) -> None:
    assert in_zone(pattern, zone).parse(text) == seconds(expected)


def test_fractions_are_exact_to_the_nanosecond_and_never_cut() -> None:
    domain = in_zone("%Y-%m-%d %H:%M:%S.%f", "UTC", "ns")
    assert domain.parse("1970-01-01 00:00:00.123456789") == 123456789
    with pytest.raises(PositionError, match="more digits"):
        domain.parse("1970-01-01 00:00:00.1234567891")


@pytest.mark.parametrize(
    ("pattern", "zone", "text", "message"),
    [
        ("%Y-%m-%d", "UTC", "2013-7-4 ", "does not fit the format"),
        ("%Y-%m-%d", "UTC", "٢٠١٣-07-04", "does not fit the format"),
        ("%Y.%m.%d", "UTC", "2013-07-04", "does not fit the format"),
        ("%Y-%m-%d", "UTC", "2013-02-29", "no date of the calendar"),
        ("%Y-%m-%d %I %p", "UTC", "2013-02-28 0 AM", "no time of day"),
        ("%Y-%m-%d %I %p", "UTC", "2013-02-28 13 PM", "no time of day"),
        ("%Y-%m-%d %H:%M:%S", "UTC", "2016-12-31 23:59:60", "leap second"),
        ("%Y-%m-%d %z", None, "2013-02-28 +24:00", "impossible offset"),
        ("%Y-%m-%d", "UTC", "0000-01-01", "outside the years 0001"),
        ("%Y-%m-%d %z", None, "0000-01-01 +23:00", "outside the years 0000"),
    ],
)
def test_what_names_no_instant_is_refused(pattern: str, zone: str | None, text: str, message: str) -> None:
    with pytest.raises(PositionError, match=message):
        in_zone(pattern, zone).parse(text)


@pytest.mark.parametrize(
    ("pattern", "zone", "message"),
    [
        ("%m-%d", "UTC", "lacks a year"),
        ("%Y-%m", "UTC", "lacks a day"),
        ("%Y-%d", "UTC", "exactly one month"),
        ("%Y-%m-%b-%d", "UTC", "exactly one month"),
        ("%Y-%m-%d %I", "UTC", "needs %H, or %I with %p"),
        ("%Y-%m-%d %H %p", "UTC", "needs %H, or %I with %p"),
        ("%Y-%m-%d %H %I %p", "UTC", "needs %H, or %I with %p"),
        ("%Y-%m-%d", None, "needs either an offset"),
        ("%Y-%m-%d %z", "UTC", "needs either an offset"),
        ("%Y-%m-%d", "Mars/Olympus", "zone 'Mars/Olympus' is not known"),
        ("%Y-%m-%d", "../etc/passwd", "is not known"),
        ("%Y-%m-%d", "", "is not known"),
        ("%Y-%m-%d %Q", "UTC", "%Q is unknown"),
        ("%Y-%m-%d %", "UTC", "% is unknown"),
        ("%Y-%m-%d %Y", "UTC", "names %Y twice"),
    ],
)
def test_a_format_that_names_no_instant_is_refused(pattern: str, zone: str | None, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        in_zone(pattern, zone)


def test_format_and_zone_stand_in_the_description() -> None:
    described = {"type": "timestamp", "precision": "s", "read": {"format": "%Y-%m-%d", "zone": "UTC"}}
    assert domain_from(described) == in_zone("%Y-%m-%d", "UTC")
    assert in_zone("%Y-%m-%d", "UTC").describe() == described
    with_offset = {"type": "timestamp", "precision": "s", "read": {"format": "%Y-%m-%d %z"}}
    assert domain_from(with_offset).describe() == with_offset


def test_a_typed_position_is_rfc3339_whatever_the_source_writes() -> None:
    domain = in_zone("%m/%d/%Y %H:%M")
    assert domain.from_text("2013-07-04T16:00:00Z") == domain.parse("07/04/2013 12:00")
