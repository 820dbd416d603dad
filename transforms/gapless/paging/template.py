"""Templates of paths and parameters: `{partition.<field>}`, `{start}` and `{stop}`, and nothing else in
braces.

No expression, no format, no nesting: a template is text with places. In a path each value is URL-encoded
whole, so that no value can leave its segment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

_PLACE = re.compile(r"\{([^{}]*)\}")
_FIELD = re.compile(r"partition\.([A-Za-z_][\w-]*)")
_ALLOWED = "allowed in braces: partition.<field>, start, stop"


class TemplateSyntaxError(ValueError):
    """The text holds a brace that is none of the places above."""


class TemplateValueError(ValueError):
    """A value cannot stand at its place: it is missing, empty, no text or number, or would leave its path
    segment."""


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: `literals` and the `places` between them, one literal more than places.

    >>> Template.parse("/p/{partition.id}/events").path({"partition.id": "a/b c"})
    '/p/a%2Fb%20c/events'
    """

    text: str
    literals: tuple[str, ...]
    places: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, allowed: tuple[str, ...] = ()) -> "Template":
        """`allowed` are the places there may be; none: those of a partition's pages. Raises TemplateSyntaxError."""
        literals, places, at = [], [], 0
        for match in _PLACE.finditer(text):
            literals.append(text[at : match.start()])
            places.append(_checked_place(match[1], allowed))
            at = match.end()
        literals.append(text[at:])
        for literal in literals:
            if "{" in literal or "}" in literal:
                raise TemplateSyntaxError(f"a brace without its partner; {_told(allowed)}")
        return cls(text, tuple(literals), tuple(places))

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The fields of a partition it needs, in order of appearance."""
        return tuple(
            place.removeprefix("partition.") for place in self.places if place.startswith("partition.")
        )

    def path(self, values: Mapping[str, object]) -> str:
        """Fill in for a URL's path, every value percent-encoded. `values` by place. Raises
        TemplateValueError."""
        filled = self._fill({place: quote(_text(place, values), safe="") for place in self.places})
        for segment in filled.split("/"):
            if segment in {".", ".."}:
                raise TemplateValueError(f"{self.text!r} would become a path with the segment {segment!r}")
        return filled

    def plain(self, values: Mapping[str, object]) -> str:
        """Fill in as it is, for a parameter that is encoded as a whole later. Raises TemplateValueError."""
        return self._fill({place: _text(place, values) for place in self.places})

    def _fill(self, texts: Mapping[str, str]) -> str:
        parts = [self.literals[0]]
        for place, literal in zip(self.places, self.literals[1:], strict=True):
            parts += (texts[place], literal)
        return "".join(parts)


def _checked_place(place: str, allowed: tuple[str, ...]) -> str:
    if place in allowed if allowed else (place in {"start", "stop"} or _FIELD.fullmatch(place)):
        return place
    raise TemplateSyntaxError(f"{{{place}}} is unknown; {_told(allowed)}")


def _told(allowed: tuple[str, ...]) -> str:
    return f"allowed in braces: {', '.join(allowed)}" if allowed else _ALLOWED


def _text(place: str, values: Mapping[str, object]) -> str:
    value = values.get(place)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and value:
        return value
    there = "nothing" if value is None else "an empty text" if value == "" else f"a {type(value).__name__}"
    raise TemplateValueError(f"{{{place}}} has {there} to put there; a text or an integer is needed")
