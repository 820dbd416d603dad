"""Domains from their declarations, as they stand in a job file or a store."""

from collections.abc import Mapping
from typing import Any

from gapless.errors import ConfigurationError, NotComparable
from gapless.progress.decimals import json_kind, shorten
from gapless.progress.domain import Domain, IntegerDomain, TextDomain
from gapless.progress.list_domain import ListDomain
from gapless.progress.timestamp import TimestampDomain

_KEYS = {
    "integer": {"type"},
    "text": {"type", "collation"},
    "timestamp": {"type", "precision", "read"},
    "list": {"type", "items"},
}


def domain_from(description: object) -> Domain:
    """The domain that JSON values describe; a bare list is short for `{type: list, items: [...]}`.

    Law: `domain_from(d.describe()) == d`. Raises ConfigurationError that says what is allowed.

    >>> domain_from([{"type": "timestamp", "precision": "us"}, {"type": "integer"}]).describe()["items"][1]
    {'type': 'integer'}
    """
    if isinstance(description, list | tuple):
        return ListDomain(tuple(domain_from(item) for item in description))
    if not isinstance(description, Mapping):
        raise ConfigurationError(
            f"{shorten(description)} ({json_kind(description)}) is no domain", remedy=_ALLOWED
        )
    kind = description.get("type")
    if not isinstance(kind, str) or kind not in _KEYS:
        raise ConfigurationError(f"domain type {kind!r} is unknown", remedy=_ALLOWED)
    unknown = sorted(str(key) for key in description.keys() - _KEYS[kind])
    if unknown:
        raise ConfigurationError(
            f"a domain of type {kind} has no {', '.join(unknown)}",
            remedy=f"allowed: {', '.join(sorted(_KEYS[kind]))}",
        )
    if kind == "integer":
        return IntegerDomain()
    if kind == "text":
        return TextDomain(description.get("collation", "binary"))
    if kind == "timestamp":
        return _timestamp(description)
    items = description.get("items")
    if not isinstance(items, list | tuple):
        raise ConfigurationError(
            f"a list domain needs `items`, not {items!r}", remedy="such as [{type: integer}, {type: text}]"
        )
    return domain_from(items)


_ALLOWED = "allowed: {type: integer | text | timestamp}, or a list of these"


def infer_domain(value: object, collation: str | None = None) -> Domain:
    """The domain that a bare JSON value fits without being told more. Raises NotComparable for all but integers, and
    for text without a declared collation: its order is anybody's guess.

    >>> infer_domain(9)
    IntegerDomain()
    >>> infer_domain("9", "binary")
    TextDomain(collation='binary')
    """
    if value.__class__ is int:
        return IntegerDomain()
    if isinstance(value, str) and collation is not None:
        return TextDomain(collation)
    if isinstance(value, list | tuple) and value:
        return ListDomain(tuple(infer_domain(item, collation) for item in value))
    raise NotComparable(
        f"{shorten(value)} ({json_kind(value)}) has no order of its own",
        remedy="declare the domain it is read by",
    )


def _timestamp(description: Mapping[str, Any]) -> TimestampDomain:
    precision = description.get("precision")
    if not isinstance(precision, str):
        raise ConfigurationError("a timestamp domain needs `precision`", remedy="allowed: s, ms, us, ns")
    reading = description.get("read", "rfc3339")
    if isinstance(reading, Mapping):
        unknown = sorted(str(key) for key in reading.keys() - {"format", "zone"})
        pattern, zone = reading.get("format"), reading.get("zone")
        if unknown or not isinstance(pattern, str) or not isinstance(zone, str | None):
            raise ConfigurationError(
                f"read {dict(reading)!r} is no reading", remedy="allowed: {format: text, zone: text}"
            )
        return TimestampDomain(precision, format=pattern, zone=zone)
    if not isinstance(reading, str):
        raise ConfigurationError(
            f"read {reading!r} is no reading", remedy="allowed: rfc3339, unix_*, {format, zone}"
        )
    return TimestampDomain(precision, reading)
