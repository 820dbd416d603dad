"""The domain of instants: whole units of a declared precision since 1970-01-01T00:00Z, read as the source writes them."""

from dataclasses import dataclass
from typing import Any

from gapless.errors import ConfigurationError, PositionError
from gapless.progress import keys
from gapless.progress.bound import Position
from gapless.progress.decimals import json_kind, shorten
from gapless.progress.domain import Domain
from gapless.progress.instants import PRECISIONS, instant_text, parse_rfc3339, parse_unix
from gapless.progress.timestamp_format import parse_formatted, require_format

READINGS = ("rfc3339", "unix_s", "unix_ms", "unix_us", "unix_ns")


@dataclass(frozen=True, slots=True)
class TimestampDomain(Domain):
    """Instants in `precision` (s, ms, us, ns); `read` says how the source writes them, or `format` and `zone` do.

    Positions are integers, so that they compare exactly. A value finer than the precision is refused, never cut.
    Raises ConfigurationError for a declaration that cannot be meant so.

    >>> TimestampDomain("ms").parse("2026-07-23T21:59:38.5+05:30")
    1784824178500
    >>> TimestampDomain("ms").text(1784824178500)
    '2026-07-23T16:29:38.500Z'
    """

    precision: str
    read: str = "rfc3339"
    format: str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ConfigurationError(f"precision {self.precision!r} is none of {', '.join(PRECISIONS)}")
        if self.format is None:
            if self.zone is not None:
                raise ConfigurationError(
                    "`zone` needs `format`: it says in which zone formatted times are written"
                )
            if self.read not in READINGS:
                raise ConfigurationError(
                    f"read {self.read!r} is none of {', '.join(READINGS)}",
                    remedy="or declare `read: {format, zone}`",
                )
            return
        if self.read not in ("rfc3339", "format"):
            raise ConfigurationError(f"read {self.read!r} and a format exclude each other")
        object.__setattr__(self, "read", "format")
        require_format(self.format, self.zone)

    @property
    def discrete(self) -> bool:
        return True

    def parse(self, raw: object) -> Position:
        places = PRECISIONS[self.precision]
        if self.read.startswith("unix_"):
            return parse_unix(raw, PRECISIONS[self.read[5:]], places)
        if not isinstance(raw, str):
            raise PositionError(f"{shorten(raw)} ({json_kind(raw)}) where a time is expected as text")
        if self.format is not None:
            return parse_formatted(raw, self.format, self.zone, places)
        return parse_rfc3339(raw, places)

    def text(self, position: Position) -> str:
        return instant_text(_require_units(position), PRECISIONS[self.precision])

    def from_text(self, text: str) -> Position:
        if not isinstance(text, str):
            raise PositionError(f"{text!r} is no RFC 3339 time")
        return parse_rfc3339(text, PRECISIONS[self.precision])

    def describe(self) -> dict[str, Any]:
        reading: Any = self.read
        if self.format is not None:
            reading = (
                {"format": self.format} if self.zone is None else {"format": self.format, "zone": self.zone}
            )
        return {"type": "timestamp", "precision": self.precision, "read": reading}

    def _encode(self, position: Position) -> bytes:
        return keys.encode_integer(_require_units(position))

    def _decode(self, key: bytes, start: int) -> tuple[Position, int]:
        return keys.decode_integer(key, start)


def _require_units(position: Position) -> int:
    if position.__class__ is not int:
        raise PositionError(f"{position!r} is no instant: instants are whole units since 1970")
    return position
