"""The scripts find a Python that fits, and say what is missing where there is none."""

import subprocess
import sys
from pathlib import Path

import pytest
from shown import ROOT


def _find_python(programs: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", "-c", ". scripts/environment.sh; find_python"],
        cwd=ROOT,
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )


def _program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_the_first_python_that_fits_is_taken(tmp_path: Path) -> None:
    _program(tmp_path, "python3", "exit 1")
    _program(tmp_path, "python3.12", f'exec "{sys.executable}" "$@"')
    found = _find_python(tmp_path)
    assert (found.returncode, found.stdout) == (0, "python3.12\n")


@pytest.mark.parametrize("version", ["(3, 9)", "(3, 14)"])
def test_a_python_of_another_version_does_not_fit(tmp_path: Path, version: str) -> None:
    pretend = f"import sys; sys.version_info = {version} + (0,); exec(sys.argv[1])"
    _program(tmp_path, "python3", f'exec "{sys.executable}" -c "{pretend}" "$2"')
    found = _find_python(tmp_path)
    assert found.returncode == 1
    assert "needed: 3.10 to 3.13" in found.stderr


def test_the_pretended_python_fits_where_its_version_does(tmp_path: Path) -> None:
    pretend = "import sys; sys.version_info = (3, 13, 0); exec(sys.argv[1])"
    _program(tmp_path, "python3", f'exec "{sys.executable}" -c "{pretend}" "$2"')
    assert _find_python(tmp_path).stdout == "python3\n"


def test_the_scripts_are_valid_shell() -> None:
    for shell, script in (
        ("sh", "scripts/demo"),
        ("sh", "scripts/test"),
        ("sh", "scripts/environment.sh"),
        ("bash", ".ci/run"),
    ):
        done = subprocess.run([shell, "-n", script], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
