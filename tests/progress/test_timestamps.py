"""Instants are read exactly, from RFC 3339 and from counts since 1970, and written back with all their digits."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from progress_strategies import FIRST_SECOND, LAST_SECOND, instants

from gapless.errors import ConfigurationError, PositionError
from gapless.progress import Bound, TimestampDomain
from gapless.progress.instants import PRECISIONS

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
aware = st.datetimes(
    datetime(1, 1, 2),
    datetime(9999, 12, 30),
    timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


@given(aware)
def test_rfc3339_is_read_as_datetime_reads_it(instant: datetime) -> None:
    expected = (instant - EPOCH) // timedelta(microseconds=1)
    assert TimestampDomain("us").parse(instant.isoformat()) == expected
    assert TimestampDomain("ns").parse(instant.isoformat()) == expected * 1000


@given(st.sampled_from(sorted(PRECISIONS)).flatmap(lambda p: st.tuples(st.just(p), instants(PRECISIONS[p]))))
def test_the_canonical_text_is_utc_with_all_digits_and_leads_back(case: tuple[str, int]) -> None:
    precision, position = case
    domain = TimestampDomain(precision)
    text = domain.text(position)
    assert domain.parse(text) == domain.from_text(text) == position
    assert text.endswith("Z")
    assert len(text) == len("2026-07-23T16:29:38Z") + (PRECISIONS[precision] + 1 if precision != "s" else 0)


@given(st.integers(FIRST_SECOND, LAST_SECOND - 1))
def test_the_text_of_the_next_second_is_greater(second: int) -> None:
    domain = TimestampDomain("s")
    assert domain.text(second) < domain.text(second + 1)


@given(
    instants(9),
    st.sampled_from(["unix_s", "unix_ms", "unix_us", "unix_ns"]),
    st.sampled_from(sorted(PRECISIONS)),
)
def test_a_count_is_the_same_instant_in_every_unit_or_refused(
    nanoseconds: int, reading: str, precision: str
) -> None:
    unit, kept = 10 ** (9 - PRECISIONS[reading[5:]]), 10 ** (9 - PRECISIONS[precision])
    count = nanoseconds // unit
    domain = TimestampDomain(precision, reading)
    if count * unit % kept:
        for raw in (count, str(count)):
            with pytest.raises(PositionError, match=r"finer|more digits"):
                domain.parse(raw)
    else:
        assert domain.parse(count) == domain.parse(str(count)) == count * unit // kept


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1900-02-28T23:59:59Z", -2203891201 * 10**9),
        ("2024-02-29T12:00:00Z", 1709208000 * 10**9),
        ("2000-02-29t12:00:00z", 951825600 * 10**9),
        ("2026-07-23 21:59:38+05:30", 1784824178 * 10**9),
        ("2026-07-23T16:29:38-00:00", 1784824178 * 10**9),
        ("2026-12-31T23:30:00-00:45", 1798762500 * 10**9),
        ("0000-01-01T00:00:00Z", FIRST_SECOND * 10**9),
        ("9999-12-31T23:59:59.999999999Z", (LAST_SECOND + 1) * 10**9 - 1),
        ("1970-01-01T00:00:00.1230000000000000Z", 123_000_000),
    ],
)
def test_these_instants_are_read_to_the_nanosecond(text: str, nanoseconds: int) -> None:
    assert TimestampDomain("ns").parse(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2026-07-23T16:29:38", "names no offset"),
        ("2026-07-23", "no RFC 3339 time"),
        ("2026-07-23T16:29Z", "no RFC 3339 time"),
        ("2026-07-23T16:29:38.Z", "no RFC 3339 time"),
        ("2026-07-23T16:29:38,5Z", "no RFC 3339 time"),
        ("2026-07-23T16:29:38+0530", "no RFC 3339 time"),
        ("2026-07-23T16:29:38+05", "no RFC 3339 time"),
        ("2026-07-23T16:29:38 Z", "no RFC 3339 time"),
        ("2026-07-23T16:29:38Z\n", "no RFC 3339 time"),
        ("٢٠٢٦-07-23T16:29:38Z", "no RFC 3339 time"),
        ("20260723T162938Z", "no RFC 3339 time"),
        ("", "no RFC 3339 time"),
        ("now", "no RFC 3339 time"),
        ("1784824178", "no RFC 3339 time"),
        ("2023-02-29T00:00:00Z", "no date of the calendar"),
        ("1900-02-29T00:00:00Z", "no date of the calendar"),
        ("2026-00-01T00:00:00Z", "no date of the calendar"),
        ("2026-13-01T00:00:00Z", "no date of the calendar"),
        ("2026-04-31T00:00:00Z", "no date of the calendar"),
        ("2026-04-00T00:00:00Z", "no date of the calendar"),
        ("2026-07-23T24:00:00Z", "no time of day"),
        ("2026-07-23T16:60:00Z", "no time of day"),
        ("2016-12-31T23:59:60Z", "leap second"),
        ("2016-12-31T23:59:61Z", "no time of day"),
        ("2026-07-23T16:29:38+24:00", "impossible offset"),
        ("2026-07-23T16:29:38+05:60", "impossible offset"),
        ("0000-01-01T00:00:00+00:01", "outside the years"),
        ("9999-12-31T23:59:59-00:01", "outside the years"),
        ("2026-07-23T16:29:38.0000001Z", "more digits"),
    ],
)
def test_what_is_no_exact_instant_is_refused_by_name(text: str, message: str) -> None:
    domain = TimestampDomain("us")
    for read in (domain.parse, domain.from_text):
        with pytest.raises(PositionError, match=message):
            read(text)


@pytest.mark.parametrize(
    ("precision", "fits", "too_fine"),
    [("s", "38", "38.1"), ("ms", "38.001", "38.0011"), ("us", "38.000001", "38.0000011")],
)
def test_digits_beyond_the_precision_are_an_error_unless_they_are_zero(
    precision: str, fits: str, too_fine: str
) -> None:
    domain = TimestampDomain(precision)
    exact = domain.parse(f"2026-07-23T16:29:{fits}Z")
    assert domain.parse(f"2026-07-23T16:29:{fits}{'' if '.' in fits else '.'}000Z") == exact
    with pytest.raises(PositionError, match="declare the finer precision"):
        domain.parse(f"2026-07-23T16:29:{too_fine}Z")


@pytest.mark.parametrize(
    ("reading", "precision", "raw", "position"),
    [
        ("unix_s", "ms", "1700000000.123", 1700000000123),
        ("unix_s", "s", "1700000000.000", 1700000000),
        ("unix_ms", "ns", "1.5", 1_500_000),
        ("unix_ms", "s", -2000, -2),
        ("unix_s", "us", "-0.000001", -1),
    ],
)
def test_counts_come_as_decimal_text_too(reading: str, precision: str, raw: object, position: int) -> None:
    assert TimestampDomain(precision, reading).parse(raw) == position


@pytest.mark.parametrize(
    ("reading", "precision", "raw"),
    [
        ("unix_s", "s", "1.5"),
        ("unix_ms", "s", 1500),
        ("unix_ms", "s", "1500"),
        ("unix_ms", "s", "1000.5"),
        ("unix_s", "s", 10**15),
        ("unix_s", "s", "1e9"),
        ("unix_s", "s", "2026-07-23T16:29:38Z"),
        ("unix_s", "s", ""),
    ],
)
def test_counts_that_are_no_exact_instant_are_refused(reading: str, precision: str, raw: object) -> None:
    with pytest.raises(PositionError):
        TimestampDomain(precision, reading).parse(raw)


def test_an_instant_outside_the_calendar_has_no_text() -> None:
    with pytest.raises(PositionError, match="outside the years"):
        TimestampDomain("s").text(LAST_SECOND + 1)
    with pytest.raises(PositionError, match="whole units"):
        TimestampDomain("s").text("2026-07-23T16:29:38Z")


def test_the_next_instant_after_an_inclusive_bound_is_one_unit_later() -> None:
    domain = TimestampDomain("ms")
    through = Bound.through(domain.parse("2024-02-28T23:59:59.999Z"))
    assert domain.text(domain.exclusive(through).position) == "2024-02-29T00:00:00.000Z"


@pytest.mark.parametrize(
    "declared",
    [
        {"precision": "m"},
        {"precision": "us", "read": "unix"},
        {"precision": "us", "zone": "UTC"},
        {"precision": "us", "read": "unix_s", "format": "%Y-%m-%d", "zone": "UTC"},
    ],
)
def test_an_impossible_declaration_is_refused(declared: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        TimestampDomain(**declared)
