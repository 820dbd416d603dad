"""Where a value stands in a JSON answer: dotted names, or the part of JSONPath that names exactly one place.

    events                      the member `events`
    complete_through.position   a member of a member
    $.data['odd.name'][0]       names, quoted names, indices
    @                           the element itself (also `$` alone)

A path that is not there is something else than a `null` that is: the first is an error, whose text names
the path, what stands there instead, and the likely name; the second is a value. Below a `null` everything
is `null`."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

_NAME = re.compile(r"[A-Za-z_][\w-]*")
_STEP = re.compile(
    r"""\.(?P<name>[A-Za-z_][\w-]*)|\['(?P<single>(?:[^'\\]|\\.)*)'\]|\["(?P<double>(?:[^"\\]|\\.)*)"\]|\[(?P<index>\d+)\]"""
)
_KEYS_SHOWN = 12
_ALLOWED = "allowed: dotted names, or $ with .name, ['name'] and [index], or @"


class PathSyntaxError(ValueError):
    """The text is no path expression of the kind above."""


class PathAbsentError(LookupError):
    """There is nothing at the path. The message says where it breaks off and what is there."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed path: `text` as the user wrote it, `steps` the member names and indices from the root.

    >>> JsonPath.parse("complete_through.position").find({"complete_through": {"position": 7}})
    7
    >>> JsonPath.parse("$['odd.name'][1]").find({"odd.name": [1, 2]})
    2
    >>> JsonPath.parse("next").find({"nxt": "t1"})
    Traceback (most recent call last):
    gapless.paging.json_path.PathAbsentError: `next` is absent; the keys there: nxt; did you mean `nxt`?
    """

    text: str
    steps: tuple[str | int, ...]

    @classmethod
    def parse(cls, text: str) -> "JsonPath":
        """Raises PathSyntaxError."""
        return cls(text, tuple(_steps(text)))

    @property
    def name(self) -> str | None:
        """The member name where the path is one name at the root, else None: callers have a faster way for
        that."""
        if len(self.steps) == 1 and isinstance(self.steps[0], str):
            return self.steps[0]
        return None

    def find(self, value: object) -> object:
        """The value at the path; None where it, or something above it, is null. Raises PathAbsentError."""
        for depth, step in enumerate(self.steps):
            if value is None:
                return None
            inside = _child(value, step)
            if inside is _ABSENT:
                raise PathAbsentError(self._absence(depth, value))
            value = inside
        return value

    def find_in_each(self, rows: Sequence[Mapping[str, object]]) -> list[object]:
        """`find` in every row, in order. Raises PathAbsentError, naming the row's index."""
        if self.name is not None:
            try:
                return list(map(itemgetter(self.name), rows))
            except KeyError:
                pass  # found again below, where its row is named
        values: list[object] = []
        for index, row in enumerate(rows):
            try:
                values.append(self.find(row))
            except PathAbsentError as absent:
                raise PathAbsentError(f"[{index}]: {absent}") from None
        return values

    def _absence(self, depth: int, there: object) -> str:
        reached = "" if depth == 0 else f" (up to `{_spell(self.steps[:depth])}` it is there)"
        return f"`{self.text}` is absent{reached}; {_what_is_there(self.steps[depth], there)}"


def describe(value: object) -> str:
    """A JSON value's kind, with the value itself where it is short: for messages that say what was there
    instead."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {_shortened(repr(value))}"
    if isinstance(value, str):
        return f"the text {_shortened(repr(value))}"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, Mapping):
        return f"an object with {_key_list(value)}"
    return f"a {type(value).__name__}"


_ABSENT = object()


def _child(value: object, step: str | int) -> object:
    if isinstance(step, str):
        return value.get(step, _ABSENT) if isinstance(value, Mapping) else _ABSENT
    return value[step] if isinstance(value, list) and step < len(value) else _ABSENT


def _steps(text: str) -> list[str | int]:
    if text in {"@", "$"}:
        return []
    rest = text[1:] if text.startswith("$") else f".{text}"
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise PathSyntaxError(f"{text!r} is no path (from {rest[at:]!r} on); {_ALLOWED}")
        steps.append(_step(match))
        at = match.end()
    if not steps:
        raise PathSyntaxError(f"a path cannot be empty; {_ALLOWED}")
    return steps


def _step(match: re.Match[str]) -> str | int:
    if match["name"] is not None:
        return match["name"]
    if match["index"] is not None:
        return int(match["index"])
    quoted = match["single"] if match["single"] is not None else match["double"]
    return re.sub(r"\\(.)", r"\1", quoted)


def _spell(steps: Sequence[str | int]) -> str:
    text = "$"
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _NAME.fullmatch(step):
            text += f".{step}"
        else:
            text += f"[{step!r}]"
    return text.removeprefix("$.")


def _what_is_there(step: str | int, there: object) -> str:
    if isinstance(step, str) and isinstance(there, Mapping):
        likely = difflib.get_close_matches(step, map(str, there), n=1)
        return f"the keys there: {_key_list(there)}" + (f"; did you mean `{likely[0]}`?" if likely else "")
    return f"there is {describe(there)}"


def _key_list(value: Mapping[str, object]) -> str:
    keys = [str(key) for key in value]
    if not keys:
        return "no keys"
    more = len(keys) - _KEYS_SHOWN
    return ", ".join(_shortened(key) for key in keys[:_KEYS_SHOWN]) + (
        f" and {more} more" if more > 0 else ""
    )


def _shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
