import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gapless.errors import (
    ConfigurationError,
    EffectError,
    Fenced,
    GaplessError,
    NotReached,
    PositionError,
    SourceUnavailable,
    StoreBusy,
    StoreUnwritable,
    UnknownScope,
)
from gapless_pipelines.cli import logs
from gapless_pipelines.cli.failures import exit_status_of

Gapless = Callable[..., Any]


def failing(error: BaseException) -> Callable[[], object]:
    def run() -> object:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigurationError("no"), 2),
        (PositionError("no"), 2),
        (UnknownScope("no"), 2),
        (StoreBusy("no"), 2),
        (SourceUnavailable("no"), 3),
        (EffectError("no"), 3),
        (NotReached("no"), 3),
        (Fenced("no"), 4),
        (GaplessError("no"), 1),
        (ValueError("no"), 1),
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_error_has_its_exit_status(
    error: BaseException, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status_of(failing(error)) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("what", where="where", remedy="remedy"),
        StoreUnwritable("what"),
        SourceUnavailable("two\nlines", where="also\ntwo"),
        GaplessError("what"),
        ZeroDivisionError("division by zero"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        RuntimeError(""),
        RuntimeError("a\x1b[2Jb\nc"),
    ],
    ids=repr,
)
def test_an_error_is_exactly_three_lines(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    exit_status_of(failing(error), "gapless status")
    what, where, remedy = capsys.readouterr().err.splitlines()
    assert what.startswith("gapless: ")
    assert where.startswith("  where: ")
    assert remedy.startswith("  to do: ")
    for line in (what, where, remedy):
        assert line.isprintable()
        assert line.split(": ", 1)[1]


def test_an_unexpected_error_says_where_it_was_raised(capsys: pytest.CaptureFixture[str]) -> None:
    exit_status_of(failing(KeyError("x")), "gapless status")
    what, where, remedy = capsys.readouterr().err.splitlines()
    assert what == "gapless: unexpected KeyError: 'x'"
    assert __file__ in where
    assert "--debug" in remedy


def test_what_an_engine_has_packed_is_told_as_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> None:
        try:
            failing(StoreUnwritable("the disk is full", where="sqlite:///x", remedy="make room"))()
        except StoreUnwritable as error:
            # As Beam does it: one error, in whose message stands another.
            raise RuntimeError(f"{error} [while running 'Settle']")  # noqa: B904

    assert exit_status_of(run) == 2
    assert capsys.readouterr().err.splitlines() == [
        "gapless: the disk is full",
        "  where: sqlite:///x",
        "  to do: make room",
    ]


def test_a_bug_that_is_met_while_handling_an_error_is_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> None:
        try:
            failing(UnknownScope("no such scope"))()
        except UnknownScope:
            raise KeyError("bug")  # noqa: B904

    assert exit_status_of(run) == 1
    assert "unexpected KeyError" in capsys.readouterr().err


@pytest.fixture
def debugging(folder: Path) -> Iterator[Path]:
    """With --debug, for one test: what it leaves in this process is taken back."""
    root = logging.getLogger()
    handlers = list(root.handlers)
    yield folder / logs.LOG_FILE
    for handler in set(root.handlers) - set(handlers):
        handler.close()
        root.removeHandler(handler)
    logging.captureWarnings(False)
    logs._debug_log.clear()


def test_debug_shows_the_traceback_and_keeps_it_in_the_log(gapless: Gapless, debugging: Path) -> None:
    ran = gapless("status", "--store", "sqlite:///nowhere/progress.db", "--debug")
    assert ran.exit_status == 2
    assert ran.lines[0].startswith("gapless: the folder ")
    assert "Traceback (most recent call last)" in ran.err
    assert "StoreUnreadable" in debugging.read_text(encoding="utf-8")


def test_without_debug_no_log_is_written(gapless: Gapless, folder: Path) -> None:
    assert gapless("status", "--store", "sqlite:///nowhere/progress.db").exit_status == 2
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["nope"], "No such command 'nope'"),
        (["status", "--nope"], "No such option: --nope"),
        (["status", "a.yaml", "b.yaml"], "unexpected extra argument"),
        (["dead-letters", "nope"], "No such command 'nope'"),
    ],
)
def test_usage_errors_are_three_lines_too(arguments: list[str], what: str, gapless: Gapless) -> None:
    ran = gapless(*arguments)
    assert ran.exit_status == 2
    assert len(ran.lines) == 3
    assert what in ran.lines[0]
    assert "--help" in ran.lines[2]


@pytest.mark.parametrize("arguments", [[], ["dead-letters"]])
def test_a_command_without_a_word_shows_its_help(arguments: list[str], gapless: Gapless) -> None:
    ran = gapless(*arguments)
    assert (ran.exit_status, ran.out) == (2, "")
    assert ran.err.startswith("Usage: gapless")


def test_help_and_version_are_what_was_asked_for(gapless: Gapless) -> None:
    from gapless import __version__

    assert gapless("--version").out == f"gapless {__version__}\n"
    ran = gapless("--help")
    assert (ran.exit_status, ran.err) == (0, "")
    for command in (
        "demo",
        "schema",
        "check",
        "backfill",
        "status",
        "explain",
        "skip",
        "violations",
        "wait",
        "dataset",
    ):
        assert f"\n  {command} " in ran.out
