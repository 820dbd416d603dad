"""What a command says: JSON on standard output, everything else on standard error."""

import json
import os
import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

import typer


def emit(document: Any) -> None:
    """A JSON document on standard output. ASCII, so that no terminal and no locale changes a character of it."""
    typer.echo(json.dumps(document, indent=2))


def emit_text(text: str) -> None:
    """What the command was asked to produce (a schema, an example, SQL), on standard output."""
    typer.echo(text.rstrip("\n"))


def say(*lines: str) -> None:
    """Lines for a reader, on standard error."""
    for line in lines:
        typer.echo(line, err=True)


def say_all(lines: Iterable[str]) -> None:
    say(*lines)


def on_terminal() -> bool:
    """Whether somebody watches a terminal that can redraw."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def printable(text: str) -> str:
    r"""One line of text that comes from a source: nothing in it moves the cursor or breaks the line.

    >>> printable("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in text
    )


def number(value: int) -> str:
    """With the thousands apart.

    >>> number(400000)
    '400,000'
    """
    return f"{value:,}"


def plural(count: int, word: str) -> str:
    """
    >>> plural(1, "page"), plural(0, "event"), plural(2000, "row")
    ('1 page', '0 events', '2,000 rows')
    """
    return f"{number(count)} {word}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """How long, in at most two units.

    >>> duration(0.25), duration(42), duration(125), duration(7260), duration(200000)
    ('0.2 s', '42 s', '2 min 5 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for size, unit, below, lower in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit}" + (f" {rest} {lower}" if rest else "")
    return f"{whole} s"


def since(instant: str, as_of: str) -> str:
    """How long before `as_of` an instant was; both RFC 3339.

    >>> since("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:05.000Z")
    '1 min 5 s'
    """
    return duration(int(max(0.0, (_parsed(as_of) - _parsed(instant)).total_seconds())))


def _parsed(instant: str) -> datetime:
    return datetime.strptime(instant, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
