"""A finding: one problem of a job file, at its line and key, with what would be right. All are told at once."""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gapless.errors import ConfigurationError

KeyPath = tuple[str | int, ...]
"""Where in the file: keys of mappings and indexes of lists, from the top."""

_PLAIN_KEY = re.compile(r"[\w-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is wrong and what is `allowed` ("": goes without saying), at `keys` on `line` (from 1; 0: no line)."""

    file: str
    line: int
    keys: KeyPath
    what: str
    allowed: str

    @property
    def path(self) -> str:
        return path_text(self.keys)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{place}: {self.path}: {self.what}" + (f"; {self.allowed}" if self.allowed else "")
        # One line each, whatever the user's own words hold.
        return _CONTROL.sub(lambda control: repr(control[0])[1:-1], text)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with something named, and what is allowed; where in a file it stands is for others to say."""

    name: str
    what: str
    allowed: str


class InvalidConfiguration(ConfigurationError):
    """Words of the user that cannot be meant so. `findings` holds every problem, by line; the text is a line each."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        ordered = sorted(dict.fromkeys(findings), key=lambda finding: finding.line)
        super().__init__(f"{len(ordered)} problem{'s' * (len(ordered) != 1)}")
        self.findings = ordered

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


def path_text(path: KeyPath) -> str:
    """`source.partitions.list[2].id`; keys of other characters stand in quotes.

    >>> path_text(("source", "partitions", "list", 2, "id"))
    'source.partitions.list[2].id'
    >>> path_text(("source", "headers", "X.Y"))
    'source.headers."X.Y"'
    >>> path_text(())
    '(top level)'
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _PLAIN_KEY.fullmatch(part) else json.dumps(part)
            text += f".{key}" if text else key
    return text or "(top level)"


def closest(given: str, names: Sequence[str]) -> str | None:
    """The name most like the given one, None where none is near. Case is no difference."""
    by_folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(given.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[near[0]] if near else None
