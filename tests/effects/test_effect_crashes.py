"""A process that dies at any step of making a file: either the whole file is there, or nothing a reader would take for one."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gapless.effects import sweep
from gapless.paging.page import Page

MakePage = Callable[..., Page]

DYING = """
import os, sys
import gapless.effects.run_writer as run_writer
from gapless.effects import ParquetEffect, RunStart
from gapless.paging.page import Page
from gapless.progress import IntegerDomain
from gapless.testing.memory_schema_store import MemorySchemaStore

folder, dying_step = sys.argv[1:]
run_writer.ROW_GROUP_ROWS = 2

def step(name):
    if name == dying_step:
        os._exit(9)

session = ParquetEffect(folder, on_step=step).open("orders", IntegerDomain(), MemorySchemaStore())
writer = session.begin(RunStart(1, "p0", 0, 1))
for sequence in range(3):
    writer.add(Page(None, "t", False, ["a", "b"], [1, 2], [{"k": sequence}, {"k": sequence}]), sequence)
print(writer.finish().path, flush=True)
session.close()
"""


def run_dying_at(step: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", DYING, str(folder), step],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("step", "published"),
    [
        ("file_opened", False),
        ("row_group_written", False),
        ("file_written", False),
        ("before_rename", False),
        ("after_rename", True),
        ("file_durable", True),
    ],
)
def test_a_kill_leaves_a_whole_file_or_only_a_hidden_leftover(
    bench: Any, make_page: MakePage, step: str, published: bool
) -> None:
    dead = run_dying_at(step, bench.folder)
    assert (dead.returncode, dead.stdout, dead.stderr) == (9, "", "")
    (left,) = bench.files()
    path = bench.folder / left
    assert path.name.startswith(".") is not published
    if published:
        assert pq.read_table(path).column("k").to_pylist() == [0, 0, 1, 1, 2, 2]

    # The next run is not hindered, and once it has its number what the dead one left is swept.
    bench.write(make_page([{"k": 5}]))
    kept = bench.outputs[0].path
    assert sweep(bench.folder, "orders", listed=[kept], fencing_tokens={"p0": 1}) == []
    assert sweep(bench.folder, "orders", listed=[kept], fencing_tokens={"p0": 2}) == [str(path)]
    assert bench.files() == [str(Path(kept).relative_to(bench.folder))]


def test_a_run_that_nothing_kills_leaves_the_file_that_it_names(bench: Any) -> None:
    done = run_dying_at("never", bench.folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert [str(bench.folder / name) for name in bench.files()] == [done.stdout.strip()]
