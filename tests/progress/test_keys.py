"""Keys order bounds as bytes, in every domain, and lead back to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from progress_strategies import bounds_in, domain_and_bounds

from gapless.errors import PositionError
from gapless.progress import (
    NO_BOUND,
    NO_CAP,
    Bound,
    Domain,
    IntegerDomain,
    ListDomain,
    TextDomain,
    TimestampDomain,
)


@given(domain_and_bounds)
def test_keys_are_in_the_order_of_their_bounds(case: tuple[Domain, list[Bound]]) -> None:
    domain, bounds = case
    for first in bounds:
        for second in bounds:
            assert (domain.key(first) < domain.key(second)) == (first < second)


@given(domain_and_bounds)
def test_a_key_leads_back_to_its_bound(case: tuple[Domain, list[Bound]]) -> None:
    domain, bounds = case
    for bound in bounds:
        assert domain.from_key(domain.key(bound)) == bound


@given(domain_and_bounds)
def test_no_bound_is_below_and_no_cap_above_every_key(case: tuple[Domain, list[Bound]]) -> None:
    domain, bounds = case
    for bound in bounds:
        assert domain.key(None) == NO_BOUND < domain.key(bound) < NO_CAP
    assert domain.from_key(NO_BOUND) is None


@pytest.mark.parametrize("bits", [8 * 111 - 1, 8 * 112 - 1, 8 * 112, 8 * 113, 8 * 70_000])
def test_integers_keep_their_order_where_their_length_is_written_otherwise(bits: int) -> None:
    domain, edge = IntegerDomain(), 1 << bits
    numbers = [-edge - 1, -edge, -edge + 1, -1, 0, 1, edge - 1, edge, edge + 1]
    keys = [domain.key(Bound.before(number)) for number in numbers]
    assert keys == sorted(keys)
    assert all(key < NO_CAP for key in keys)
    assert [domain.from_key(key) for key in keys] == [Bound.before(number) for number in numbers]


def test_these_keys_are_stored_and_never_change() -> None:
    pair = ListDomain((TimestampDomain("us"), TextDomain()))
    assert {
        "0": IntegerDomain().key(Bound.before(0)).hex(),
        "1": IntegerDomain().key(Bound.through(1)).hex(),
        "-1": IntegerDomain().key(Bound.through(-1)).hex(),
        "256": IntegerDomain().key(Bound.before(256)).hex(),
        "text": TextDomain().key(Bound.through("a\0b")).hex(),
        "empty": TextDomain().key(Bound.before("")).hex(),
        "pair": pair.key(Bound.through((1_000_000, "é"))).hex(),
    } == {
        "0": "8001",
        "1": "810102",
        "-1": "7efe02",
        "256": "82010001",
        "text": "6100ff62000102",
        "empty": "000101",
        "pair": "830f4240c3a9000102",
    }


@pytest.mark.parametrize(
    "key",
    [
        "00",
        "01",
        "0001",
        "8000",
        "8102",
        "81010203",
        "ff01",
        "7f01",
        "800201",
        "82000101",
        "f0" + "00" * 7 + "010101",
    ],
)
def test_bytes_that_are_no_key_of_integers_are_refused(key: str) -> None:
    with pytest.raises(PositionError, match="no key"):
        IntegerDomain().from_key(bytes.fromhex(key))


@pytest.mark.parametrize(
    "key", ["01", "6101", "610001", "6100ff01", "ff000102", "61000202", "6100010061000102"]
)
def test_bytes_that_are_no_key_of_text_are_refused(key: str) -> None:
    with pytest.raises(PositionError, match="no key"):
        TextDomain().from_key(bytes.fromhex(key))


@given(
    domain_and_bounds.flatmap(
        lambda case: st.tuples(st.just(case[0]), bounds_in(case[0]), st.binary(max_size=12))
    )
)
def test_bytes_are_refused_or_are_the_key_of_what_they_decode_to(
    case: tuple[Domain, Bound, bytes],
) -> None:
    domain, bound, noise = case
    for damaged in (noise, domain.key(bound)[:-1], domain.key(bound) + noise):
        try:
            decoded = domain.from_key(damaged)
        except PositionError:
            continue
        assert domain.key(decoded) == damaged


@pytest.mark.parametrize(
    ("domain", "bound"),
    [
        (IntegerDomain(), Bound.before("a")),
        (TextDomain(), Bound.before(1)),
        (TimestampDomain("s"), Bound.before("a")),
        (ListDomain((IntegerDomain(),)), Bound.before(1)),
        (ListDomain((IntegerDomain(),)), Bound.before((1, 2))),
        (TextDomain(), Bound.before("\ud800")),
    ],
)
def test_a_bound_of_another_domain_has_no_key(domain: Domain, bound: Bound) -> None:
    with pytest.raises(PositionError):
        domain.key(bound)
