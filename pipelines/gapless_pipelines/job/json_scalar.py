"""What an unquoted word of a job file is, by JSON's rules, which are a few of YAML's."""

import math
import re

_NULL = frozenset({"", "~", "null"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")


def json_scalar(text: str) -> object:
    """The value of an unquoted scalar: null, true, false, a number as JSON writes it, or text; integers exact.

    Raises ValueError where the number is beyond what can be held.

    >>> [json_scalar(text) for text in ("10", "1.5", "true", "null", "")]
    [10, 1.5, True, None, None]
    >>> [json_scalar(text) for text in ("NO", "0123", "1_000", "12:30:45", "True")]
    ['NO', '0123', '1_000', '12:30:45', 'True']
    """
    if text in _NULL:
        return None
    if text in ("true", "false"):
        return text == "true"
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    if number["fraction"] is None and number["exponent"] is None:
        return _integer(text)
    value = float(text)
    if math.isinf(value):
        raise ValueError("is a number too large to be exact")
    return value


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"is a number of {len(text)} digits") from None


def kind_of(value: object) -> str:
    """What a value is, in a reader's words.

    >>> kind_of(None), kind_of([1])
    ('null', 'a list')
    """
    if value is None:
        return "null"
    kinds = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "an integer"}
    return kinds.get(type(value), "a number")
