"""Decimal text and integers, exactly: no float in between, and no limit on the digits."""

import re

from gapless.errors import PositionError

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?", re.ASCII)
_CHUNK = 512
_CHUNK_VALUE = 10**_CHUNK


def parse_integer(raw: object) -> int:
    """The integer that a JSON integer or decimal text means. Raises PositionError, for floats and booleans too.

    >>> parse_integer(" 7")
    Traceback (most recent call last):
    gapless.errors.PositionError: ' 7' is no decimal integer
    """
    if raw.__class__ is int:
        return raw
    if raw.__class__ is not str:
        raise PositionError(f"{raw!r} ({json_kind(raw)}) where an integer is expected", remedy=_remedy(raw))
    if _INTEGER.fullmatch(raw) is None:
        raise PositionError(f"{shorten(raw)} is no decimal integer")
    return _integer(raw)


def parse_decimal_units(text: str, places: int) -> int:
    """The decimal number `text` in units of 10**-places. Raises PositionError where it holds more digits than that.

    >>> parse_decimal_units("2.000002", 6), parse_decimal_units("-0.5", 3), parse_decimal_units("1.5000", 1)
    (2000002, -500, 15)
    """
    match = _DECIMAL.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise PositionError(f"{shorten(text)} is no decimal number")
    sign, whole, fraction = match.group(1), match.group(2), match.group(3) or ""
    magnitude: int = _integer(whole) * 10**places + fraction_units(fraction, places, text)
    return -magnitude if sign == "-" else magnitude


def fraction_units(digits: str, places: int, text: str) -> int:
    """The digits behind a decimal point in units of 10**-places; digits beyond these must be zero.

    `text` is the whole value, for the message of the PositionError."""
    if digits[places:].strip("0"):
        raise PositionError(
            f"{shorten(text)} has more digits than the {places} decimal places that are declared",
            remedy="declare the finer precision: positions are never cut",
        )
    kept = digits[:places].ljust(places, "0")
    return int(kept) if kept else 0


def decimal_text(value: int) -> str:
    """`str(value)` without the interpreter's limit on digits.

    >>> decimal_text(-12)
    '-12'
    """
    if value < 0:
        return "-" + decimal_text(-value)
    chunks = []
    while value >= _CHUNK_VALUE:
        value, low = divmod(value, _CHUNK_VALUE)
        chunks.append(str(low).zfill(_CHUNK))
    chunks.append(str(value))
    return "".join(reversed(chunks))


def json_kind(raw: object) -> str:
    """What JSON calls a decoded value.

    >>> json_kind(None), json_kind(True), json_kind(1.5), json_kind([])
    ('null', 'boolean', 'float', 'array')
    """
    names = {type(None): "null", bool: "boolean", int: "integer", float: "float", str: "text", dict: "object"}
    return names.get(type(raw), "array" if isinstance(raw, list | tuple) else type(raw).__name__)


def shorten(raw: object) -> str:
    """`repr`, cut to one readable line."""
    shown = repr(raw)
    return shown if len(shown) <= 80 else f"{shown[:60]}... ({len(shown)} characters)"


def _integer(digits: str) -> int:
    if len(digits) <= _CHUNK:
        return int(digits)
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-")
    first = len(digits) % _CHUNK
    value = int(digits[:first] or "0")
    for start in range(first, len(digits), _CHUNK):
        value = value * _CHUNK_VALUE + int(digits[start : start + _CHUNK])
    return sign * value


def _remedy(raw: object) -> str:
    if raw.__class__ is float:
        return "a float may have lost digits on its way: have the source send an integer or decimal text"
    return ""
