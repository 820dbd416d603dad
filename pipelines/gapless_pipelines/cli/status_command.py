"""`gapless status`: where the frontier is, who is read, who holds."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from gapless_pipelines.cli.arguments import AsJson, Debug, ExitCode, JobFile, ScopeName, StoreUrl
from gapless_pipelines.cli.failures import INCOMPLETE, VIOLATED
from gapless_pipelines.cli.meaning import opened
from gapless_pipelines.cli.printing import (
    duration,
    emit,
    number,
    on_terminal,
    plural,
    printable,
    say_all,
    since,
)
from gapless_pipelines.cli.wording import bound_words, state_words

BLOCKERS_SHOWN = 10
PARTITIONS_SHOWN = 10
_STILL_TO_BE_READ = frozenset({"not_started", "no_bound", "not_joined"})


def status(
    job: JobFile = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Show every partition, not only the worst.")
    ] = False,
    as_json: AsJson = False,
    exit_code: ExitCode = False,
    debug: Debug = False,
) -> int:
    """Show where the frontier is, how the partitions stand, and who holds it."""
    with opened(job, store, scope) as progress:
        document = progress.status(all_partitions=partitions)
    if as_json:
        emit(document)
    else:
        say_all(status_lines(document))
        _show_partitions(document, all_of_them=partitions)
    return exit_status(document) if exit_code else 0


def exit_status(document: Mapping[str, Any]) -> int:
    """What `--exit-code` makes of a status: 5 after a violation in its lineage, 3 where something is withheld or held."""
    if document["counts"]["violations"]:
        return VIOLATED
    withheld = document["frontier"] is None or document["withheld"] is not None
    return INCOMPLETE if withheld or document["blockers"] else 0


def status_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """A status as lines for a reader, without the partitions."""
    yield frontier_line(document)
    counts = document["counts"]
    states = ((counts[name], name.replace("_", " ")) for name in ("active", "ended", "held", "not_started"))
    yield (
        f"  {plural(counts['members'], 'partition')}: "
        + (", ".join(f"{number(count)} {name}" for count, name in states if count) or "none is known yet")
        + f"; epoch {document['membership_epoch']}, list {document['list']}"
    )
    yield (
        f"  {plural(counts['pages'], 'page')}, {plural(counts['events'], 'event')},"
        f" {plural(counts['dead_letters'], 'dead letter')}, {plural(counts['violations'], 'violation')}"
        + (f", schema drift in {plural(counts['schema_drift'], 'event')}" if counts["schema_drift"] else "")
    )
    if document["run"] is not None:
        yield f"  {_run_text(document['run'], document['as_of'])}"
    for superseded in document["superseded"]:
        yield f"  {superseded_text(superseded)}"
    if document["withheld"] is not None:
        yield f"withheld: {withheld_text(document['withheld'])}"
    for blocker in document["blockers"][:BLOCKERS_SHOWN]:
        yield f"{'waiting' if blocker['code'] in _STILL_TO_BE_READ else 'held'}: {blocker_text(blocker)}"
    more = len(document["blockers"]) - BLOCKERS_SHOWN
    if more > 0:
        yield f"  and {number(more)} more: `gapless explain`"


def frontier_line(document: Mapping[str, Any]) -> str:
    """The claim in one sentence."""
    scope, frontier = printable(document["scope"]), document["frontier"]
    if frontier is None:
        return f"{scope}: nothing is claimed yet"
    line = f"{scope}: complete {bound_words(frontier)}, {frontier['basis']}"
    if frontier["violated"]:
        line += ", violated by the source"
    if frontier["after"] is not None:
        side = "after" if frontier["after_inclusive"] else "from"
        line += f", {side} {printable(frontier['after'])}"
    if frontier["age_s"] is not None:
        line += f" (published {duration(frontier['age_s'])} ago)"
    return line


def superseded_text(superseded: Mapping[str, Any]) -> str:
    """What was claimed of a lineage until a rebuild ended it."""
    frontier = superseded["frontier"]
    claim = (
        "nothing was claimed"
        if frontier is None
        else f"complete {bound_words(frontier)}, {frontier['basis']}"
    )
    return f"superseded: lineage {superseded['lineage']}, {claim}; rebuilt: {printable(superseded['reason'])}"


def withheld_text(withheld: Mapping[str, Any]) -> str:
    return f"{withheld['code']}: {printable(withheld['detail'])}"


def blocker_text(blocker: Mapping[str, Any]) -> str:
    """Who, where, what, in one line."""
    event = "" if blocker["event_id"] is None else f", event {printable(blocker['event_id'])}"
    if blocker["position"] is not None:
        event += f" at {printable(blocker['position'])}"
    stands = bound_words(blocker["bound"])
    return f"{holder_text(blocker)} ({stands}): {blocker['code']}{event}: {printable(blocker['hint'])}"


def holder_text(blocker: Mapping[str, Any]) -> str:
    """Whose blocker it is: a partition's, or the member list's as a whole."""
    return "the list of partitions" if blocker["partition"] is None else printable(blocker["partition"])


def _run_text(run: Mapping[str, Any], as_of: str) -> str:
    text = f"run {run['number']} on {run['engine']}: {run['state']}, started {since(run['started_at'], as_of)} ago"
    if run["state"] in ("running", "lost"):
        text += f", last sign of life {since(run['heartbeat_at'], as_of)} ago"
    return text


def _show_partitions(document: Mapping[str, Any], *, all_of_them: bool) -> None:
    shown = document["partitions"] if all_of_them else document["partitions"][:PARTITIONS_SHOWN]
    if not shown:
        return
    rest = document["counts"]["members"] - len(shown)
    note = (
        f"  the lowest {len(shown)} of {document['counts']['members']}; --partitions shows all"
        if rest
        else ""
    )
    if on_terminal():
        from gapless_pipelines.cli.tables import print_partitions

        print_partitions(shown)
    else:
        say_all(partition_lines(shown))
    if note:
        say_all([note])


def partition_lines(partitions: list[Mapping[str, Any]]) -> Iterator[str]:
    """One line a partition."""
    for row in partitions:
        yield (
            f"  {printable(row['partition'])}: {state_words(row['state'])}, {bound_words(row['bound'])},"
            f" {plural(row['sequence'], 'page')}, {plural(row['events'], 'event')}"
        )
