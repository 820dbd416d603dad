"""Column types: what goes in comes out, and equal values are stored equal."""

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql, sqlite

from gapless.store.columns import UtcTime, armoured, canonical_json, unarmoured

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_every_text_comes_back_from_a_form_that_a_database_can_hold(text):
    stored = armoured(text)
    assert unarmoured(stored) == text
    assert "\x00" not in stored
    stored.encode("utf-8")


@given(any_text, any_text)
def test_equal_texts_are_stored_equal_and_others_are_not(first, second):
    assert (armoured(first) == armoured(second)) == (first == second)


@given(st.datetimes(min_value=datetime(1000, 1, 1)), st.integers(-23, 23))
def test_instants_of_any_zone_come_back_in_utc(naive, hours):
    instant = naive.replace(tzinfo=timezone(timedelta(hours=hours)))
    for dialect in (sqlite.dialect(), postgresql.dialect()):
        stored = UtcTime().process_bind_param(instant, dialect)
        back = UtcTime().process_result_value(stored, dialect)
        assert back == instant
        assert back.utcoffset() == timedelta(0)


def test_json_is_one_text_whatever_the_order_of_its_keys():
    assert canonical_json({"b": 1, "a": [2**80, "é"]}) == canonical_json({"a": [2**80, "é"], "b": 1})
    assert canonical_json({"b": 1, "a": 2**80}) == '{"a":1208925819614629174706176,"b":1}'
