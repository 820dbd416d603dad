"""What no single key can tell: whether the parts of a job file fit each other.

Each check looks at the values as written and needs only the parts it names to be good, so that a problem elsewhere
hides none here."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gapless.errors import ConfigurationError, PositionError
from gapless.paging.config_model import Found
from gapless.progress import Bound, Domain, ListDomain, Position, domain_from
from gapless_pipelines.findings import KeyPath
from gapless_pipelines.job.domain_config import domain_problems
from gapless_pipelines.job.positions import position_of
from gapless_pipelines.job.validation import value_at
from gapless_pipelines.options import option_problems

_AS_WRITTEN = "a position as the source writes it, or as gapless prints it"
_POSITION_PATHS: tuple[KeyPath, ...] = (
    ("source", "event", "position"),
    ("source", "certificate", "page", "position"),
)


def domain_findings(value: Mapping[str, Any]) -> Iterator[Found]:
    """A domain that cannot be, of a good shape."""
    for below, problem in domain_problems(value["domain"]):
        yield Found(("domain", *below), problem.what, problem.allowed)


def job_findings(value: Mapping[str, Any], good: Callable[[KeyPath], bool]) -> Iterator[Found]:
    """All the rest. `good` tells whether what stands at a path, and below, is known to be right in itself."""
    if good(("domain",)):
        domain = domain_from(value["domain"])
        yield from _positions_that_are_none(value, domain, good)
        yield from _other_parts_than_the_domain(value, domain, good)
    yield from _bounds_that_are_missing(value)
    if good(("schema",)):
        yield from _impossible_columns(value.get("schema") or {})
    if good(("pipeline_options",)):
        yield from _impossible_options(value, good)
    if good(("effect",)) and good(("dead_letters",)):
        yield from _shared_folder(value)


def _positions_that_are_none(
    value: Mapping[str, Any], domain: Domain, good: Callable[[KeyPath], bool]
) -> Iterator[Found]:
    read: dict[str, Position] = {}
    for end in ("start", "stop"):
        path = ("range", end)
        written = value_at(value, path)
        if written is None or not good(path):
            continue
        try:
            read[end] = position_of(domain, written)
        except PositionError as error:
            yield Found(path, f"is no position: {error.what}", error.remedy or _AS_WRITTEN)
    if len(read) == 2 and not Bound.before(read["start"]) < Bound.before(read["stop"]):
        yield Found(
            ("range", "stop"), "does not lie after `start`", "a stop after the start, itself excluded"
        )


def _other_parts_than_the_domain(
    value: Mapping[str, Any], domain: Domain, good: Callable[[KeyPath], bool]
) -> Iterator[Found]:
    """One path reads one value; several read the parts of a list, as many as the domain has."""
    parts = len(domain.items) if isinstance(domain, ListDomain) else 0
    for path in _POSITION_PATHS:
        written = value_at(value, path)
        if not isinstance(written, list) or not good(path) or len(written) == parts:
            continue
        if parts:
            yield Found(
                path, f"names {len(written)} paths", f"{parts}, one for each part of the domain, or one path"
            )
        else:
            yield Found(path, "names several paths", "one path, or a domain that is a list")


def _bounds_that_are_missing(value: Mapping[str, Any]) -> Iterator[Found]:
    """Ends of the range that something else relies on."""
    closed = ("source", "certificate", "assert", "closed_range")
    if value_at(value, closed) is True and value_at(value, ("range", "stop")) is None:
        yield Found(closed, "asserts a range that has no end", "with it, `range: {stop: ...}`")
    for path, text in _templates(value_at(value, ("source", "pages"))):
        for end in ("start", "stop"):
            if f"{{{end}}}" in text and value_at(value, ("range", end)) is None:
                what = f"uses {{{end}}}, which the job does not give"
                yield Found(("source", "pages", *path), what, f"with it, `range: {{{end}: ...}}`")


def _templates(pages: object) -> Iterator[tuple[KeyPath, str]]:
    """The texts of `pages` in which places are filled in."""
    path, params = value_at(pages, ("path",)), value_at(pages, ("params",))
    if isinstance(path, str):
        yield ("path",), path
    for name, given in params.items() if isinstance(params, dict) else ():
        for index, text in enumerate(given) if isinstance(given, list) else [(None, given)]:
            if isinstance(text, str):
                yield ("params", name) if index is None else ("params", name, index), text


def _impossible_columns(columns: Mapping[str, str]) -> Iterator[Found]:
    if not columns:
        return
    from gapless.effects.frozen_schema import canonical_types

    for name, kind in columns.items():
        try:
            canonical_types({name: kind})
        except ConfigurationError as error:
            what = error.what.removeprefix("schema: ").removeprefix(f"{name}: ")
            yield Found(("schema", name), what, error.remedy)


def _impossible_options(value: Mapping[str, Any], good: Callable[[KeyPath], bool]) -> Iterator[Found]:
    store_url = value_at(value, ("store", "url")) if good(("store",)) else None
    for problem in option_problems(value.get("pipeline_options") or {}, store_url):
        yield Found(("pipeline_options", problem.name), problem.what, problem.allowed)


def _shared_folder(value: Mapping[str, Any]) -> Iterator[Found]:
    effect, dead = value_at(value, ("effect", "path")), value_at(value, ("dead_letters", "path"))
    if effect is not None and dead is not None and os.path.abspath(effect) == os.path.abspath(dead):
        yield Found(("dead_letters", "path"), "is the folder of the effect's own files", "another folder")
