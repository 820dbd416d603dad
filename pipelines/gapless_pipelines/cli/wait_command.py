"""`gapless wait`: until the frontier covers a position; for schedulers."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gapless.clock import Clock, SystemClock
from gapless.errors import ConfigurationError
from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile, ScopeName, StoreUrl
from gapless_pipelines.cli.explain_command import blocker_lines
from gapless_pipelines.cli.failures import INCOMPLETE, NOT_YET
from gapless_pipelines.cli.meaning import opened
from gapless_pipelines.cli.printing import emit, printable, say, say_all
from gapless_pipelines.cli.status_command import blocker_text, frontier_line

if TYPE_CHECKING:
    from gapless.reading import Waited

_EXIT_STATUS = {"reached": 0, "blocked": INCOMPLETE, "not_yet": NOT_YET}


def wait(
    context: typer.Context,
    through: Annotated[
        str, typer.Option("--through", metavar="POSITION", help="A position, as `gapless status` prints it.")
    ],
    job: JobFile = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout", metavar="10m", help="How long at most. Left out: no limit.", show_default=False
        ),
    ] = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Wait until everything through POSITION is complete.

    Exits with 0 once it is, 3 where it is blocked (and says by whom), 6 where the time is up.
    """
    seconds = None if timeout is None else _seconds(timeout)
    with opened(job, store, scope, _clock(context)) as progress:
        waited = progress.wait_through(through, seconds)
    document = _document(waited, through)
    if as_json:
        emit(document)
    else:
        _tell(document)
    return _EXIT_STATUS[waited.reached.value]


def _clock(context: typer.Context) -> Clock:
    """The machine's, unless whoever invokes the command brings one."""
    clock: Clock | None = context.obj
    return clock or SystemClock()


def _seconds(text: str) -> float:
    from pydantic import TypeAdapter, ValidationError

    from gapless.paging.config_model import Duration

    if text in ("0", "0s"):
        return 0.0
    try:
        return TypeAdapter[float](Duration).validate_python(text)
    except ValidationError as error:
        raise ConfigurationError(
            f"--timeout {text!r} is no duration",
            where="in `gapless wait`",
            remedy="such as 0s, 30s, 10m or 2h",
        ) from error


def _document(waited: "Waited", through: str) -> dict[str, Any]:
    from gapless.status_document import FORMAT, blocker_value, frontier_value, instant, list_blocker_value

    scope, as_of = waited.snapshot.scope, waited.snapshot.as_of
    blocker = None
    if waited.holding is not None:
        blocker = blocker_value(waited.holding, scope.domain)
    elif waited.withheld is not None:
        blocker = list_blocker_value(waited.withheld, scope)
    return {
        "format": FORMAT,
        "as_of": instant(as_of),
        "scope": scope.scope,
        "through": through,
        "state": waited.reached.value,
        "frontier": frontier_value(waited.snapshot),
        "blocker": blocker,
    }


def _tell(document: dict[str, Any]) -> None:
    through = printable(document["through"])
    if document["state"] == "reached":
        say(frontier_line(document))
    elif document["state"] == "not_yet":
        say(f"not yet through {through}", frontier_line(document))
        if document["blocker"] is not None:
            say(f"waiting for {blocker_text(document['blocker'])}")
    else:
        say(f"blocked: time alone does not bring it through {through}", frontier_line(document))
        say_all(blocker_lines(document["blocker"], document["as_of"]))
