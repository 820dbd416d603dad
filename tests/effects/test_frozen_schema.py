"""One schema a scope: inferred or declared once, then frozen; what may still change it, and who wins."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.effects import FrozenSchema, infer_schema
from gapless.effects.frozen_schema import MAX_COLUMNS, ScopeSchema, canonical_types
from gapless.errors import ConfigurationError, SchemaDrift, StoreNewer, StoreUnreadable
from gapless.testing.memory_schema_store import MemorySchemaStore

TYPES = st.sampled_from(["null", "string", "int64", "json", "timestamp[us, UTC]", "decimal(18, 4)"])


@given(st.dictionaries(st.text(min_size=1, max_size=5).filter(str.isprintable), TYPES))
def test_the_text_of_a_schema_is_deterministic_and_reads_back(types: dict[str, str]) -> None:
    schema = FrozenSchema(types)
    read = FrozenSchema.from_text(schema.text())
    assert read == schema
    assert list(read.types) == list(types)
    assert read.text() == schema.text()


def test_the_text_is_pinned_because_stores_hold_it() -> None:
    assert (
        FrozenSchema({"id": "string", "seen": "null", "größe": "int64"}).text()
        == '{"columns":[{"name":"id","type":"string"},{"name":"seen","type":"null"},{"name":"größe","type":"int64"}],"format":1}'
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format":1}',
        '{"format":1,"columns":[{"name":"a","type":"int65"}]}',
        '{"format":1,"columns":[1]}',
    ],
)
def test_a_damaged_schema_is_refused(text: str) -> None:
    with pytest.raises(StoreUnreadable, match="damaged"):
        FrozenSchema.from_text(text)


def test_the_schema_of_a_newer_version_is_refused_as_such() -> None:
    with pytest.raises(StoreNewer, match="format 2"):
        FrozenSchema.from_text('{"format":2,"columns":[]}')


def test_columns_are_those_of_all_rows_in_the_order_of_the_source() -> None:
    schema = infer_schema([{"id": "a", "n": None}, {"id": "b", "late": True, "n": 1}])
    assert list(schema.types.items()) == [("id", "string"), ("n", "int64"), ("late", "bool")]


def test_declared_types_stand_and_declared_columns_exist_before_they_come() -> None:
    schema = infer_schema([{"id": "a", "cents": 1}], {"cents": "float64", "soon": "date32"})
    assert dict(schema.types) == {"id": "string", "cents": "float64", "soon": "date32"}


@pytest.mark.parametrize(
    "name", ["_partition", "_sequence", "_position", "_event_id", "_rest", "", "a\nb", "\ud800", "\0"]
)
def test_names_that_no_column_can_have_are_left_out_and_cannot_be_declared(name: str) -> None:
    assert dict(infer_schema([{"id": "a", name: 1}]).types) == {"id": "string"}
    with pytest.raises(ConfigurationError, match="cannot be a column"):
        canonical_types({name: "int64"})


def test_a_first_page_of_countless_keys_gives_a_bounded_schema_with_the_declared_ones_in_it() -> None:
    schema = infer_schema(
        [{f"k{index}": index for index in range(3 * MAX_COLUMNS)}], {f"k{2 * MAX_COLUMNS}": "int8"}
    )
    assert len(schema.types) == MAX_COLUMNS
    assert list(schema.types)[:3] == ["k0", "k1", "k2"]
    assert schema.types[f"k{2 * MAX_COLUMNS}"] == "int8"


def test_a_declared_type_that_does_not_exist_is_named_with_its_column() -> None:
    with pytest.raises(ConfigurationError, match="schema: cents: 'int46' is no column type"):
        canonical_types({"id": "string", "cents": "int46"})


def test_a_typeless_column_is_not_in_the_files_and_json_columns_say_that_they_are() -> None:
    arrow = FrozenSchema({"id": "string", "none": "null", "tree": "json"}).arrow("orders")
    assert arrow.names == ["id", "tree", "_partition", "_sequence", "_position", "_event_id", "_rest"]
    assert arrow.field("tree").metadata == {b"gapless.type": b"json"}
    assert arrow.field("_partition").type == pa.dictionary(pa.int32(), pa.string())
    assert arrow.metadata == {b"gapless.format": b"1", b"gapless.scope": b"orders"}


def test_the_first_to_freeze_wins_and_the_other_gets_what_was_frozen() -> None:
    store = MemorySchemaStore()
    one, other = ScopeSchema(store, {}), ScopeSchema(store, {})
    assert dict(one.for_rows([{"a": 1}]).types) == {"a": "int64"}
    assert dict(other.for_rows([{"a": "x", "b": 1}]).types) == {"a": "int64"}


def test_two_that_widen_different_columns_at_once_both_succeed() -> None:
    store = MemorySchemaStore()
    one, other = ScopeSchema(store, {}), ScopeSchema(store, {})
    for schema in (one, other):
        schema.for_rows([{"a": None, "b": None}])
    one.widen({"a": "int64"})
    assert dict(other.widen({"b": "string"}).types) == {"a": "int64", "b": "string"}
    assert json.loads(store.frozen() or "") == json.loads(FrozenSchema({"a": "int64", "b": "string"}).text())


def test_of_two_that_widen_one_column_the_first_wins() -> None:
    store = MemorySchemaStore()
    one, other = ScopeSchema(store, {}), ScopeSchema(store, {})
    for schema in (one, other):
        schema.for_rows([{"a": None}])
    one.widen({"a": "int64"})
    assert dict(other.widen({"a": "string"}).types) == {"a": "int64"}


def test_a_column_that_has_a_type_keeps_it() -> None:
    assert FrozenSchema({"a": "int64"}).widened({"a": "string"}) == FrozenSchema({"a": "int64"})


def test_a_column_declared_later_is_added() -> None:
    store = MemorySchemaStore()
    ScopeSchema(store, {}).for_rows([{"a": 1, "none": None}])
    later = ScopeSchema(store, {"extra": "int64", "none": "date32"})
    assert dict(later.for_rows([{"a": 1}]).types) == {"a": "int64", "none": "date32", "extra": "int64"}


def test_a_declaration_against_what_is_frozen_is_refused_before_anything_is_read() -> None:
    store = MemorySchemaStore()
    ScopeSchema(store, {}).for_rows([{"a": 1}])
    with pytest.raises(ConfigurationError, match=r"a is declared as float64, but .* int64"):
        ScopeSchema(store, {"a": "float64"})


def test_a_declaration_against_what_another_worker_freezes_meanwhile_holds() -> None:
    store = MemorySchemaStore()
    declared = ScopeSchema(store, {"a": "float64"})
    ScopeSchema(store, {}).for_rows([{"a": 1}])
    with pytest.raises(SchemaDrift, match="a is declared as float64"):
        declared.for_rows([{"a": 2.5}])


def test_a_store_that_answers_nonsense_does_not_make_the_worker_spin() -> None:
    class Stuck(MemorySchemaStore):
        def widen(self, expected: str, proposal: str) -> str:
            return expected

    schema = ScopeSchema(Stuck(), {})
    schema.for_rows([{"a": None}])
    types: dict[str, Any] = {"a": "int64"}
    with pytest.raises(StoreUnreadable, match="neither widens"):
        schema.widen(types)
