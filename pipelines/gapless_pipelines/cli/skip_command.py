"""`gapless skip`: an operator's word that an event is not to be applied. It becomes a dead letter, with the reason."""

from typing import Annotated

import typer

from gapless.operator_name import operator_name
from gapless_pipelines.cli.arguments import AsJson, Debug, JobOption, Operator, ScopeName, StoreUrl
from gapless_pipelines.cli.meaning import meant, only_scope, require_reason
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
    operator: Operator = None,
    job: JobOption = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Turn a held event into a dead letter, audited; the next run goes on past it."""
    require_reason(reason, "skipping an event", "gapless skip")
    what = meant(job, store, scope)
    with what.store.open() as opened:
        name = what.scope or only_scope(opened.scopes(), what.store.url)
        letter = opened.skip(name, partition, event, reason, operator or operator_name())
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
