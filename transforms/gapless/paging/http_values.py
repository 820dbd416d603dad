"""Single values of a `source:` block of `type: http`, each as a type: paths, templates, URLs and headers, checked one by one."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from gapless.paging.json_path import JsonPath, PathSyntaxError
from gapless.paging.template import Template, TemplateSyntaxError

_SECRET_HEADER = re.compile(r"authorization|cookie|api-?key|token|secret|password", re.IGNORECASE)
SECRET_PARAM = re.compile(
    r"api[-_]?key|access[-_]?token|auth[-_]?token|client[-_]?secret|secret|password", re.IGNORECASE
)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _checked_path(text: str) -> str:
    try:
        JsonPath.parse(text)
    except PathSyntaxError as error:
        raise PydanticCustomError("json_path", "{reason}", {"reason": str(error)}) from None
    return text


HANDOFF_PLACES = ("from", "to")
"""What stands in braces where a handoff certificate is asked for: the two routing generations."""


def checked_template(text: str, allowed: tuple[str, ...] = ()) -> str:
    """The text as it is. Raises PydanticCustomError where it is no template."""
    try:
        Template.parse(text, allowed)
    except TemplateSyntaxError as error:
        raise PydanticCustomError("template", "{reason}", {"reason": str(error)}) from None
    return text


def _checked_handoff_template(text: str) -> str:
    checked_template(text, HANDOFF_PLACES)
    if any(f"{{{place}}}" not in text for place in HANDOFF_PLACES):
        raise PydanticCustomError(
            "template", "does not name both generations; allowed: a path with {from} and {to}"
        )
    return text


def _checked_url_path(text: str) -> str:
    if not text.startswith("/") or "?" in text or "#" in text:
        raise PydanticCustomError(
            "url_path", "no path of a URL; allowed: /…, without ? and # (parameters stand in `params`)"
        )
    return text


def _no_places(text: str) -> str:
    if "{" in text or "}" in text:
        raise PydanticCustomError("url_path", "no partition is known here; allowed: a path without braces")
    return text


def _checked_base_url(text: str) -> str:
    try:
        url = urlsplit(text)
        named = url.scheme in {"http", "https"} and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        named = False
    if not named or url.query or url.fragment:
        raise PydanticCustomError(
            "base_url", "no base URL; allowed: http(s)://host[:port][/path], without ? and #"
        )
    if url.username is not None or url.password is not None:
        raise PydanticCustomError(
            "base_url", "a user or password in the URL; allowed: `auth` with a reference to the secret"
        )
    return text.rstrip("/")


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not value.isprintable():
            raise PydanticCustomError(
                "headers",
                "no header: {name}; allowed: one line of text under a header's name",
                {"name": repr(name)},
            )
        if _SECRET_HEADER.search(name):
            raise PydanticCustomError(
                "secret", "{name} looks like a secret; allowed: `auth` with a reference to it", {"name": name}
            )
    return headers


JsonPathText = Annotated[str, AfterValidator(_checked_path)]
PathTemplate = Annotated[str, AfterValidator(_checked_url_path), AfterValidator(checked_template)]
HandoffTemplate = Annotated[str, AfterValidator(_checked_url_path), AfterValidator(_checked_handoff_template)]
FixedPath = Annotated[str, AfterValidator(_checked_url_path), AfterValidator(_no_places)]
PositionPath = Annotated[JsonPathText | Annotated[list[JsonPathText], Field(min_length=1)], Field()]
"""Where a position stands; for a domain that is a list, also one path for each of its parts."""
Scalar = str | int | float | bool
HttpStatus = Annotated[int, Field(ge=100, le=599)]
BaseUrl = Annotated[str, AfterValidator(_checked_base_url)]
Headers = Annotated[dict[str, str], AfterValidator(_checked_headers)]
