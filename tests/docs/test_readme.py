"""What the README shows is what happens: its blocks are run in their order, and the output it shows is compared.

`yaml NAME` is written to that file; `python` is run; `console` is typed into a shell, and what follows each `$` line has to be
what comes out, where `…` stands for anything within the line, and a line of it alone for any lines. `sh` and `text` are shown only.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orders_api import TOKEN, orders_api

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


def test_the_readme_runs_as_it_is_written(tmp_path: Path) -> None:
    ran = []
    with orders_api() as url:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "ORDERS_URL": url,
            "ORDERS_TOKEN": TOKEN,
        }
        for block in blocks(README.read_text(encoding="utf-8")):
            if block.kind == "yaml":
                assert block.name, f"line {block.line}: which file is this?"
                (tmp_path / block.name).write_text(block.text, encoding="utf-8")
            elif block.kind == "python":
                done = _run([sys.executable, "-W", "error", "-c", block.text], tmp_path, environment)
                assert done.returncode == 0, f"README.md, the block from line {block.line} on:\n{done.stdout}"
            elif block.kind == "console":
                for line, command, expected in commands(block):
                    done = _run(["bash", "-c", command], tmp_path, environment)
                    assert done.returncode == 0, (
                        f"README.md:{line}: exit status {done.returncode}:\n{done.stdout}"
                    )
                    shown = "\n".join(expected)
                    assert pattern_of(expected).fullmatch(done.stdout), (
                        f"README.md:{line}: `{command}` printed\n{done.stdout}\nand not\n{shown}"
                    )
            ran.append(block.kind)
    assert {"yaml", "console", "python"} <= set(ran)


def test_every_command_of_the_readme_exists() -> None:
    shown = "\n".join(
        block.text for block in blocks(README.read_text(encoding="utf-8")) if block.kind == "sh"
    )
    scripts = re.findall(r"scripts/\w+", shown)
    assert scripts
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK), script


def test_links_between_the_documents_lead_somewhere() -> None:
    for document in ROOT.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{document.name}: {target}"


def _run(
    command: Sequence[str], folder: Path, environment: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
