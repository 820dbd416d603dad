"""Pages of rows become Arrow columns, exactly: what does not fit its column goes to `_rest`, and nothing is lost.

The common page, whose rows all have the schema's keys and types, never leaves C. Anything unusual takes the slow path
for the columns and rows that need it. An absent key and a null are the same in a column; both read back as null.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from gapless.effects.column_types import NULL, ColumnType, column_type, infer_type
from gapless.effects.frozen_schema import FrozenSchema, may_be_column
from gapless.effects.lossless_json import NotJson, lossless_json

Rows = Sequence[Mapping[str, object]]

_VERBATIM: Final = ("string", "int64")
"""Types whose arrays hold the very values of the rows."""


@dataclass(slots=True)
class Columns:
    """The columns of some rows. `rest` is None where nothing went there. `values` are the lists that text and integer
    columns were made from.

    `drift`: row index -> one line on the first value that does not fit the schema. `unwritable`: row index -> why no file
    can hold the event at all. Rows in neither are whole in `arrays` and `rest`."""

    arrays: dict[str, pa.Array] = field(default_factory=dict)
    values: dict[str, list[Any]] = field(default_factory=dict)
    rest: pa.Array | None = None
    in_rest: int = 0
    drift: dict[int, str] = field(default_factory=dict)
    unwritable: dict[int, str] = field(default_factory=dict)

    def array_of(self, values: list[Any], kind: pa.DataType) -> pa.Array | None:
        """The array that some column has made of just these values already: ids and positions mostly are columns, too.

        `values` are all text, or all integers; `kind` is the Arrow type for that."""
        for name, known in self.values.items():
            array = self.arrays[name]
            # A column's list may have True where `values` has 1; then that became a null.
            if array.type == kind and known == values and array.null_count == 0:
                return array
        return None


class NullsEnd(Exception):
    """A column without a type has met values. `types` are what they show."""

    def __init__(self, types: Mapping[str, str]) -> None:
        super().__init__(types)
        self.types = types


class ColumnBuilder:
    """Converts rows under one frozen schema."""

    def __init__(self, schema: FrozenSchema) -> None:
        self._names: Final = tuple(schema.types)
        self._known: Final = frozenset(schema.types)
        self._getters: Final[list[Callable[[Any], Any]]] = [itemgetter(name) for name in self._names]
        self._types: Final[list[ColumnType | None]] = [
            None if kind == NULL else column_type(kind) for kind in schema.types.values()
        ]

    def build(self, rows: Rows) -> Columns:
        """The columns of `rows`. Raises NullsEnd, before anything else, where the schema has to be widened first."""
        lists, strangers = self._gather(rows)
        self._look_at_typeless(lists)
        columns = Columns()
        misfits: dict[int, dict[str, object]] = {}
        for name, kind, values in zip(self._names, self._types, lists, strict=True):
            if kind is None:
                continue
            array, wrong = kind.convert(values)
            columns.arrays[name] = array
            if kind.name in _VERBATIM:
                columns.values[name] = values
            for index in wrong:
                misfits.setdefault(index, {})[name] = values[index]
                columns.drift.setdefault(index, f"{name} is {_shown(values[index])}, which is no {kind.name}")
        if strangers:
            self._set_aside_strangers(rows, misfits, columns)
        if misfits:
            _write_rest(len(rows), misfits, columns)
        return columns

    def _gather(self, rows: Rows) -> tuple[list[list[Any]], bool]:
        """One list a column, and whether any row has keys that the schema does not know."""
        lists = []
        complete = True
        for name, get in zip(self._names, self._getters, strict=True):
            try:
                lists.append(list(map(get, rows)))
            except KeyError:
                lists.append([row.get(name) for row in rows])
                complete = False
        if complete:
            # No row lacks a key, so that any row with a key more shows in the total.
            return lists, sum(map(len, rows)) != len(rows) * len(self._names)
        return lists, not self._known.issuperset(set().union(*rows))

    def _look_at_typeless(self, lists: list[list[Any]]) -> None:
        types = {
            name: infer_type(values)
            for name, kind, values in zip(self._names, self._types, lists, strict=True)
            if kind is None and values.count(None) != len(values)
        }
        if types:
            raise NullsEnd(types)

    def _set_aside_strangers(
        self, rows: Rows, misfits: dict[int, dict[str, object]], columns: Columns
    ) -> None:
        for index, row in enumerate(rows):
            for name in row.keys() - self._known:
                if row[name] is None:
                    continue
                misfits.setdefault(index, {})[name] = row[name]
                # A key that can be no column of any schema is no drift from this one.
                if may_be_column(name):
                    columns.drift.setdefault(index, f"{name} is no column of the schema")


def _write_rest(count: int, misfits: Mapping[int, Mapping[str, object]], columns: Columns) -> None:
    texts: list[bytes | None] = [None] * count
    for index, values in misfits.items():
        try:
            texts[index] = lossless_json(values)
        except NotJson as error:
            columns.unwritable[index] = error.what
    columns.rest = pa.array(texts, pa.string())
    columns.in_rest = len(misfits)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
