"""What commands import, in processes of their own: reading ones get by without engine, Arrow and HTTP client."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEAVY = ("apache_beam", "pyarrow", "requests", "alembic", "rich", "grpc", "msgspec")
_SPY = """
import sys
from gapless_pipelines.cli import main
sys.argv[0] = "gapless"
try:
    main()
finally:
    loaded = [name for name in {heavy!r} if name in sys.modules]
    print("LOADED", *loaded, file=sys.stderr)
"""


def loaded_by(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Exit status of a command, and which of HEAVY it has imported."""
    ran = subprocess.run(
        [sys.executable, "-c", _SPY.format(heavy=HEAVY), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("LOADED")]
    return ran.returncode, line.split()[1:]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["status"], 0),
        (["status", "--json", "--partitions"], 0),
        (["explain"], 0),
        (["violations"], 0),
        (["history"], 0),
        (["dataset", "--json"], 0),
        (["dead-letters", "list"], 0),
        (["wait", "--through", "100", "--timeout", "0s"], 3),
        (["skip", "b", "e110", "--reason", "known bad"], 0),
        (["epoch", "show", "--json"], 0),
        (["epoch", "cutover"], 0),
        (["epoch", "seal", "b", "--at", "10", "--reason", "switched off"], 0),
        (["--help"], 0),
        (["backfill", "--help"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_reading_command_imports_nothing_heavy(
    arguments: list[str], status: int, orders: Any, job: Path, folder: Path
) -> None:
    orders.begin("a", "b")
    orders.promote("a", 10)
    orders.hold("b")
    assert loaded_by(folder, *arguments) == (status, [])


def test_importing_the_reader_imports_nothing_heavy() -> None:
    program = f"import gapless.reading, sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
