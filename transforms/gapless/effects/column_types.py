"""The types a column can have: their names, their Arrow types, and how values get into them without loss.

A value fits a type, or it does not: nothing is rounded, cut or guessed. A float does not fit `int64`, not even 2.0; a
boolean is no number; text is never read as a date or a number unless the column is declared to be one.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow as pa

from gapless.effects.lossless_json import NotJson, lossless_json
from gapless.errors import ConfigurationError

NULL: Final = "null"
"""The type of a column that has held nothing but nulls so far. It takes no value; it is widened by the first one."""
JSON: Final = "json"
"""Text that is JSON, whatever the value was. Its Arrow field carries `gapless.type` = `json`."""

_EXACT_IN_FLOAT: Final = 2**53
_LIMITS: Final = {
    f"{sign}int{bits}": (0 if sign else -(2 ** (bits - 1)), 2 ** (bits if sign else bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_TIMESTAMP: Final = re.compile(r"timestamp\[(s|ms|us|ns), ?(?:tz=)?UTC\]")
_DECIMAL: Final = re.compile(r"decimal(?:128)?\((\d{1,2}), ?(\d{1,2})\)")
_PLAIN: Final = ("string", "bool", "float64", JSON, "date32", *_LIMITS)
KNOWN_TYPES: Final = (*_PLAIN, "timestamp[us, UTC]", "decimal(18, 4)")
"""What a message offers; of timestamps and decimals one example each."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type by its canonical name. `convert` gives (array, indexes of what does not fit, which are null in the array)."""

    name: str
    arrow: pa.DataType
    convert: Callable[[list[Any]], tuple[pa.Array, Sequence[int]]]

    def field(self, column: str) -> pa.Field:
        """The Arrow field of a column of this type."""
        return pa.field(column, self.arrow, metadata={"gapless.type": JSON} if self.name == JSON else None)


@cache
def column_type(name: str) -> ColumnType:
    """The type of that name. Raises ConfigurationError, with the likely one, for an unknown name."""
    if name in _LIMITS:
        return ColumnType(name, getattr(pa, name)(), _integers(name))
    if name == "string":
        return ColumnType(name, pa.string(), _converter(pa.string(), _fits_string))
    if name == "bool":
        return ColumnType(name, pa.bool_(), _converter(pa.bool_(), lambda value: type(value) is bool))
    if name == "float64":
        return ColumnType(name, pa.float64(), _floats)
    if name == JSON:
        return ColumnType(name, pa.string(), _json)
    if name == "date32":
        return ColumnType(name, pa.date32(), _parsed(pa.date32(), _as_text))
    if match := _TIMESTAMP.fullmatch(name):
        instant = pa.timestamp(match[1], tz="UTC")
        as_text = _as_text_of_nanoseconds if match[1] == "ns" else _as_text
        return ColumnType(f"timestamp[{match[1]}, UTC]", instant, _parsed(instant, as_text))
    if (match := _DECIMAL.fullmatch(name)) and 1 <= int(match[1]) <= 38 and int(match[2]) <= int(match[1]):
        decimal = pa.decimal128(int(match[1]), int(match[2]))
        return ColumnType(f"decimal({int(match[1])}, {int(match[2])})", decimal, _parsed(decimal, _as_digits))
    raise ConfigurationError(f"{name!r} is no column type", remedy=_suggestion(name))


def infer_type(values: Sequence[object]) -> str:
    """The type that more than half of the values have, nulls aside; `json` where none does or they are nested.

    Integers and floats together are `float64`. What is not of the type found does not fit it.

    >>> infer_type([None]), infer_type([1, 2, "n/a"]), infer_type([1, 2.5]), infer_type([1, "x"]), infer_type([{"a": 1}])
    ('null', 'int64', 'float64', 'json', 'json')
    """
    present = [value for value in values if value is not None]
    if not present:
        return NULL
    kinds = [type(value) for value in present]
    numbers = "float64" if float in kinds else "int64"
    low, high = (-_EXACT_IN_FLOAT, _EXACT_IN_FLOAT) if numbers == "float64" else _LIMITS["int64"]
    integers = sum(type(value) is int and low <= value <= high for value in present)
    found = {"string": kinds.count(str), "bool": kinds.count(bool), numbers: kinds.count(float) + integers}
    best = max(found, key=lambda name: found[name])
    return best if 2 * found[best] > len(present) else JSON


