"""The document on outcomes of one's own transforms runs as it is written."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from shown import ROOT, blocks
from template_process import STRICT

from gapless.progress import Bound
from gapless.store import open_store


def test_its_examples_run_as_they_are_written(tmp_path: Path) -> None:
    document = ROOT / "docs" / "outcomes.md"
    examples = 0
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.kind != "python":
            continue
        examples += 1
        done = subprocess.run(
            [sys.executable, *STRICT, "-c", block.text],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"line {block.line}:\n{done.stderr}"
    assert examples == 2
    with closing(open_store(f"sqlite:///{tmp_path}/progress.db")) as store:
        assert store.scope("orders").frontier == Bound.through(9)
        (letter,) = store.dead_letters("orders")
        assert (letter.event_id, letter.reason, letter.payload) == ("b", "a negative amount", '{"amount":-7}')
