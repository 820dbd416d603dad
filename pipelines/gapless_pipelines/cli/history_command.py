"""`gapless history`: how frontier, bounds and membership epochs moved, with a sparkline of each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile, ScopeName, StoreUrl
from gapless_pipelines.cli.meaning import opened
from gapless_pipelines.cli.printing import emit, number, plural, printable, say_all
from gapless_pipelines.cli.sparkline import can_draw, sparkline
from gapless_pipelines.cli.wording import bound_words, state_words

if TYPE_CHECKING:
    from gapless.history import BoundHistory, EpochHistory, History, Point
    from gapless.progress import Domain, Position

PARTITIONS_SHOWN = 10


def history(
    job: JobFile = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Tell of every partition, not only of the lowest.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Tell how frontier, bounds and membership epochs moved, from stored evidence."""
    with opened(job, store, scope) as progress:
        told = progress.history(all_partitions=partitions)
    document = document_of(told)
    if as_json:
        emit(document)
    else:
        say_all(_lines(document, told, all_of_them=partitions))


def document_of(told: "History") -> dict[str, Any]:
    """What `--json` prints, format 1. Of long histories, `points` are some; `moves` and `promotions` count all."""
    from gapless.status_document import FORMAT, instant

    domain = told.domain
    return {
        "format": FORMAT,
        "scope": told.scope,
        "as_of": instant(told.as_of),
        "lineage": told.lineage,
        "membership_epoch": told.epoch,
        "frontiers": [
            {
                "lineage": one.lineage,
                "superseded": one.lineage != told.lineage,
                "moves": one.moves,
                "points": [
                    {**_point(point, domain), "membership_epoch": point.epoch, "basis": point.basis}
                    for point in one.points
                ],
            }
            for one in told.frontiers
        ],
        "epochs": [_epoch_value(epoch, domain) for epoch in told.epochs],
        "partitions": told.live,
        "bounds": [_bound_value(bound, domain) for bound in told.bounds],
        "decisions": [
            {
                "at": instant(one.at),
                "lineage": one.lineage,
                "action": one.action,
                "partition": one.partition,
                "reason": one.reason,
                "operator": one.operator,
            }
            for one in told.decisions
        ],
        "restarts": told.restarts,
    }


def _point(point: "Point", domain: "Domain") -> dict[str, Any]:
    from gapless.status_document import bound_fields, instant

    return {"at": instant(point.at), **bound_fields(point.bound, domain)}


def _epoch_value(epoch: "EpochHistory", domain: "Domain") -> dict[str, Any]:
    from gapless.status_document import bound_value, instant

    return {
        "lineage": epoch.lineage,
        "membership_epoch": epoch.epoch,
        "routing_generation": epoch.generation,
        "opened_at": instant(epoch.opened_at),
        "by": epoch.by,
        "frontier": bound_value(epoch.frontier, domain),
        "basis": epoch.basis,
        "members": epoch.members,
        "entered": [{"partition": name, "bound": bound_value(at, domain)} for name, at in epoch.entered],
        "left": [
            {"partition": name, "seal": bound_value(at, domain), "by": by} for name, at, by in epoch.left
        ],
        "replaced": list(epoch.replaced),
        "dropped": list(epoch.dropped),
        "routing": None if epoch.routing is None else dict(epoch.routing),
    }


def _bound_value(bound: "BoundHistory", domain: "Domain") -> dict[str, Any]:
    from gapless.status_document import bound_value

    return {
        "partition": bound.partition,
        "state": bound.state,
        "bound": bound_value(bound.bound, domain),
        "promotions": bound.promotions,
        "points": [_point(point, domain) for point in bound.points],
    }


def _lines(document: Mapping[str, Any], told: "History", *, all_of_them: bool) -> Iterator[str]:
    yield (
        f"{printable(document['scope'])}: lineage {document['lineage']}, membership epoch"
        f" {document['membership_epoch']}"
    )
    for frontier, drawn in zip(document["frontiers"], told.frontiers, strict=True):
        superseded = " (superseded)" if frontier["superseded"] else ""
        last = frontier["points"][-1]
        yield (
            f"frontier of lineage {frontier['lineage']}{superseded}: {bound_words(last)}, {last['basis']},"
            f" in {plural(frontier['moves'], 'move')}"
        )
        yield from _drawn(drawn.points)
    if not document["frontiers"]:
        yield "frontier: nothing was ever published"
    for epoch in document["epochs"]:
        yield _epoch_line(epoch)
    for decision in document["decisions"]:
        of = "" if decision["partition"] is None else f" of {printable(decision['partition'])}"
        by = "" if decision["operator"] is None else f" by {printable(decision['operator'])}"
        yield f"{decision['at']}: {decision['action']}{of}{by}: {printable(decision['reason'])}"
    if document["restarts"]:
        yield f"{plural(document['restarts'], 'restart')} after a page token had died"
    yield from _bound_lines(document, told, all_of_them=all_of_them)


def _epoch_line(epoch: Mapping[str, Any]) -> str:
    at = epoch["frontier"]
    parts = [] if at is None else [f"at the frontier {bound_words(at)}"]
    if epoch["members"] is not None:
        parts.append(f"{plural(epoch['members'], 'partition')} of the first list")
    for word, key in (("entered", "entered"), ("left", "left")):
        if epoch[key]:
            parts.append(f"{word}: {_names([one['partition'] for one in epoch[key]])}")
    for key in ("replaced", "dropped"):
        if epoch[key]:
            parts.append(f"{key}: {_names(epoch[key])}")
    if epoch["routing"] is not None:
        routing = epoch["routing"]
        parts.append(
            f"routing {printable(str(routing['from']))} to {printable(str(routing['to']))} by {routing['by']}"
        )
    return f"{epoch['opened_at']}: membership epoch {epoch['membership_epoch']}: {'; '.join(parts)}"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(map(printable, names[:PARTITIONS_SHOWN]))
    more = len(names) - PARTITIONS_SHOWN
    return f"{shown} and {number(more)} more" if more > 0 else shown


def _bound_lines(document: Mapping[str, Any], told: "History", *, all_of_them: bool) -> Iterator[str]:
    bounds = document["bounds"] if all_of_them else document["bounds"][:PARTITIONS_SHOWN]
    for bound, drawn in zip(bounds, told.bounds, strict=False):
        yield (
            f"  {printable(bound['partition'])}: {state_words(bound['state'])}, {bound_words(bound['bound'])},"
            f" in {plural(bound['promotions'], 'promotion')}"
        )
        yield from _drawn(drawn.points)
    if len(bounds) < document["partitions"]:
        yield f"  the lowest {len(bounds)} of {number(document['partitions'])}; --partitions tells of all"


def _drawn(points: "Sequence[Point]") -> Iterator[str]:
    from gapless.status_document import instant

    if len(points) > 1:
        heights = _heights([point.bound.position for point in points])
        line = sparkline([(p.at, h) for p, h in zip(points, heights, strict=True)], plain=not can_draw())
        yield f"    {line}  {instant(points[0].at)} to {instant(points[-1].at)}"


def _heights(positions: "Sequence[Position]") -> list[int]:
    """Integers and times as they are, of lists the first item where it is one; text counts one after the other."""
    firsts = [position[0] if isinstance(position, tuple) else position for position in positions]
    whole = [first for first in firsts if isinstance(first, int)]
    return whole if len(whole) == len(firsts) else list(range(len(firsts)))
