"""`${NAME}` in a value stands for an environment variable, `$$` for a dollar; any other `$` is itself."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_DOLLAR = re.compile(r"\$\$|\$\{(?P<name>[^{}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

SYNTAX = "write ${NAME} for the environment variable NAME, and $$ for a dollar sign"


@dataclass(frozen=True, slots=True)
class Expansion:
    """`text` with every variable replaced that could be; the `unset` ones, and whether some was no variable."""

    text: str
    unset: tuple[str, ...] = ()
    malformed: bool = False


def expand(text: str, environment: Mapping[str, str]) -> Expansion:
    """Replace the variables of one value. A variable set to the empty text counts as set.

    >>> expand("${HOST}/v1", {"HOST": "http://api"}).text
    'http://api/v1'
    >>> expand("$.items $${HOST} costs 5$", {}).text
    '$.items ${HOST} costs 5$'
    >>> expand("${HOST}", {}).unset
    ('HOST',)
    >>> expand("${HOST:-x} ${", {}).malformed
    True
    """
    unset: list[str] = []
    malformed = False

    def replace(match: re.Match[str]) -> str:
        nonlocal malformed
        written, name = match[0], match["name"]
        if written == "$$":
            return "$"
        if name is None or not _NAME.fullmatch(name):
            malformed = True
            return written
        if name not in environment:
            unset.append(name)
            return written
        return environment[name]

    expanded = _DOLLAR.sub(replace, text)
    return Expansion(expanded, tuple(unset), malformed)
