"""JSON text that says exactly what a value was: integers of any size, and no number turned into null on the way."""

import json
from collections.abc import Mapping
from typing import Final

import msgspec

from gapless.errors import EffectError

_QUICK: Final = msgspec.json.Encoder()
_STRICT: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


class NotJson(EffectError):
    """A value without a JSON form: NaN or an infinity, or of a type that JSON does not know."""


def lossless_json(value: object) -> bytes:
    """Compact JSON of a JSON value, as UTF-8. Lone surrogates are written as escapes. Raises NotJson.

    >>> lossless_json({"big": 2**70, "text": "é", "none": None}).decode()
    '{"big":1180591620717411303424,"text":"\\\\u00e9","none":null}'
    """
    try:
        text = _QUICK.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _strict(value)
    # The quick encoder writes NaN as null. Where it wrote no null it met no NaN; else the strict one decides.
    return _strict(value) if b"null" in text else text


def event_json(row: Mapping[str, object]) -> str:
    """An event's data as JSON text. What has no JSON form stands in it as Python writes it. Raises NotJson where nothing helps.

    >>> event_json({"at": float("inf"), "of": {1}})
    '{"at":Infinity,"of":"{1}"}'
    """
    try:
        return lossless_json(row).decode()
    except NotJson:
        try:
            return json.dumps(row, default=repr, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise NotJson(f"an event's data cannot be kept: {error}") from error


def _strict(value: object) -> bytes:
    try:
        return _STRICT.encode(value).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(f"a value has no JSON form: {error}") from error
