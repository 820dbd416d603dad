"""`gapless demo`: a backfill of real data that is killed and resumed, or, with `--break`, held by one event and released."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from gapless_pipelines.cli.arguments import Debug
from gapless_pipelines.cli.failures import UNEXPECTED
from gapless_pipelines.cli.printing import say

Break = Annotated[
    bool, typer.Option("--break", help="Let one event fail, and show how its partition is held and released.")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="DIR",
        help="Where everything is written. Left out: a new temporary folder.",
        show_default=False,
    ),
]


def demo(broken: Break = False, folder: Folder = None, debug: Debug = False) -> int:
    """Read a year of flights from a local API; kill the run half-way, resume it, and compare.

    Exits with 0 where everything that it compares is equal.
    """
    from gapless_pipelines.demo.broken import show_broken
    from gapless_pipelines.demo.interrupted import show_interrupted

    where = Path(tempfile.mkdtemp(prefix="gapless-demo-")) if folder is None else folder.absolute()
    show = show_broken if broken else show_interrupted
    if show(where, say):
        say("", f"all of it holds; look around in {where}")
        return 0
    say("", f"not all of it holds; what was written is in {where}")
    return UNEXPECTED
