"""What the README shows is what happens: its blocks are run in their order, and the output it shows is compared.

`yaml NAME` is written to that file; `python` is run; `console` is typed into a shell, and what follows each `$` line has to be
what comes out. `…` there stands for anything within the line, and a line of it alone for any lines. `sh` and `text` are not run.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from orders_api import TOKEN, orders_api
from shown import README, ROOT, blocks, commands, pattern_of
from template_process import STRICT


@pytest.mark.parametrize("document", [README, ROOT / "docs" / "message-logs.md"], ids=lambda path: path.name)
def test_a_document_runs_as_it_is_written(tmp_path: Path, document: Path) -> None:
    ran = []
    with orders_api() as url:
        environment = {
            # Both streams go to one pipe here, in the order in which a terminal shows them.
            "PYTHONUNBUFFERED": "1",
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "ORDERS_URL": url,
            "ORDERS_TOKEN": TOKEN,
        }
        for block in blocks(document.read_text(encoding="utf-8")):
            if block.kind == "yaml":
                assert block.name, f"line {block.line}: which file is this?"
                (tmp_path / block.name).write_text(block.text, encoding="utf-8")
            elif block.kind == "python":
                done = _run([sys.executable, *STRICT, "-c", block.text], tmp_path, environment)
                assert done.returncode == 0, (
                    f"{document.name}, the block from line {block.line} on:\n{done.stdout}"
                )
            elif block.kind == "console":
                for line, command, expected in commands(block):
                    done = _run(["bash", "-c", command], tmp_path, environment)
                    assert done.returncode == 0, (
                        f"{document.name}:{line}: exit status {done.returncode}:\n{done.stdout}"
                    )
                    shown = "\n".join(expected)
                    assert pattern_of(expected).fullmatch(done.stdout), (
                        f"{document.name}:{line}: `{command}` printed\n{done.stdout}\nand not\n{shown}"
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
