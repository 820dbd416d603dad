"""`gapless explain`: who holds the frontier, on what, since when, and what releases it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from gapless_pipelines.cli.arguments import AsJson, Debug, ExitCode, JobFile, ScopeName, StoreUrl
from gapless_pipelines.cli.meaning import opened
from gapless_pipelines.cli.printing import emit, plural, printable, say_all, since
from gapless_pipelines.cli.status_command import (
    exit_status,
    frontier_line,
    holder_text,
    withheld_text,
)
from gapless_pipelines.cli.wording import bound_words

BLOCKERS_SHOWN = 20
_SHOWN_IN_JSON = ("format", "gapless", "as_of", "scope", "frontier", "withheld", "blockers")


def explain(
    job: JobFile = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    all_blockers: Annotated[bool, typer.Option("--all", help="Show every partition that holds.")] = False,
    as_json: AsJson = False,
    exit_code: ExitCode = False,
    debug: Debug = False,
) -> int:
    """Say who holds the frontier, on which event or missing proof, and what releases it."""
    with opened(job, store, scope) as progress:
        document = progress.status()
    if as_json:
        emit({key: document[key] for key in _SHOWN_IN_JSON})
    else:
        say_all(
            explanation_lines(document, shown=len(document["blockers"]) if all_blockers else BLOCKERS_SHOWN)
        )
    return exit_status(document) if exit_code else 0


def explanation_lines(document: Mapping[str, Any], shown: int = BLOCKERS_SHOWN) -> Iterator[str]:
    """The frontier, what withholds it, and each blocker with its meaning and its release."""
    yield frontier_line(document)
    withheld, blockers = document["withheld"], document["blockers"]
    if withheld is not None:
        yield f"withheld: {withheld_text(withheld)}"
    elif not blockers:
        yield f"nothing holds it: {_reading_text(document)}"
    else:
        yield "nothing holds the frontier itself; higher up:"
    if withheld is not None and all(blocker["code"] != withheld["code"] for blocker in blockers):
        yield from _releases(withheld["code"])
    for blocker in blockers[:shown]:
        yield from blocker_lines(blocker, document["as_of"])
    if len(blockers) > shown:
        yield f"and {plural(len(blockers) - shown, 'partition')} more that hold: --all shows them"


def blocker_lines(blocker: Mapping[str, Any], as_of: str) -> Iterator[str]:
    """One blocker: who and where, what it means, what was said, what releases it."""
    yield f"{holder_text(blocker)}, {bound_words(blocker['bound'])}: {blocker['code']}"
    if blocker["event_id"] is not None:
        place = "" if blocker["position"] is None else f" at {printable(blocker['position'])}"
        yield f"  event: {printable(blocker['event_id'])}{place}"
    yield f"  why: {printable(blocker['hint'])}"
    if blocker["since"] is not None:
        yield f"  since: {blocker['since']} ({since(blocker['since'], as_of)})"
    yield from _releases(blocker["code"], blocker["release"])


def _releases(code: str, release: Mapping[str, Any] | None = None) -> Iterator[str]:
    from gapless.progress import BLOCKER_CODES

    release = release or {"retry_at": None, "command": None}
    yield f"  released by: {BLOCKER_CODES[code][1]}"
    if release["retry_at"] is not None:
        yield f"  tried again at: {release['retry_at']}"
    if release["command"] is not None:
        yield f"  command: {printable(release['command'])}"


def _reading_text(document: Mapping[str, Any]) -> str:
    counts, run = document["counts"], document["run"]
    if counts["active"] == 0:
        return "every partition is read to its end"
    if run is not None and run["state"] == "lost":
        silent = since(run["heartbeat_at"], document["as_of"])
        return (
            f"{plural(counts['active'], 'partition')} to be read further by run {run['number']}, "
            f"silent for {silent}: if it is gone, `gapless backfill` goes on"
        )
    if run is not None and run["state"] == "running":
        return f"{plural(counts['active'], 'partition')} being read"
    return f"{plural(counts['active'], 'partition')} can be read further, and no run does: `gapless backfill`"
