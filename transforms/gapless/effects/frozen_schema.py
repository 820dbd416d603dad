"""The one schema of a scope's files: inferred from the first page with events, or declared, and then frozen.

It changes in two ways only, both of which leave every file readable: a column that had held nothing but nulls gets a type,
and a column that the job declares is added. A column of type `null` is left out of the files, so that no reader has to
unify a typeless column with a typed one; a file without a column reads as nulls in it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from gapless.effects.column_types import NULL, column_type, infer_type
from gapless.effects.protocol import SchemaStore
from gapless.errors import ConfigurationError, SchemaDrift, StoreNewer, StoreUnreadable

FORMAT: Final = 1
PARTITION: Final = "_partition"
SEQUENCE: Final = "_sequence"
POSITION: Final = "_position"
EVENT_ID: Final = "_event_id"
REST: Final = "_rest"
ENVELOPE: Final = pa.schema(
    {
        PARTITION: pa.dictionary(pa.int32(), pa.string()),
        SEQUENCE: pa.int64(),
        POSITION: pa.string(),
        EVENT_ID: pa.string(),
    }
)
"""What every row says beside its data: whose it is, the page it came with, its position as canonical text, its id."""
RESERVED: Final = frozenset((*ENVELOPE.names, REST))
MAX_COLUMNS: Final = 1000
"""Columns a first page may give a schema. Keys beyond them, in order of appearance, are kept in `_rest`."""


@dataclass(frozen=True, slots=True)
class FrozenSchema:
    """Names and types of the data columns, in order.

    >>> schema = infer_schema([{"id": "a", "seen": None}, {"id": "b", "n": 1}])
    >>> schema.types
    {'id': 'string', 'seen': 'null', 'n': 'int64'}
    >>> FrozenSchema.from_text(schema.text()) == schema
    True
    """

    types: Mapping[str, str]

    @classmethod
    def from_text(cls, text: str) -> "FrozenSchema":
        """Raises StoreNewer or StoreUnreadable where the text is not one that `text` wrote."""
        try:
            parsed: Any = json.loads(text)
            version = parsed["format"]
            if version == FORMAT:
                types = {column["name"]: column["type"] for column in parsed["columns"]}
                for name in types.values():
                    if name != NULL:
                        column_type(name)
                return cls(types)
        except (ValueError, LookupError, TypeError, ConfigurationError) as error:
            raise StoreUnreadable("the scope's frozen schema is damaged", where=text[:200]) from error
        raise StoreNewer(
            f"the scope's frozen schema has format {version}",
            remedy=f"this gapless reads format {FORMAT}: upgrade it",
        )

    def text(self) -> str:
        """Deterministic: equal schemas have equal texts."""
        columns = [{"name": name, "type": kind} for name, kind in self.types.items()]
        return json.dumps({"columns": columns, "format": FORMAT}, separators=(",", ":"), ensure_ascii=False)

    def widened(self, types: Mapping[str, str]) -> "FrozenSchema":
        """With these types for columns that are `null` or not there yet; other columns keep theirs."""
        free = {name: kind for name, kind in types.items() if self.types.get(name, NULL) == NULL}
        return FrozenSchema({**self.types, **free})

    def arrow(self, scope: str | None = None) -> pa.Schema:
        """The schema of the files: data columns that have a type, envelope, `_rest`."""
        data = [column_type(kind).field(name) for name, kind in self.types.items() if kind != NULL]
        metadata = {"gapless.format": str(FORMAT), **({"gapless.scope": scope} if scope is not None else {})}
        rest = pa.field(REST, pa.string(), metadata={"gapless.type": "json"})
        return pa.schema([*data, *ENVELOPE, rest], metadata=metadata)


def infer_schema(
    rows: Sequence[Mapping[str, object]], declared: Mapping[str, str] | None = None
) -> FrozenSchema:
    """The schema of a first page: the declared types, and for the other keys of any row what its values show."""
    declared = declared or {}
    names = [name for name in dict.fromkeys(chain.from_iterable(rows)) if may_be_column(name)]
    types = {
        name: declared.get(name) or infer_type([row.get(name) for row in rows])
        for name in [*(name for name in names if name in declared), *names][: max(MAX_COLUMNS, len(declared))]
    }
    # In the order of the source, whatever the limit has made of it; declared columns that did not come stand last.
    ordered = {name: types[name] for name in names if name in types}
    return FrozenSchema({**ordered, **{name: kind for name, kind in declared.items() if name not in ordered}})


def may_be_column(name: str) -> bool:
    """Whether files can have a column of that name: not reserved, not empty, and text that every reader takes."""
    return name not in RESERVED and name.isprintable() and name != ""


def canonical_types(declared: Mapping[str, str]) -> dict[str, str]:
    """The declared types by their canonical names. Raises ConfigurationError for unknown types and impossible columns."""
    for name in declared:
        if not isinstance(name, str) or not may_be_column(name):
            raise ConfigurationError(
                f"schema: {name!r} cannot be a column",
                remedy=f"reserved are {', '.join(sorted(RESERVED))}; such keys of an event are kept in {REST}",
            )
    try:
        return {name: column_type(kind).name for name, kind in declared.items()}
    except ConfigurationError as error:
        wrong = next(name for name, kind in declared.items() if repr(kind) in error.what)
        raise ConfigurationError(f"schema: {wrong}: {error.what}", remedy=error.remedy) from error


class ScopeSchema:
    """The scope's schema as one worker knows it; the store has the last word. Used by one thread.

    Raises ConfigurationError where `declared` contradicts what is frozen already."""

    def __init__(self, store: SchemaStore, declared: Mapping[str, str]) -> None:
        self._store = store
        self._declared = declared
        self._text = store.frozen()
        self._schema = FrozenSchema.from_text(self._text) if self._text is not None else None
        if contradiction := self._contradiction():
            raise ConfigurationError(contradiction, remedy=_CONTRADICTION_REMEDY)

    def for_rows(self, rows: Sequence[Mapping[str, object]]) -> FrozenSchema:
        """What is frozen; before that, what these rows (at least one) show, which is frozen with it. Raises SchemaDrift."""
        if self._schema is None:
            self._take(self._store.freeze(infer_schema(rows, self._declared).text()))
        assert self._schema is not None
        if any(self._schema.types.get(name, NULL) == NULL for name in self._declared):
            self.widen(self._declared)
        return self._schema

    def widen(self, types: Mapping[str, str]) -> FrozenSchema:
        """Give types to columns that have none. Where another worker was first, its types stand."""
        assert self._schema is not None
        assert self._text is not None
        while (wider := self._schema.widened(types)) != self._schema:
            expected, proposal = self._text, wider.text()
            self._take(self._store.widen(expected, proposal))
            if self._text == expected:
                raise StoreUnreadable(
                    "the store neither widens the scope's schema nor says what it has become"
                )
        return self._schema

    def _take(self, text: str) -> None:
        self._text = text
        self._schema = FrozenSchema.from_text(text)
        if contradiction := self._contradiction():
            raise SchemaDrift(contradiction, remedy=_CONTRADICTION_REMEDY)

    def _contradiction(self) -> str | None:
        if self._schema is None:
            return None
        for name, kind in self._declared.items():
            frozen = self._schema.types.get(name, NULL)
            if frozen not in (NULL, kind):
                return f"schema: {name} is declared as {kind}, but the scope's files have it as {frozen}"
        return None


_CONTRADICTION_REMEDY: Final = "declare the type that the files have, or give the new data set another scope"
