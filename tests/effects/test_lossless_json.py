"""JSON text that says exactly what a value was."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.effects.lossless_json import NotJson, lossless_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_every_json_value_comes_back(value: Any) -> None:
    read = json.loads(lossless_json(value))
    assert read == value
    assert repr(read) == repr(value)


@pytest.mark.parametrize("text", ["\ud800", "x\udfffy"])
def test_half_a_surrogate_pair_comes_back(text: str) -> None:
    encoded = lossless_json({text: [text]})
    assert encoded.isascii()
    assert json.loads(encoded) == {text: [text]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"a": {"b": v}}, lambda v: [None, v]])
def test_what_json_has_no_word_for_is_refused_and_not_written_as_null(value: float, wrap: Any) -> None:
    with pytest.raises(NotJson):
        lossless_json(wrap(value))


def test_values_without_a_json_form_are_refused() -> None:
    with pytest.raises(NotJson):
        lossless_json({"a": object()})
