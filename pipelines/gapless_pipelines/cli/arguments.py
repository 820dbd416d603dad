"""What commands take alike. Each name is a type for a command's parameter."""

from pathlib import Path
from typing import Annotated

import typer

from gapless_pipelines.cli.logs import begin_debugging


def _debug(value: bool) -> None:
    if value:
        begin_debugging()


JobFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="JOB", help="Job file. Left out: the one job file of this folder.", show_default=False
    ),
]
JobOption = Annotated[
    Path | None,
    typer.Option(
        "--job",
        metavar="JOB",
        help="Job file. Left out: the one job file of this folder.",
        show_default=False,
    ),
]
StoreUrl = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="The store, in place of a job file.", show_default=False),
]
ScopeName = Annotated[
    str | None,
    typer.Option(
        "--scope", metavar="NAME", help="The scope. Left out: the only one of the store.", show_default=False
    ),
]
Operator = Annotated[
    str | None,
    typer.Option(
        "--operator", metavar="NAME", help="Who says so. Left out: the user's name.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on standard output.")]
ExitCode = Annotated[
    bool,
    typer.Option("--exit-code", help="Exit with 3 where something is withheld or held, 5 after a violation."),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show tracebacks, and keep a log of libraries in ./gapless.log.",
        callback=_debug,
        is_eager=True,
        expose_value=True,
    ),
]
