"""Imports point one way, and what should be light to import is."""

import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parent.parent
HEAVY = {
    "alembic",
    "apache_beam",
    "grpc",
    "msgspec",
    "numpy",
    "pyarrow",
    "pydantic",
    "requests",
    "rich",
    "sqlalchemy",
}
BEAM_AND_ARROW = {"apache_beam", "grpc", "numpy", "pyarrow"}


def test_imports_keep_to_the_layers(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=None)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import gapless", HEAVY),
        ("import gapless.progress", HEAVY),
        ("from gapless import Progress", BEAM_AND_ARROW),
        ("from gapless import HttpSource", {"apache_beam", "grpc", "sqlalchemy"}),
        ("import gapless.delivery", HEAVY - {"sqlalchemy"}),
        ("import gapless_pipelines.cli", BEAM_AND_ARROW | {"sqlalchemy", "requests"}),
    ],
)
def test_importing_brings_nothing_heavy(statement: str, heavy: set[str]) -> None:
    assert not _modules_after(statement) & heavy


def test_the_algebra_needs_the_standard_library_alone() -> None:
    ours = {"gapless", "__main__"}
    loaded = _modules_after("import gapless.progress") - _modules_after("pass") - ours
    assert loaded <= sys.stdlib_module_names


def _modules_after(statement: str) -> set[str]:
    """Top-level names of what is loaded, in a fresh interpreter."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
