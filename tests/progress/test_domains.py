"""Domains read exactly what a source may send, refuse the rest by name, and write positions as text and back."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from progress_strategies import domain_and_bounds, domain_and_position, domains, integers, texts

from gapless.errors import ConfigurationError, NotComparable, PositionError
from gapless.progress import (
    Bound,
    Domain,
    IntegerDomain,
    ListDomain,
    Position,
    TextDomain,
    TimestampDomain,
    coarsen,
    domain_from,
    infer_domain,
    parse_decimal_units,
)

PAIR = ListDomain((TimestampDomain("us"), IntegerDomain()))


@given(domain_and_position)
def test_text_leads_back_to_its_position(case: tuple[Domain, Position]) -> None:
    domain, position = case
    assert domain.from_text(domain.text(position)) == position


@given(domains)
def test_a_description_leads_back_to_its_domain(domain: Domain) -> None:
    described = json.loads(json.dumps(domain.describe()))
    assert domain_from(described) == domain
    assert pickle.loads(pickle.dumps(domain)) == domain
    assert hash(domain_from(described)) == hash(domain)


@given(integers)
def test_integers_are_exact_at_any_size_as_number_or_text(value: int) -> None:
    domain = IntegerDomain()
    assert domain.parse(value) == value
    assert domain.parse(domain.text(value)) == value
    assert domain.parse(domain.text(value).encode().decode()) == value


@pytest.mark.parametrize("digits", [4299, 4300, 4301, 20_000])
def test_integers_have_no_limit_on_their_digits(digits: int) -> None:
    domain, text = IntegerDomain(), "-" + "7" * digits
    value = domain.parse(text)
    assert value == -7 * (10**digits - 1) // 9
    assert domain.text(value) == text


@pytest.mark.parametrize(
    ("raw", "value"),
    [("0", 0), ("-0", 0), ("+5", 5), ("007", 7), ("-12", -12), ("18446744073709551617", 2**64 + 1)],
)
def test_integers_come_as_decimal_text_too(raw: str, value: int) -> None:
    assert IntegerDomain().parse(raw) == value


@pytest.mark.parametrize(
    "raw", ["", " 1", "1 ", "1.0", "1e3", "0x10", "1_000", "٣", "--1", "+", "1\n", "NaN", "null"]
)
def test_text_that_is_no_decimal_integer_is_refused(raw: str) -> None:
    with pytest.raises(PositionError, match="no decimal integer"):
        IntegerDomain().parse(raw)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (True, "boolean"),
        (None, "null"),
        (1.0, "float"),
        (float("nan"), "float"),
        ([1], "array"),
        ({}, "object"),
    ],
)
@pytest.mark.parametrize(
    "domain", [IntegerDomain(), TextDomain(), TimestampDomain("ns"), TimestampDomain("s", "unix_s"), PAIR]
)
def test_other_json_values_are_no_positions_and_are_named(domain: Domain, raw: object, kind: str) -> None:
    with pytest.raises(PositionError) as caught:
        domain.parse(raw)
    assert kind in str(caught.value) or isinstance(domain, ListDomain)


def test_a_float_is_refused_with_what_to_do() -> None:
    with pytest.raises(PositionError, match="send an integer or decimal text"):
        IntegerDomain().parse(7.0)
    with pytest.raises(PositionError, match=r"send an integer \(unix_ms, unix_us\) or decimal text"):
        TimestampDomain("ms", "unix_s").parse(1700000000.5)


@given(texts)
def test_text_is_kept_as_it_is(value: str) -> None:
    assert TextDomain().parse(value) == value


@pytest.mark.parametrize("raw", [1, "\ud800", "a\udfffb"])
def test_what_is_no_unicode_text_is_refused(raw: object) -> None:
    with pytest.raises(PositionError):
        TextDomain().parse(raw)


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=2))
def test_text_is_ordered_by_code_point_as_its_utf8_is(values: list[str]) -> None:
    ordered = sorted(values, key=Bound.before)
    assert ordered == sorted(values, key=lambda value: value.encode("utf-8"))


def test_lists_are_read_item_by_item_and_to_any_depth() -> None:
    nested = ListDomain((TextDomain(), PAIR))
    position = nested.parse(["a", ["1970-01-01T00:00:01Z", "5"]])
    assert position == ("a", (1_000_000, 5))
    assert nested.text(position) == '["a",["1970-01-01T00:00:01.000000Z","5"]]'
    assert nested.from_text('["a", ["1970-01-01T00:00:01Z", 5]]') == position


@pytest.mark.parametrize("raw", [[1], [1, 2, 3], [], "ab", None, 5])
def test_lists_have_the_declared_length(raw: object) -> None:
    with pytest.raises(PositionError, match="expected"):
        ListDomain((IntegerDomain(), IntegerDomain())).parse(raw)


@pytest.mark.parametrize(
    "text", ["", "[", "5", '["5"]', '["a",true]', '["a",1.0]', '["a",null]', '[5,"5"]', '{"a":1}']
)
def test_text_that_is_no_array_of_the_items_is_refused(text: str) -> None:
    with pytest.raises(PositionError):
        ListDomain((TextDomain(), IntegerDomain())).from_text(text)


@given(domain_and_bounds)
def test_an_exclusive_form_covers_the_same(case: tuple[Domain, list[Bound]]) -> None:
    domain, bounds = case
    for bound in bounds:
        if not bound.inclusive:
            assert domain.exclusive(bound) == bound
        elif domain.discrete:
            assert domain.exclusive(bound) == Bound.before(bound.position + 1)  # type: ignore[operator]
        else:
            with pytest.raises(NotComparable, match="no next position"):
                domain.exclusive(bound)


def test_integers_and_instants_are_discrete_text_and_lists_are_not() -> None:
    assert IntegerDomain().discrete
    assert TimestampDomain("s").discrete
    assert not TextDomain().discrete
    assert not PAIR.discrete


@given(st.integers(-50, 50), st.booleans(), st.integers(1, 12), st.integers(-60, 60))
def test_a_coarser_bound_claims_nothing_more(position: int, inclusive: bool, grain: int, other: int) -> None:
    bound = Bound(position, inclusive)
    coarse = coarsen(bound, grain)
    assert not coarse.inclusive
    if coarse.covers(other // grain):
        assert bound.covers(other)


@given(st.integers(), st.booleans(), st.integers(1))
def test_a_coarser_bound_is_the_highest_that_claims_nothing_more(
    position: int, inclusive: bool, grain: int
) -> None:
    bound = Bound(position, inclusive)
    coarse = coarsen(bound, grain)
    assert isinstance(coarse.position, int)
    assert not bound.covers((coarse.position + 1) * grain - 1)


@pytest.mark.parametrize("grain", [0, -1, 1.5, True])
def test_a_grain_is_a_positive_whole_number(grain: int) -> None:
    with pytest.raises(ValueError, match="coarser unit"):
        coarsen(Bound.before(1), grain)


def test_text_has_no_coarser_unit() -> None:
    with pytest.raises(NotComparable):
        coarsen(Bound.before("a"), 10)


@given(st.integers(), st.integers(0, 12))
def test_decimal_units_are_exact(units: int, places: int) -> None:
    sign, magnitude = ("-" if units < 0 else ""), str(abs(units)).rjust(places + 1, "0")
    text = f"{sign}{magnitude[:-places]}.{magnitude[-places:]}" if places else f"{sign}{magnitude}"
    assert parse_decimal_units(text, places) == units
    assert parse_decimal_units(text + ("000" if places else ""), places) == units


@pytest.mark.parametrize("text", ["", ".", "1.", ".5", "1e3", "nan", "1.0000001", " 1", "1,5"])
def test_what_is_no_decimal_number_in_these_units_is_refused(text: str) -> None:
    with pytest.raises(PositionError):
        parse_decimal_units(text, 6)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("integer", "is no domain"),
        (None, "is no domain"),
        ({}, "type None is unknown"),
        ({"type": "float"}, "'float' is unknown"),
        ({"type": ["integer"]}, "is unknown"),
        ({"type": "integer", "precision": "us"}, "has no precision"),
        ({"type": "text", "collation": "de_DE"}, "collation 'de_DE' is unknown"),
        ({"type": "text", "collation": 5}, "collation 5 is unknown"),
        ({"type": "timestamp"}, "needs `precision`"),
        ({"type": "timestamp", "precision": "m"}, "precision 'm' is none of s, ms, us, ns"),
        ({"type": "timestamp", "precision": "s", "read": "iso"}, "read 'iso' is none of"),
        ({"type": "timestamp", "precision": "s", "read": 5}, "is no reading"),
        ({"type": "timestamp", "precision": "s", "read": {"format": "%Y", "tz": "UTC"}}, "is no reading"),
        ({"type": "timestamp", "precision": "s", "read": {"zone": "UTC"}}, "is no reading"),
        ({"type": "list"}, "needs `items`"),
        ({"type": "list", "items": []}, "at least one"),
        ([], "at least one"),
        ([{"type": "integer"}, {"type": "floats"}], "'floats' is unknown"),
    ],
)
def test_an_impossible_domain_is_refused_with_what_is_allowed(description: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        domain_from(description)


def test_a_list_may_be_written_bare() -> None:
    assert domain_from([{"type": "text"}, [{"type": "integer"}]]) == ListDomain(
        (TextDomain(), ListDomain((IntegerDomain(),)))
    )


@pytest.mark.parametrize("name", ["binary", "C", "POSIX", "ucs_basic"])
def test_the_collation_by_code_point_has_the_names_databases_give_it(name: str) -> None:
    assert TextDomain(name) == TextDomain("binary")


@pytest.mark.parametrize("value", ["9", None, True, 1.5, {}, [], [1, "a"]])
def test_only_integers_have_an_order_without_a_declaration(value: object) -> None:
    with pytest.raises(NotComparable, match="no order of its own"):
        infer_domain(value)


def test_a_declared_collation_gives_text_and_lists_of_it_an_order() -> None:
    assert infer_domain([1, "a"], "C") == ListDomain((IntegerDomain(), TextDomain()))
