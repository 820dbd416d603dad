"""A domain is the ordered set positions live in: it reads them exactly, writes them as text, and makes keys of bounds.

Every domain is a value: picklable, hashable, equal where it is declared alike.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from gapless.errors import ConfigurationError, NotComparable, PositionError
from gapless.progress import keys
from gapless.progress.bound import Bound, Position
from gapless.progress.decimals import decimal_text, json_kind, parse_integer

COLLATIONS = {
    "binary": "binary",
    "c": "binary",
    "posix": "binary",
    "ucs_basic": "binary",
    "codepoint": "binary",
}


class Domain(ABC):
    """What all domains do. Positions are those of `parse`; every other method takes and gives these."""

    __slots__ = ()

    @property
    def discrete(self) -> bool:
        """Whether every position has a next one, so that through(p) is before(p + 1).

        >>> IntegerDomain().discrete, TextDomain().discrete
        (True, False)
        """
        return False

    @abstractmethod
    def parse(self, raw: object) -> Position:
        """The position that a JSON value means. Raises PositionError saying what was there instead.

        >>> IntegerDomain().parse(7.0)
        Traceback (most recent call last):
        gapless.errors.PositionError: 7.0 (float) where an integer is expected
        a float may have lost digits on its way: have the source send an integer or decimal text
        """

    @abstractmethod
    def text(self, position: Position) -> str:
        """The canonical text of a position. Law: `from_text(text(p)) == p`. Raises PositionError.

        >>> IntegerDomain().text(7)
        '7'
        """

    @abstractmethod
    def from_text(self, text: str) -> Position:
        """The position whose text this is; what a user types. Raises PositionError.

        >>> IntegerDomain().from_text("007")
        7
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The domain as JSON values. Law: `domain_from(d.describe()) == d`.

        >>> TextDomain().describe()
        {'type': 'text', 'collation': 'binary'}
        """

    @abstractmethod
    def _encode(self, position: Position) -> bytes: ...

    @abstractmethod
    def _decode(self, key: bytes, start: int) -> tuple[Position, int]: ...

    def key(self, bound: Bound | None) -> bytes:
        """Bytes in the order of bounds; no bound is b"". Law: a < b exactly where key(a) < key(b) < NO_CAP.

        >>> IntegerDomain().key(Bound.through(9)) < IntegerDomain().key(Bound.before(10))
        True
        """
        if bound is None:
            return keys.NO_BOUND
        endpoint = keys.THROUGH if bound.inclusive else keys.BEFORE
        return self._encode(bound.position) + bytes((endpoint,))

    def from_key(self, key: bytes) -> Bound | None:
        """The bound of a key. Raises PositionError for bytes that are no key of this domain.

        Law: `from_key(key(b)) == b`, and where bytes are a key, `key(from_key(k)) == k`.

        >>> TextDomain().from_key(TextDomain().key(Bound.before("a")))
        Bound.before('a')
        """
        if key == keys.NO_BOUND:
            return None
        encoded, inclusive = keys.split_endpoint(key)
        position, end = self._decode(encoded, 0)
        if end != len(encoded):
            raise PositionError(f"{key.hex()} is no key of this domain")
        return Bound(position, inclusive)

    def exclusive(self, bound: Bound) -> Bound:
        """The same cut as an exclusive bound. Raises NotComparable where an inclusive one has none.

        >>> IntegerDomain().exclusive(Bound.through(9))
        Bound.before(10)
        >>> TextDomain().exclusive(Bound.before("b"))
        Bound.before('b')
        """
        if not bound.inclusive:
            return bound
        if not self.discrete or not isinstance(bound.position, int):
            raise NotComparable(f"{bound!r} has no exclusive form: its domain knows no next position")
        return Bound.before(bound.position + 1)


@dataclass(frozen=True, slots=True)
class IntegerDomain(Domain):
    """Integers of any size.

    >>> IntegerDomain().parse("18446744073709551617")
    18446744073709551617
    """

    @property
    def discrete(self) -> bool:
        return True

    def parse(self, raw: object) -> Position:
        if raw.__class__ is int:
            return raw
        return parse_integer(raw)

    def text(self, position: Position) -> str:
        return decimal_text(_require_int(position))

    def from_text(self, text: str) -> Position:
        return parse_integer(text)

    def describe(self) -> dict[str, Any]:
        return {"type": "integer"}

    def _encode(self, position: Position) -> bytes:
        return keys.encode_integer(_require_int(position))

    def _decode(self, key: bytes, start: int) -> tuple[Position, int]:
        return keys.decode_integer(key, start)


@dataclass(frozen=True, slots=True)
class TextDomain(Domain):
    """Unicode text in the order of its code points, which is also the order of its UTF-8 bytes (`binary`).

    >>> TextDomain().parse("9") > TextDomain().parse("10")
    True
    """

    collation: str = "binary"

    def __post_init__(self) -> None:
        known = COLLATIONS.get(self.collation.lower()) if isinstance(self.collation, str) else None
        if known is None:
            raise ConfigurationError(
                f"collation {self.collation!r} is unknown: text is ordered by code point",
                remedy="write `collation: binary`",
            )
        object.__setattr__(self, "collation", known)

    def parse(self, raw: object) -> Position:
        if raw.__class__ is not str:
            raise PositionError(f"{raw!r} ({json_kind(raw)}) where the domain says text")
        keys.encode_text(raw)
        return raw

    def text(self, position: Position) -> str:
        if not isinstance(position, str):
            raise PositionError(f"{position!r} is no text")
        return position

    def from_text(self, text: str) -> Position:
        return self.parse(text)

    def describe(self) -> dict[str, Any]:
        return {"type": "text", "collation": self.collation}

    def _encode(self, position: Position) -> bytes:
        return keys.encode_text(self.text(position))

    def _decode(self, key: bytes, start: int) -> tuple[Position, int]:
        return keys.decode_text(key, start)


def bound_text(bound: Bound, domain: Domain) -> str:
    """A bound of that domain in words. Raises PositionError.

    >>> bound_text(Bound.through(100), IntegerDomain()), bound_text(Bound.before("b"), TextDomain())
    ('through 100', 'before b')
    """
    return f"{'through' if bound.inclusive else 'before'} {domain.text(bound.position)}"


def coarsen(bound: Bound, grain: int) -> Bound:
    """The same claim in units `grain` times as large, exclusive, and never above what was certified.

    Raises NotComparable unless the position is an integer, ValueError unless `grain` is positive.

    >>> coarsen(Bound.through(123456789), 1000), coarsen(Bound.through(123456999), 1000)
    (Bound.before(123456), Bound.before(123457))
    """
    if grain.__class__ is not int or grain < 1:
        raise ValueError(f"a coarser unit holds a positive whole number of finer ones, not {grain!r}")
    if not isinstance(bound.position, int):
        raise NotComparable(f"{bound!r} has no coarser unit: its domain is no line of integers")
    return Bound.before((bound.position + bound.inclusive) // grain)


def _require_int(position: Position) -> int:
    if position.__class__ is not int:
        raise PositionError(f"{position!r} is no integer")
    return position
