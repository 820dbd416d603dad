import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import ConfigurationError
from gapless.paging.source_text import source_text
from gapless.progress import Domain, IntegerDomain, ListDomain, TextDomain, TimestampDomain

INSTANTS = st.integers(-(10**15), 10**16)


@given(
    INSTANTS,
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from(["rfc3339", "unix_s", "unix_ms", "unix_us", "unix_ns"]),
)
def test_what_is_sent_reads_back_as_the_very_position(units: int, precision: str, read: str) -> None:
    domain = TimestampDomain(precision, read=read)
    position = domain.from_text(TimestampDomain("us").text(units // 10**6 * 10**6))
    assert domain.parse(source_text(domain, position)) == position


@given(st.integers())
def test_integers_are_written_at_any_size(position: int) -> None:
    assert source_text(IntegerDomain(), position) == str(position)


@pytest.mark.parametrize(
    ("domain", "position", "text"),
    [
        (TextDomain(), "a b", "a b"),
        (TimestampDomain("ns", read="unix_s"), 1_500_000_000, "1.5"),
        (TimestampDomain("s", read="unix_ns"), -2, "-2000000000"),
        (TimestampDomain("us", read="unix_ms"), -1, "-0.001"),
        (
            TimestampDomain("s", format="%m/%d/%Y %H:%M", zone="America/New_York"),
            1372953600,
            "07/04/2013 12:00",
        ),
        (
            TimestampDomain("ms", format="%Y-%m-%dT%H:%M:%S.%f%z"),
            1784824178500,
            "2026-07-23T16:29:38.500+0000",
        ),
        (ListDomain((IntegerDomain(), TextDomain())), (7, "b"), '["7","b"]'),
    ],
)
def test_each_domain_is_written_as_its_source_writes_it(domain: Domain, position: object, text: str) -> None:
    assert source_text(domain, position) == text  # type: ignore[arg-type]


def test_a_format_that_cannot_name_the_position_refuses() -> None:
    domain = TimestampDomain("s", format="%m/%d/%Y %H:%M", zone="America/New_York")
    with pytest.raises(ConfigurationError, match="cannot be written in the declared format"):
        source_text(domain, 1372953601)
    with pytest.raises(ConfigurationError):
        source_text(domain, 1383456600)  # 01:30 on the night the clocks went back
