"""How values get into a column, and which do not."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.effects.column_types import KNOWN_TYPES, column_type, infer_type
from gapless.errors import ConfigurationError

JSON_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**66), 2**66)
    | st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 0, 1])
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.sampled_from(["2020-01-01", "2020-01-01T00:00:00Z", "12.50", "1e3", "\ud800", "a\ud800"])
)


@pytest.mark.parametrize("name", KNOWN_TYPES)
@given(values=st.lists(JSON_SCALARS | st.lists(JSON_SCALARS, max_size=2), min_size=1, max_size=6))
def test_every_value_is_in_the_array_or_named_as_a_misfit(name: str, values: list[Any]) -> None:
    kind = column_type(name)
    array, misfits = kind.convert(values)
    assert array.type == kind.arrow
    assert len(array) == len(values)
    for index, value in enumerate(values):
        assert (array[index].as_py() is None) == (value is None or index in misfits)


@pytest.mark.parametrize("name", ["int64", "int8", "uint64", "float64", "string", "bool"])
@given(values=st.lists(JSON_SCALARS, min_size=1, max_size=6))
def test_what_fits_a_plain_type_reads_back_equal_and_of_its_own_kind(name: str, values: list[Any]) -> None:
    array, misfits = column_type(name).convert(values)
    for index, value in enumerate(values):
        if value is not None and index not in misfits:
            read = array[index].as_py()
            assert read == value
            # An integer may become an equal float; nothing else changes its kind.
            assert type(read) is type(value) or (name == "float64" and type(value) is int)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int64", True),
        ("int64", 2.0),
        ("int64", 2**63),
        ("int64", "1"),
        ("int8", 128),
        ("int8", 1.0),
        ("int8", True),
        ("uint64", -1),
        ("uint64", 2**64),
        ("float64", True),
        ("float64", 2**53 + 1),
        ("float64", 10**400),
        ("float64", "1.5"),
        ("bool", 1),
        ("bool", 0.0),
        ("string", 1),
        ("string", True),
        ("string", "\ud800"),
        ("string", {"a": 1}),
        ("date32", "2020-01-01T00:00:00"),
        ("date32", 18000),
        ("timestamp[us, UTC]", "2020-01-01T00:00:00"),
        ("timestamp[us, UTC]", "2020-01-01T00:00:00.1234567Z"),
        ("timestamp[s, UTC]", "2020-01-01T00:00:00.5Z"),
        ("timestamp[ns, UTC]", "2500-01-01T00:00:00Z"),
        ("timestamp[ns, UTC]", "1677-01-01T00:00:00Z"),
        ("timestamp[ns, UTC]", "0001-01-01T00:00:00Z"),
        ("timestamp[us, UTC]", 1577836800),
        ("decimal(4, 2)", "1.234"),
        ("decimal(4, 2)", "100"),
        ("decimal(4, 2)", True),
        ("decimal(4, 2)", "NaN"),
        ("json", math.nan),
    ],
)
@pytest.mark.parametrize("company", [[], ["fitting"]], ids=["alone", "in company"])
def test_a_value_that_would_be_changed_does_not_fit(name: str, value: object, company: list[str]) -> None:
    fitting: Any = {
        "string": "x",
        "bool": False,
        "float64": 1.5,
        "date32": "2020-01-01",
        "json": 1,
        "decimal(4, 2)": "1.5",
    }.get(name, "2020-01-01T00:00:00Z" if name.startswith("timestamp") else 1)
    values = [fitting for _ in company] + [value]
    array, misfits = column_type(name).convert(values)
    assert list(misfits) == [len(company)]
    assert array[len(company)].as_py() is None
    assert all(array[index].is_valid for index in range(len(company)))


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("date32", "2020-02-29", "2020-02-29"),
        ("timestamp[us, UTC]", "2020-01-01T02:00:00.5+02:00", "2020-01-01 00:00:00.500000Z"),
        ("timestamp[ms, UTC]", "0001-01-01T00:00:00Z", "0001-01-01 00:00:00.000Z"),
        ("timestamp[ns, UTC]", "1678-01-01T00:00:00Z", "1678-01-01 00:00:00.000000000Z"),
        ("timestamp[ns, UTC]", "2261-12-31T23:59:59.999999999-23:59", "2262-01-01 23:58:59.999999999Z"),
        ("decimal(10, 2)", "12.5", "12.50"),
        ("decimal(10, 2)", 12.5, "12.50"),
        ("decimal(20, 0)", 2**63, "9223372036854775808"),
    ],
)
def test_declared_times_and_decimals_are_read_from_what_json_has_for_them(
    name: str, value: object, text: str
) -> None:
    array, misfits = column_type(name).convert([value, None])
    assert (array.cast(pa.string()).to_pylist(), list(misfits)) == ([text, None], [])


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([], "null"),
        ([None, None], "null"),
        ([None, "x"], "string"),
        (["2020-01-01", "2020-01-02T00:00:00Z", ""], "string"),
        ([True, None], "bool"),
        ([1, 2], "int64"),
        ([1, 2.5], "float64"),
        ([1, 2, "n/a"], "int64"),
        ([1, "x"], "json"),
        ([True, 1], "json"),
        ([2**63], "json"),
        ([2**63, 1, 2], "int64"),
        ([2**53 + 1, 2**53 + 1, 0.5], "json"),
        ([[1], [2]], "json"),
        ([{"a": 1}], "json"),
        (["x", {"a": 1}, "y"], "string"),
    ],
)
def test_a_column_is_inferred_as_what_most_of_its_values_are(values: list[Any], name: str) -> None:
    assert infer_type(values) == name


def test_an_unknown_type_is_refused_with_the_likely_one() -> None:
    with pytest.raises(ConfigurationError, match="did you mean int64"):
        column_type("int65")


@pytest.mark.parametrize(
    "name", ["timestamp", "timestamp[us]", "decimal(39, 2)", "decimal(4, 5)", "decimal(0, 0)", "null", ""]
)
def test_types_that_would_be_ambiguous_or_impossible_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="no column type"):
        column_type(name)


def test_spellings_of_one_type_have_one_name() -> None:
    assert column_type("timestamp[us, tz=UTC]").name == column_type("timestamp[us,UTC]").name
    assert column_type("decimal128(18,4)").name == "decimal(18, 4)"
