"""`gapless skip`: an operator's word that an event is not to be applied. It becomes a dead letter, with the reason."""

import getpass
import os
from typing import Annotated

import typer

from gapless.errors import ConfigurationError
from gapless_pipelines.cli.arguments import AsJson, Debug, JobOption, ScopeName, StoreUrl
from gapless_pipelines.cli.meaning import meant, only_scope
from gapless_pipelines.cli.printing import emit, printable, say


def skip(
    partition: Annotated[
        str, typer.Argument(metavar="PARTITION", help="The partition that is held.", show_default=False)
    ],
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help="The id of the event it is held on.", show_default=False)
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; kept with the event.", show_default=False)
    ],
    operator: Annotated[
        str | None,
        typer.Option(
            "--operator", metavar="NAME", help="Who says so. Left out: the user's name.", show_default=False
        ),
    ] = None,
    job: JobOption = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Turn a held event into a dead letter, audited; the next run goes on past it."""
    if not any(char.isalnum() for char in reason):
        raise ConfigurationError(
            "skipping an event needs a reason",
            where="in `gapless skip`",
            remedy='--reason "..." in words that will mean something in a year; it is kept with the event',
        )
    what = meant(job, store, scope)
    with what.store.open() as opened:
        name = what.scope or only_scope(opened.scopes(), what.store.url)
        letter = opened.skip(name, partition, event, reason, operator or _user())
        domain = opened.scope(name).domain
    if as_json:
        from gapless.status_document import FORMAT
        from gapless_pipelines.cli.dead_letters_command import letter_value

        emit({"format": FORMAT, "scope": name, "dead_letter": letter_value(letter, domain)})
        return
    say(
        f"{printable(name)}: event {printable(event)} of partition {printable(partition)} is a dead letter now,"
        f" by {printable(letter.operator or '')}: {printable(letter.reason)}",
        "the next run goes on past it: `gapless backfill`",
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # No entry for this user, as in some containers.
        return f"uid {os.getuid()}"
