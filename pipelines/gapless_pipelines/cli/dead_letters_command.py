"""`gapless dead-letters`: events that were given up, each with its reason and its data."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gapless.errors import ConfigurationError
from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile, JobOption, ScopeName, StoreUrl
from gapless_pipelines.cli.meaning import opened
from gapless_pipelines.cli.printing import emit, plural, printable, say, say_all

if TYPE_CHECKING:
    from gapless.progress import Domain
    from gapless.store.records import DeadLetter

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Events that were given up: terminal, and counted."
)


@app.command("list")
def list_letters(
    job: JobFile = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List every dead letter, in the order they were recorded."""
    with opened(job, store, scope) as progress:
        letters = [letter_value(letter, progress.domain) for letter in progress.dead_letters()]
        name = progress.name
    if as_json:
        from gapless.status_document import FORMAT

        emit({"format": FORMAT, "scope": name, "dead_letters": letters})
        return
    say(f"{printable(name)}: {plural(len(letters), 'dead letter')}")
    for letter in letters:
        say(f"  {_place(letter)}: {printable(letter['reason'])}{_operator(letter)}")


@app.command("show")
def show_letters(
    partition: Annotated[str, typer.Argument(metavar="PARTITION", show_default=False)],
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The event's id.", show_default=False)],
    job: JobOption = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show one dead letter with everything the source sent."""
    with opened(job, store, scope) as progress:
        found = [
            letter
            for letter in progress.dead_letters()
            if (letter.partition, letter.event_id) == (partition, event)
        ]
        name, domain = progress.name, progress.domain
    if not found:
        raise ConfigurationError(
            f"event {event!r} of partition {partition!r} is no dead letter",
            where=f"scope {name}",
            remedy="`gapless dead-letters list` shows which there are",
        )
    # An event may be given up again in another lineage: the newest is meant.
    letter = {**letter_value(found[-1], domain), "payload": found[-1].payload}
    if as_json:
        from gapless.status_document import FORMAT

        emit({"format": FORMAT, "scope": name, "dead_letter": letter})
    else:
        say_all(_letter_lines(letter))


def letter_value(letter: "DeadLetter", domain: "Domain") -> dict[str, Any]:
    """A dead letter as JSON values, without its data."""
    from gapless.status_document import instant

    return {
        "partition": letter.partition,
        "event_id": letter.event_id,
        "position": domain.text(letter.position),
        "sequence": letter.sequence,
        "reason": letter.reason,
        "operator": letter.operator,
        "path": letter.path,
        "recorded_at": instant(letter.recorded_at),
    }


def _letter_lines(letter: dict[str, Any]) -> Iterator[str]:
    yield _place(letter)
    yield f"  why: {printable(letter['reason'])}{_operator(letter)}"
    yield f"  recorded at: {letter['recorded_at']}"
    if letter["path"] is not None:
        yield f"  file: {printable(letter['path'])}"
    yield f"  event: {printable(letter['payload']) or 'its data was not read again since it was skipped'}"


def _place(letter: dict[str, Any]) -> str:
    event, position = printable(letter["event_id"]), printable(letter["position"])
    return f"{printable(letter['partition'])}, event {event} at {position}"


def _operator(letter: dict[str, Any]) -> str:
    return "" if letter["operator"] is None else f" (skipped by {printable(letter['operator'])})"
