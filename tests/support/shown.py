"""Documents whose blocks are run or compared: their fenced blocks, and what output has to match."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
_FENCE = re.compile(r"^```(?P<kind>\w+)?(?: (?P<name>\S+))?$")
_RUN = {"yaml", "python", "console"}
_SHOWN = {"sh", "text", "json"}


@dataclass(frozen=True)
class Block:
    """A fenced block: `kind` and `name` after the fence, `line` of its first line in the file, and its `lines`."""

    kind: str
    name: str | None
    line: int
    lines: Sequence[str]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text. Raises AssertionError for one of a kind that nobody looks after."""
    opened: tuple[str, str | None, int] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif opened is None:
            assert fence["kind"] in _RUN | _SHOWN, f"line {number}: a block of kind {fence['kind']}"
            opened, lines = (fence["kind"], fence["name"], number + 1), []
        else:
            yield Block(*opened, lines)
            opened = None
    assert opened is None, f"the block from line {opened} on has no end"


def commands(block: Block) -> Iterator[tuple[int, str, list[str]]]:
    """(line, command, lines it should print) of a console block."""
    starts = [index for index, line in enumerate(block.lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"line {block.line}: a console block begins with a command"
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        yield block.line + start, block.lines[start][2:], list(block.lines[start + 1 : end])


def pattern_of(expected: Sequence[str]) -> re.Pattern[str]:
    """What output has to match: as it is written, but for `…`.

    >>> bool(pattern_of(["a … c", "…", "d"]).fullmatch("a b c\\nx\\ny\\nd\\n"))
    True
    >>> bool(pattern_of(["a … c"]).fullmatch("a\\nc\\n"))
    False
    """
    parts = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", ".*") + r"[ ]*\n"
        for line in expected
    ]
    return re.compile("".join(parts))
