"""What `domain:` may say. The shape is checked here, so that a finding names its key; the rest by the domain itself."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from gapless.errors import ConfigurationError
from gapless.paging.config_model import ConfigModel
from gapless.progress import domain_from
from gapless_pipelines.findings import KeyPath, Problem


class IntegerConfig(ConfigModel):
    """Integers of any size; the source may send them as text."""

    type: Literal["integer"]


class TextConfig(ConfigModel):
    """Text, compared by code point, as databases do under the collation `C`."""

    type: Literal["text"]
    collation: str = "binary"


class FormattedTime(ConfigModel):
    """Times as text in a strptime format; `zone` is an IANA name, for formats without an offset (%z)."""

    format: str
    zone: str | None = None


def _reading(value: object) -> str:
    return "formatted" if isinstance(value, Mapping | FormattedTime) else "word"


class TimestampConfig(ConfigModel):
    """Instants, exact to `precision`; `read` is how the source writes them."""

    type: Literal["timestamp"]
    precision: Literal["s", "ms", "us", "ns"]
    read: Annotated[
        Annotated[Literal["rfc3339", "unix_s", "unix_ms", "unix_us", "unix_ns"], Tag("word")]
        | Annotated[FormattedTime, Tag("formatted")],
        Discriminator(_reading),
    ] = "rfc3339"


SingleDomain = Annotated[IntegerConfig | TextConfig | TimestampConfig, Field(discriminator="type")]
SeveralDomains = Annotated[list[SingleDomain], Field(min_length=1)]


class ListConfig(ConfigModel):
    """Lists, ordered by their first part, then the next: the long way to write a list of domains."""

    type: Literal["list"]
    items: SeveralDomains


def _shape(value: object) -> str | None:
    if isinstance(value, list):
        return "several"
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return kind if isinstance(kind, str) and kind in ("integer", "text", "timestamp", "list") else None


DomainConfig = Annotated[
    Annotated[IntegerConfig, Tag("integer")]
    | Annotated[TextConfig, Tag("text")]
    | Annotated[TimestampConfig, Tag("timestamp")]
    | Annotated[ListConfig, Tag("list")]
    | Annotated[SeveralDomains, Tag("several")],
    Discriminator(
        _shape,
        custom_error_type="domain",
        custom_error_message="no domain; allowed: {type: integer | text | timestamp}, or a list of these",
    ),
]
"""One domain, or a list of them for positions that are lists, such as (time, id)."""


def domain_problems(description: object) -> Iterator[tuple[KeyPath, Problem]]:
    """What is impossible about a domain whose shape was found good: its zone, format or collation; by path below it."""
    for path, single in _singles(description):
        try:
            domain_from(single)
        except ConfigurationError as error:
            key = "read" if single["type"] == "timestamp" else "collation"
            yield (*path, key), Problem(key, error.what, error.remedy)


def _singles(description: Any) -> list[tuple[KeyPath, Any]]:
    if isinstance(description, list):
        return [((index,), single) for index, single in enumerate(description)]
    if description["type"] == "list":
        return [(("items", index), single) for index, single in enumerate(description["items"])]
    return [((), description)]
