"""The ground of every configuration model: strict types, unknown keys refused, and one way to refuse what
is not built yet.

`findings(error, Model, data)` turns pydantic's error into findings a user can act on: the path as it stands
in the document (no tags of unions in it), what is wrong, what is allowed. No value of the document is
repeated in them, since it may be a secret that was written where it should not stand."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Tag,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails, PydanticCustomError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class ConfigModel(BaseModel):
    """A mapping of the job file: unknown keys are errors, types are not coerced, values never change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


def not_built(what: str, under: str | None = None) -> PydanticCustomError:
    """The error for something this version knows of and does not do yet; it stands at the key `under` of
    its place."""
    context = {"what": what, "under": under or ""}
    return PydanticCustomError("not_built", "{what} is not built yet in this version", context)


def _refuse_key(value: object, info: ValidationInfo) -> object:
    raise not_built(f"`{(info.field_name or '').rstrip('_')}`")


NotBuilt = Annotated[
    object,
    BeforeValidator(_refuse_key),
    WithJsonSchema({"not": {}, "description": "not built yet in this version"}),
]
"""Type of a key that is reserved: `rate: NotBuilt = None`. Writing it is refused, plainly and at its own
place."""


def refuse_not_built(*words: str, under: str | None = None) -> BeforeValidator:
    """For a key some of whose words are reserved, or a mapping some of whose kinds, named under the key
    `under`, are."""

    def check(value: object, info: ValidationInfo) -> object:
        key = under or info.field_name
        word = value.get(under) if under is not None and isinstance(value, Mapping) else value
        if isinstance(word, str) and word in words:
            raise not_built(f"`{key}: {word}`", under)
        return value

    return BeforeValidator(check)


LONGEST_DURATION = 3650 * 86_400.0
"""Seconds. No clock or socket of the system has to wait for longer than it can."""


def _seconds(value: object) -> object:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise PydanticCustomError(
            "duration", "not a duration; allowed: a number with its unit, such as 500ms, 10s, 15m, 2h, 1d"
        )
    seconds = float(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds <= 0:
        raise PydanticCustomError("duration", "a duration has to be longer than nothing")
    if seconds > LONGEST_DURATION:
        raise PydanticCustomError("duration", "a duration of more than ten years; at most 3650d")
    return seconds


Duration = Annotated[
    float,
    BeforeValidator(_seconds),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d)$", "examples": ["10s"]}),
]
"""Written `10s`, `500ms`, `15m`; held in seconds."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing wrong in a document, whose file and lines are not known here: `path` of keys and indices from
    its root, `what` is wrong, what is `allowed`."""

    path: tuple[str | int, ...]
    what: str
    allowed: str = ""

    def __str__(self) -> str:
        place = ".".join(map(str, self.path))
        return f"{place}: {self.what}" + (f"; {self.allowed}" if self.allowed else "")


def findings(error: ValidationError, model: type[BaseModel], data: object) -> list[Found]:
    """What `error`, raised by validating `data` as `model`, says in the user's terms: one finding a place,
    in order."""
    found: dict[tuple[str | int, ...], Found] = {}
    for detail in error.errors(include_url=False):
        path = _path_in_document(detail["loc"], data, names_missing_key=detail["type"] == "missing")
        if under := detail.get("ctx", {}).get("under"):
            path = (*path, under)
        what, allowed = _explain(detail, model)
        if path in found and found[path].what == what and allowed not in found[path].allowed:
            allowed = (
                f"{found[path].allowed} or {allowed.removeprefix('allowed: ')}"  # the branches of a union
            )
        found[path] = Found(path, what, allowed)
    return list(found.values())


def _path_in_document(
    location: tuple[int | str, ...], data: object, *, names_missing_key: bool
) -> tuple[int | str, ...]:
    """The location without the tags of unions, which are no part of the document."""
    path: list[int | str] = []
    for depth, step in enumerate(location):
        is_missing_key = names_missing_key and depth == len(location) - 1
        is_there = step in data if isinstance(data, Mapping) else _is_index(step, data)
        if is_there or is_missing_key:
            path.append(step)
        if is_there:
            data = data[step]  # type: ignore[index]  # is_there says that it can be indexed so
    return tuple(path)


def _is_index(step: int | str, data: object) -> bool:
    return isinstance(data, list) and isinstance(step, int) and step < len(data)


_KINDS = {
    "string_type": "a text",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _explain(detail: ErrorDetails, model: type[BaseModel]) -> tuple[str, str]:
    kind, location = detail["type"], detail["loc"]
    if kind == "extra_forbidden":
        keys = sorted(_keys(_models_at(model, location[:-1])))
        likely = difflib.get_close_matches(str(location[-1]), keys, n=1)
        hint = f"did you mean `{likely[0]}`? " if likely else ""
        return "unknown key", f"{hint}allowed: {', '.join(keys)}"
    if kind == "missing":
        return "missing; it has to be given", ""
    if kind == "union_tag_not_found":
        return f"{detail['ctx']['discriminator']} is missing", "allowed: a mapping that names its kind there"
    if kind == "union_tag_invalid":
        return (
            "unknown kind",
            f"allowed as {detail['ctx']['discriminator']}: {detail['ctx']['expected_tags']}",
        )
    if kind in _KINDS:
        return f"{_kind_of(detail['input'])} cannot stand here", f"allowed: {_KINDS[kind]}"
    if kind == "literal_error":
        return "unknown word", f"allowed: {detail['ctx']['expected']}"
    what, _, allowed = detail["msg"].removeprefix("Value error, ").partition("; ")
    return what, allowed


def _kind_of(value: object) -> str:
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "a boolean"
    kinds = {int: "an integer", float: "a number", str: "a text", list: "a list", dict: "a mapping"}
    return kinds.get(type(value), f"a {type(value).__name__}")


def _models_at(model: type[BaseModel], location: Sequence[int | str]) -> list[type[BaseModel]]:
    """The models that may stand at the location; where it holds a union's tag, the one of that tag."""
    here: list[tuple[type[BaseModel], str | None]] = [(model, None)]
    for step in location:
        inside = [
            candidate
            for one, _ in here
            for name, field in one.model_fields.items()
            if step in {name, field.alias}
            for candidate in _models_in(field.annotation)
        ]
        here = inside or [one for one in here if one[1] == step] or here
    return [one for one, _ in here]


def _models_in(annotation: object, tag: str | None = None) -> Iterator[tuple[type[BaseModel], str | None]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, tag
        return
    tags = [part.tag for part in getattr(annotation, "__metadata__", ()) if isinstance(part, Tag)]
    for part in get_args(annotation):
        yield from _models_in(part, tags[0] if tags else tag)


def _keys(models: Sequence[type[BaseModel]]) -> set[str]:
    return {field.alias or name for one in models for name, field in one.model_fields.items()}