def _suggestion(name: str) -> str:
    close = difflib.get_close_matches(name, KNOWN_TYPES, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}allowed are {', '.join(KNOWN_TYPES)}"


# Arrow's own errors for a value that does not fit, in all their kinds. A lone surrogate is a UnicodeEncodeError.
_MISFIT: Final = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeEncodeError,
)


def _converter(
    arrow: pa.DataType, fits: Callable[[object], bool]
) -> Callable[[list[Any]], tuple[pa.Array, Sequence[int]]]:
    """For types that Arrow infers by itself: where it infers just this one, every value was of it."""

    def convert(values: list[Any]) -> tuple[pa.Array, Sequence[int]]:
        try:
            array = pa.array(values)
        except _MISFIT:
            return _one_by_one(values, arrow, fits)
        if array.type == arrow:
            return array, ()
        if array.null_count == len(array):
            return pa.nulls(len(array), arrow), ()
        return _one_by_one(values, arrow, fits)

    return convert


def _one_by_one(
    values: list[Any], arrow: pa.DataType, fits: Callable[[object], bool]
) -> tuple[pa.Array, Sequence[int]]:
    misfits = [index for index, value in enumerate(values) if value is not None and not fits(value)]
    kept = list(values)
    for index in misfits:
        kept[index] = None
    return pa.array(kept, arrow), misfits


def _integers(name: str) -> Callable[[list[Any]], tuple[pa.Array, Sequence[int]]]:
    low, high = _LIMITS[name]
    arrow = getattr(pa, name)()

    def fits(value: object) -> bool:
        return type(value) is int and low <= value <= high

    if name == "int64":
        return _converter(arrow, fits)

    def convert(values: list[Any]) -> tuple[pa.Array, Sequence[int]]:
        # Arrow would take 2.0 into a declared integer type, hence the look at the types.
        if set(map(type, values)) <= {int, type(None)}:
            try:
                return pa.array(values, arrow), ()
            except _MISFIT:
                pass
        return _one_by_one(values, arrow, fits)

    return convert


def _fits_string(value: object) -> bool:
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _floats(values: list[Any]) -> tuple[pa.Array, Sequence[int]]:
    # Arrow would take True as 1.0, hence the look at the types. It refuses integers that a float cannot hold.
    if set(map(type, values)) <= {float, int, type(None)}:
        try:
            return pa.array(values, pa.float64()), ()
        except _MISFIT:
            pass
    return _one_by_one(values, pa.float64(), _fits_float)


def _fits_float(value: object) -> bool:
    return type(value) is float or (type(value) is int and -_EXACT_IN_FLOAT <= value <= _EXACT_IN_FLOAT)


def _json(values: list[Any]) -> tuple[pa.Array, Sequence[int]]:
    encoded: list[bytes | None] = []
    misfits = []
    for index, value in enumerate(values):
        try:
            encoded.append(None if value is None else lossless_json(value))
        except NotJson:
            encoded.append(None)
            misfits.append(index)
    return pa.array(encoded, pa.string()), misfits


def _parsed(
    arrow: pa.DataType, as_text: Callable[[object], str | None]
) -> Callable[[list[Any]], tuple[pa.Array, Sequence[int]]]:
    """For declared types that are read from text by Arrow's casts, which refuse digits they would lose and naive times."""

    def convert(values: list[Any]) -> tuple[pa.Array, Sequence[int]]:
        texts = [as_text(value) for value in values]
        misfits = {index for index, text in enumerate(texts) if text is None and values[index] is not None}
        try:
            return pa.array(texts, pa.string()).cast(arrow), sorted(misfits)
        except _MISFIT:
            pass
        for index, text in enumerate(texts):
            try:
                pa.array([text], pa.string()).cast(arrow)
            except _MISFIT:
                texts[index] = None
                misfits.add(index)
        return pa.array(texts, pa.string()).cast(arrow), sorted(misfits)

    return convert


def _as_text(value: object) -> str | None:
    return value if type(value) is str else None


def _as_text_of_nanoseconds(value: object) -> str | None:
    """64 bits of nanoseconds reach from September 1677 to April 2262. Not every Arrow refuses what lies beyond."""
    return value if type(value) is str and "1678" <= value[:4] <= "2261" else None


def _as_digits(value: object) -> str | None:
    """Decimal text of a number or a text. A float counts as the shortest digits that mean it, as it stood in the JSON."""
    if type(value) is str:
        return value
    return repr(value) if type(value) is int or type(value) is float else None
