"""Errors as a user sees them: what, where, what to do, a line each; and the exit status they end a command with.

0 done    1 unexpected    2 usage or configuration    3 finished, but withheld, held or short of `stop`
4 fenced by a newer run    5 a violation was recorded    6 not yet (`wait`)    130 interrupted
"""

import logging
import traceback
from collections.abc import Callable, Iterator

import typer

from gapless.errors import (
    ConfigurationError,
    EffectError,
    Fenced,
    GaplessError,
    PositionError,
    SourceError,
    StoreError,
    UnknownScope,
)
from gapless_pipelines.cli.logs import debug_log
from gapless_pipelines.cli.printing import printable, say

UNEXPECTED = 1
USAGE = 2
INCOMPLETE = 3
VIOLATED = 5
NOT_YET = 6
INTERRUPTED = 130

_UsageError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
"""Typer brings the parser's exceptions under changing names; this is what all of them are."""

_REMEDIES: tuple[tuple[type[GaplessError], str], ...] = (
    (UnknownScope, "`gapless status --store URL --scope NAME`, with the name of a scope that is there"),
    (Fenced, "leave it to the newer run; `gapless status` shows it"),
    (StoreError, "see that the store can be reached and written, then run the command again"),
    (SourceError, "`gapless check JOB` asks the source and says what it understands"),
    (EffectError, "see what is said above; the run goes on from the last promoted page"),
    (PositionError, "write positions as `gapless status` prints them"),
    (ConfigurationError, "`gapless COMMAND --help`, or `gapless schema --example http` for a job file"),
)


def exit_status_of(run: Callable[[], object], name: str = "gapless") -> int:
    """Run a command; its exit status, after its error was told on standard error. `name` is how the command is called."""
    try:
        result = run()
    except GaplessError as error:
        return _tell(error, name)
    except _UsageError as error:
        return _tell_usage(error, name)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - told in three lines, with its traceback where that is asked for
        known = _carried(error)
        return _tell_unexpected(error, name) if known is None else _tell(known, name)
    return result if isinstance(result, int) else 0


def three_lines(what: str, where: str, remedy: str) -> list[str]:
    """An error, a line each, whatever stands in it."""
    return [f"gapless: {_line(what)}", f"  where: {_line(where)}", f"  to do: {_line(remedy)}"]


def _tell(error: GaplessError, name: str) -> int:
    # The findings of a job file are not imported for this: commands that read none get by without YAML.
    findings = getattr(error, "findings", None)
    if findings:
        say(*(_line(str(finding)) for finding in findings))
    else:
        say(*three_lines(error.what, error.where or f"in `{name}`", error.remedy or _remedy(error)))
    _trace(error)
    return error.exit_status


def _tell_usage(error: Exception, name: str) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else name
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        # A command without a word after it: the message is its help.
        say(message)
        return USAGE
    remedy = f"`{command} --help` says what is allowed"
    if command.endswith(" backfill"):
        remedy = f"options of Beam stand after `--`; {remedy}"
    say(*three_lines(message, f"in `{command}`", remedy))
    return USAGE


def _tell_unexpected(error: Exception, name: str) -> int:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    log = debug_log()
    remedy = (
        f"the traceback is in {log}"
        if log
        else "run it again with --debug for the traceback, and report that"
    )
    say(
        *three_lines(
            f"unexpected {type(error).__name__}: {error}",
            f"in `{name}`, {frame.filename}:{frame.lineno}",
            remedy,
        )
    )
    _trace(error)
    return UNEXPECTED


def _trace(error: Exception) -> None:
    """With `--debug`: the traceback, on the terminal and in the log file."""
    if debug_log() is None:
        return
    logging.getLogger(__name__).error("the command failed", exc_info=error)
    say("".join(traceback.format_exception(error)).rstrip())


def _remedy(error: GaplessError) -> str:
    return next(
        (remedy for kind, remedy in _REMEDIES if isinstance(error, kind)),
        "run it again with --debug for more",
    )


def _carried(error: BaseException) -> GaplessError | None:
    """The error of ours that an engine has packed into one of its own, as Beam does with what a DoFn raises."""
    if "[while running" not in str(error):
        return None
    return next((link for link in _chain_of(error) if isinstance(link, GaplessError)), None)


def _chain_of(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _line(text: str) -> str:
    return printable("; ".join(part.strip() for part in text.splitlines() if part.strip()))
