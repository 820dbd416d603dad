"""The domain of tuples: fixed length, each item of its own domain, ordered by the first item, then the next."""

import json
from dataclasses import dataclass
from typing import Any

from gapless.errors import ConfigurationError, PositionError
from gapless.progress.bound import Position
from gapless.progress.decimals import json_kind, shorten
from gapless.progress.domain import Domain, IntegerDomain


@dataclass(frozen=True, slots=True)
class ListDomain(Domain):
    """Tuples of fixed length, ordered by their first item, then the next: such as (commit time, id).

    >>> from gapless.progress import TextDomain
    >>> ListDomain((IntegerDomain(), TextDomain())).parse([7, "b"])
    (7, 'b')
    """

    items: tuple[Domain, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.items, tuple) or not self.items:
            raise ConfigurationError("a list domain needs a tuple of at least one domain")

    def parse(self, raw: object) -> Position:
        if not isinstance(raw, list | tuple):
            raise PositionError(
                f"{shorten(raw)} ({json_kind(raw)}) where a list of {len(self.items)} is expected"
            )
        return tuple(domain.parse(item) for domain, item in self._paired(raw))

    def text(self, position: Position) -> str:
        """A JSON array of the items' texts; items that are lists stand as arrays in it.

        >>> from gapless.progress import TextDomain
        >>> ListDomain((IntegerDomain(), TextDomain())).text((7, "b"))
        '["7","b"]'
        """
        return json.dumps(self._texts(position), ensure_ascii=False, separators=(",", ":"))

    def from_text(self, text: str) -> Position:
        try:
            raw = json.loads(text)
        except ValueError as error:
            raise PositionError(f"{shorten(text)} is no JSON array") from error
        return self._from_texts(raw)

    def describe(self) -> dict[str, Any]:
        return {"type": "list", "items": [domain.describe() for domain in self.items]}

    def _texts(self, position: Position) -> list[Any]:
        if not isinstance(position, tuple):
            raise PositionError(f"{position!r} is no list")
        return [
            domain._texts(item) if isinstance(domain, ListDomain) else domain.text(item)
            for domain, item in self._paired(position)
        ]

    def _from_texts(self, raw: object) -> Position:
        if not isinstance(raw, list):
            raise PositionError(
                f"{shorten(raw)} ({json_kind(raw)}) where a list of {len(self.items)} is expected"
            )
        return tuple(
            domain._from_texts(item) if isinstance(domain, ListDomain) else _item_from_text(domain, item)
            for domain, item in self._paired(raw)
        )

    def _paired(self, items: "list[Any] | tuple[Any, ...]") -> "zip[tuple[Domain, Any]]":
        if len(items) != len(self.items):
            raise PositionError(
                f"{shorten(items)} has {len(items)} items where {len(self.items)} are expected"
            )
        return zip(self.items, items, strict=True)

    def _encode(self, position: Position) -> bytes:
        if not isinstance(position, tuple):
            raise PositionError(f"{position!r} is no list")
        return b"".join(domain._encode(item) for domain, item in self._paired(position))

    def _decode(self, key: bytes, start: int) -> tuple[Position, int]:
        position = []
        for domain in self.items:
            item, start = domain._decode(key, start)
            position.append(item)
        return tuple(position), start


def _item_from_text(domain: Domain, item: object) -> Position:
    """Integers may stand bare in the array, as in `[7, "b"]`."""
    if isinstance(item, str):
        return domain.from_text(item)
    if item.__class__ is int and isinstance(domain, IntegerDomain):
        return domain.parse(item)
    raise PositionError(f"{shorten(item)} ({json_kind(item)}) where text is expected")
