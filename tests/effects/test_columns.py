"""Rows become columns; what does not fit goes to `_rest` and is counted."""

import json
from typing import Any

import pyarrow as pa
import pytest

from gapless.effects import FrozenSchema, infer_schema
from gapless.effects.columns import ColumnBuilder, NullsEnd

SCHEMA = FrozenSchema({"id": "string", "n": "int64"})


def rest_of(rows: list[dict[str, Any]], schema: FrozenSchema = SCHEMA) -> dict[int, Any]:
    columns = ColumnBuilder(schema).build(rows)
    rest = columns.rest.to_pylist() if columns.rest is not None else []
    found = {index: json.loads(text) for index, text in enumerate(rest) if text is not None}
    assert columns.in_rest == len(found)
    return found


def test_alike_rows_become_columns_and_nothing_is_left_over() -> None:
    columns = ColumnBuilder(SCHEMA).build([{"id": "a", "n": 1}, {"n": 2, "id": "b"}])
    assert {name: array.to_pylist() for name, array in columns.arrays.items()} == {
        "id": ["a", "b"],
        "n": [1, 2],
    }
    assert columns.rest is None
    assert (columns.in_rest, columns.drift, columns.unwritable) == (0, {}, {})


def test_an_unknown_key_is_kept_in_rest() -> None:
    assert rest_of([{"id": "a", "n": 1}, {"id": "b", "n": 1, "extra": [1]}]) == {1: {"extra": [1]}}


def test_an_unknown_key_is_seen_also_where_another_row_lacks_one() -> None:
    # As many keys in total as rows times columns: counting alone would miss it.
    assert rest_of([{"id": "a"}, {"id": "b", "n": 1, "extra": 1}]) == {1: {"extra": 1}}
    assert rest_of([{"id": "a", "extra": 1}, {"id": "b", "n": 1}]) == {0: {"extra": 1}}


def test_an_unknown_key_that_is_null_says_nothing() -> None:
    assert rest_of([{"id": "a", "n": 1, "extra": None}]) == {}


@pytest.mark.parametrize("value", ["x", 2.5, 2.0, True, 2**63, -(2**63) - 1, 2**200, {"a": 1}, [], ""])
def test_a_value_of_another_kind_is_kept_in_rest_exactly(value: Any) -> None:
    rest = rest_of([{"id": "a", "n": 1}, {"id": "b", "n": value}])
    assert rest == {1: {"n": value}}
    assert type(rest[1]["n"]) is type(value)


def test_several_misfits_of_one_event_count_once() -> None:
    columns = ColumnBuilder(SCHEMA).build([{"id": 1, "n": "x", "extra": 1}])
    assert columns.in_rest == 1
    assert columns.rest is not None
    assert json.loads(columns.rest[0].as_py()) == {"id": 1, "n": "x", "extra": 1}
    assert columns.drift == {0: "id is 1, which is no string"}


@pytest.mark.parametrize("name", ["_partition", "_sequence", "_position", "_event_id", "_rest", "", "a\tb"])
def test_a_key_that_can_be_no_column_is_kept_in_rest_and_is_no_drift(name: str) -> None:
    columns = ColumnBuilder(SCHEMA).build([{"id": "a", "n": 1, name: "mine"}])
    assert columns.rest is not None
    assert json.loads(columns.rest[0].as_py()) == {name: "mine"}
    assert (columns.in_rest, columns.drift) == (1, {})


def test_text_with_half_a_surrogate_pair_is_kept_in_rest_escaped() -> None:
    columns = ColumnBuilder(SCHEMA).build([{"id": "\ud800", "n": 1, "\udfff": 2}])
    assert columns.rest is not None
    text = columns.rest[0].as_py()
    assert text.isascii()
    assert json.loads(text) == {"id": "\ud800", "\udfff": 2}


def test_an_event_without_any_json_form_is_named_and_the_others_are_not() -> None:
    columns = ColumnBuilder(SCHEMA).build([{"id": "a", "n": float("nan")}, {"id": "b", "n": "x"}])
    assert list(columns.unwritable) == [0]
    assert "JSON" in columns.unwritable[0]


def test_absent_and_null_are_both_null_and_empty_text_is_neither() -> None:
    columns = ColumnBuilder(SCHEMA).build([{"id": None, "n": 1}, {"n": 1}, {"id": "", "n": 1}])
    assert columns.arrays["id"].to_pylist() == [None, None, ""]


def test_values_in_a_typeless_column_ask_for_a_wider_schema_first() -> None:
    builder = ColumnBuilder(FrozenSchema({"id": "string", "seen": "null", "also": "null"}))
    assert "seen" not in builder.build([{"id": "a", "seen": None, "also": None}]).arrays
    with pytest.raises(NullsEnd) as found:
        builder.build([{"id": "a", "seen": None, "also": None}, {"id": "b", "seen": 2.5, "also": None}])
    assert found.value.types == {"seen": "float64"}


def test_nested_values_are_json_text_whatever_their_shape() -> None:
    rows = [{"t": {"a": 1}}, {"t": [1, {"b": 2**70}]}, {"t": "plain"}, {"t": None}]
    columns = ColumnBuilder(FrozenSchema({"t": "json"})).build(rows)
    read = [None if text is None else json.loads(text) for text in columns.arrays["t"].to_pylist()]
    assert read == [row["t"] for row in rows]
    assert columns.in_rest == 0


def test_an_array_serves_again_only_for_the_very_same_values() -> None:
    rows = [
        {"id": "a", "n": 1, "f": 1.0, "b": True, "j": "a"},
        {"id": "b", "n": 0, "f": 0.0, "b": False, "j": "b"},
    ]
    schema = FrozenSchema({"j": "json", "b": "bool", "f": "float64", "id": "string", "n": "int64"})
    columns = ColumnBuilder(schema).build(rows)
    assert columns.array_of(["a", "b"], pa.string()) is columns.arrays["id"]
    assert columns.array_of([1, 0], pa.int64()) is columns.arrays["n"]
    assert columns.array_of(["a", "c"], pa.string()) is None


def test_an_array_in_which_a_misfit_became_null_does_not_serve_again() -> None:
    columns = ColumnBuilder(SCHEMA).build([{"id": "\ud800", "n": 2**63}])
    assert columns.array_of(["\ud800"], pa.string()) is None
    assert columns.array_of([2**63], pa.int64()) is None


def test_rows_need_not_be_dicts() -> None:
    from types import MappingProxyType

    rows = [MappingProxyType({"id": "a", "n": 1}), MappingProxyType({"id": "b", "x": 2})]
    columns = ColumnBuilder(infer_schema(rows[:1])).build(rows)
    assert columns.arrays["n"].to_pylist() == [1, None]
    assert columns.in_rest == 1
