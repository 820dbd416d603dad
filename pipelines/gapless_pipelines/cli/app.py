"""The commands, assembled. Here they only get their names: each imports what it needs when it runs."""

import gc
import os
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from gapless._version import __version__
from gapless_pipelines.cli import (
    audit_command,
    backfill_command,
    check_command,
    dataset_command,
    dead_letters_command,
    delivery_command,
    demo_command,
    epoch_command,
    explain_command,
    history_command,
    schema_command,
    skip_command,
    status_command,
    stream_command,
    violations_command,
    wait_command,
)
from gapless_pipelines.cli.failures import exit_status_of
from gapless_pipelines.cli.leaving import leave
from gapless_pipelines.cli.logs import keep_quiet


class _Gapless(TyperGroup):
    """Ends with the command's exit status and tells errors in three lines, whoever invokes it."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        run = super().main
        extra |= {"prog_name": "gapless", "standalone_mode": False}
        raise SystemExit(exit_status_of(lambda: run(*args, **extra)))


app = typer.Typer(
    cls=_Gapless,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Read independently paginated partitions, and know what is provably complete.",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"gapless {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Global options; the commands are listed below."""


app.command(short_help="Show it on a year of flights, killed half-way.")(demo_command.demo)
app.command(short_help="Print JSON Schemas, or a job file to start from.")(schema_command.schema)
app.command(short_help="Say what a job file means; write nothing.")(check_command.check)
app.command(cls=backfill_command.BackfillCommand, short_help="Read everything, and publish the frontier.")(
    backfill_command.backfill
)
app.command(cls=backfill_command.BackfillCommand, short_help="Read on for ever, and publish as it comes.")(
    stream_command.stream
)
app.command(short_help="Where the frontier is, and who holds it.")(status_command.status)
app.command(short_help="Who holds the frontier, and what releases it.")(explain_command.explain)
app.command(short_help="How frontier, bounds and membership moved.")(history_command.history)
app.command(short_help="Derive every claim from its evidence, and read every file.")(audit_command.audit)
app.command(short_help="Wait until a position is complete.")(wait_command.wait)
app.command(short_help="The promoted files and their rows.")(dataset_command.dataset)
app.command(short_help="Turn a held event into a dead letter, audited.")(skip_command.skip)
app.command(short_help="What the source broke of its promises.")(violations_command.violations)
app.add_typer(epoch_command.app, name="epoch", short_help="Members, and changes of the list by proof.")
app.add_typer(dead_letters_command.app, name="dead-letters", short_help="Events that were given up.")
app.add_typer(
    delivery_command.app, name="delivery", short_help="Message logs: a delivery frontier without gaps."
)


def main() -> NoReturn:
    """The program `gapless`."""
    # Imports make much that stays and no garbage. A backfill switches the collector on again when it has loaded Beam.
    gc.disable()
    # The system's allocator gives memory back; Arrow's own keeps what its largest page ever took.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    keep_quiet()
    try:
        app()
    except SystemExit as end:
        leave(end)
        raise
    raise AssertionError("the command line ends the process by itself")
