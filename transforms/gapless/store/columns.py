"""Column types that hold the same values on SQLite and PostgreSQL, and the two functions they name differently."""

import json
from datetime import datetime, timezone
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine

_ARMOUR = "\x01"
"""First character of a text that is stored as JSON: sources may send what a database cannot hold as text."""

Key = sa.LargeBinary
"""A bound as order-preserving bytes: b"" no bound, eight ff bytes no cap. Never NULL."""

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A key the database hands out. SQLite numbers only columns declared exactly INTEGER."""


class ExactText(TypeDecorator[str]):
    """Text of any content: ids and tokens with NUL or lone surrogates, which PostgreSQL refuses, come back as they were.

    Equal texts are stored equal, so comparing stored values is comparing texts."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else armoured(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else unarmoured(value)


def armoured(text: str) -> str:
    """`text` itself, or its JSON behind a mark where a database could not store it as it is.

    >>> armoured("plain"), armoured(chr(0))
    ('plain', '\\x01"\\\\u0000"')
    """
    if text.isascii() and "\x00" not in text and not text.startswith(_ARMOUR):
        return text
    if "\x00" in text or text.startswith(_ARMOUR) or any("\ud800" <= char <= "\udfff" for char in text):
        return _ARMOUR + json.dumps(text)
    return text


def unarmoured(stored: str) -> str:
    """Law: `unarmoured(armoured(text)) == text`."""
    if not stored.startswith(_ARMOUR):
        return stored
    text = json.loads(stored[len(_ARMOUR) :])
    if not isinstance(text, str):
        raise TypeError(f"{stored!r} is no stored text")
    return text


class Json(TypeDecorator[Any]):
    """JSON values as compact ASCII text, integers of any size exact. None is NULL."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else canonical_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


def canonical_json(value: Any) -> str:
    """One text for equal JSON values, whatever the order of their keys. Raises TypeError or ValueError for other values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


class UtcTime(TypeDecorator[datetime]):
    """An aware instant with microseconds: `timestamptz` on PostgreSQL, RFC 3339 text of fixed width on SQLite."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        kind: TypeEngine[Any] = sa.Text() if dialect.name == "sqlite" else sa.TIMESTAMP(timezone=True)
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        instant = value.astimezone(timezone.utc)
        return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if dialect.name == "sqlite" else instant

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if isinstance(value, datetime):
            return value.astimezone(timezone.utc)
        # A twentieth of what strptime takes, which is felt over a million rows.
        return datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=timezone.utc)


class _Extremum(FunctionElement[bytes]):
    type = sa.LargeBinary()
    inherit_cache = True


class lower_of(_Extremum):
    """The lower of two keys."""

    name = "lower_of"
    inherit_cache = True


class higher_of(_Extremum):
    """The higher of two keys."""

    name = "higher_of"
    inherit_cache = True


def _compile(
    element: FunctionElement[bytes], compiler: SQLCompiler, name: str, kwargs: dict[str, Any]
) -> str:
    return f"{name}({compiler.process(element.clauses, **kwargs)})"


@compiles(lower_of)
def _least(element: lower_of, compiler: SQLCompiler, **kwargs: Any) -> str:
    return _compile(element, compiler, "min" if compiler.dialect.name == "sqlite" else "least", kwargs)


@compiles(higher_of)
def _greatest(element: higher_of, compiler: SQLCompiler, **kwargs: Any) -> str:
    return _compile(element, compiler, "max" if compiler.dialect.name == "sqlite" else "greatest", kwargs)
