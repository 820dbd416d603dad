"""Keys are bounds as bytes whose order is the order of the bounds, for stores that know nothing of domains.

    key      := b""                          no bound: below every bound
              | position  endpoint           endpoint: 01 before, 02 through
    integer  := 80+n, n bytes              0 and above: magnitude, big-endian, n < 70
              | f0, 8 bytes n, n bytes       longer ones
              | each byte of -integer inverted, for those below 0
    text     := UTF-8, 00 written 00 ff; then 00 01
    list     := its items, one after the other

Each position ends itself, so that no position is the beginning of another. All numbers here are hexadecimal. No key
begins with ff, so that NO_CAP is above every key.
"""

from typing import Final

from gapless.errors import PositionError

NO_BOUND: Final = b""
NO_CAP: Final = b"\xff" * 8
"""Above the key of every bound of every domain."""

BEFORE: Final = 0x01
THROUGH: Final = 0x02

_ZERO = 0x80
_LONG = 0xF0
_SHORT_LIMIT = _LONG - _ZERO
_LENGTH_BYTES = 8
_INVERT = bytes(255 - byte for byte in range(256))


def encode_integer(value: int) -> bytes:
    """The key of an integer of any size.

    >>> encode_integer(-1) < encode_integer(0) < encode_integer(255) < encode_integer(256)
    True
    """
    if value < 0:
        return encode_integer(-value).translate(_INVERT)
    size = (value.bit_length() + 7) // 8
    magnitude = value.to_bytes(size, "big")
    if size < _SHORT_LIMIT:
        return bytes((_ZERO + size,)) + magnitude
    return bytes((_LONG,)) + size.to_bytes(_LENGTH_BYTES, "big") + magnitude


def decode_integer(key: bytes, start: int) -> tuple[int, int]:
    """The integer that begins at `start`, and where it ends. Raises PositionError for damaged bytes.

    An integer has one key: what could be written shorter is damaged.
    """
    if start >= len(key):
        raise _damaged(key)
    if key[start] < _ZERO:
        value, end = decode_integer(key[start:].translate(_INVERT), 0)
        if value == 0:
            raise _damaged(key)
        return -value, start + end
    if key[start] > _LONG:
        raise _damaged(key)
    if key[start] < _LONG:
        size, begin = key[start] - _ZERO, start + 1
    else:
        begin = start + 1 + _LENGTH_BYTES
        size = int.from_bytes(key[start + 1 : begin], "big")
    too_long = begin > start + 1 and size < _SHORT_LIMIT
    if begin + size > len(key) or too_long or (size and key[begin] == 0):
        raise _damaged(key)
    return int.from_bytes(key[begin : begin + size], "big"), begin + size


def encode_text(value: str) -> bytes:
    """The key of text in code-point order. Raises PositionError for lone surrogates.

    >>> encode_text("") < encode_text(chr(0)) < encode_text("a") < encode_text("aa") < encode_text("b")
    True
    """
    try:
        utf8 = value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PositionError(f"{value!r} holds a lone surrogate: it is no Unicode text") from error
    return utf8.replace(b"\x00", b"\x00\xff") + b"\x00\x01"


def decode_text(key: bytes, start: int) -> tuple[str, int]:
    """The text that begins at `start`, and where it ends. Raises PositionError for damaged bytes."""
    end = key.find(b"\x00", start)
    while end >= 0 and key[end + 1 : end + 2] == b"\xff":
        end = key.find(b"\x00", end + 2)
    if end < 0 or key[end + 1 : end + 2] != b"\x01":
        raise _damaged(key)
    try:
        return key[start:end].replace(b"\x00\xff", b"\x00").decode("utf-8"), end + 2
    except UnicodeDecodeError as error:
        raise _damaged(key) from error


def split_endpoint(key: bytes) -> tuple[bytes, bool]:
    """The position's bytes, and whether the bound is inclusive. Raises PositionError for damaged bytes."""
    if not key or key[-1] not in (BEFORE, THROUGH):
        raise _damaged(key)
    return key[:-1], key[-1] == THROUGH


def _damaged(key: bytes) -> PositionError:
    return PositionError(
        f"{key.hex()} is no key of this domain", remedy="the store was written by something else"
    )
