"""The end of a process in which an engine's client was at work: told to whoever waits for it, with its status and its words."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys
from gapless_pipelines.cli import app
from gapless_pipelines.cli.leaving import leave

class Trap:
    def __del__(self):
        print("taken apart", file=sys.stderr)

trap = Trap()
atexit.register(print, "told", file=sys.stderr)
if {client}:
    sys.modules["apache_beam.runners.portability.portable_runner"] = sys
print("the last words", end="")
def command():
    raise SystemExit({status!r})
app.app = command
app.main()
"""


def ended(*, client: bool, status: object) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(client=client, status=status)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("status", [None, 0, 3])
def test_after_an_engine_nothing_is_taken_apart_under_its_threads(status):
    done = ended(client=True, status=status)
    assert (done.returncode, done.stdout, done.stderr) == (status or 0, "the last words", "told\n")


@pytest.mark.parametrize("status", [None, 4])
def test_without_one_the_process_ends_as_every_other(status):
    done = ended(client=False, status=status)
    assert (done.returncode, done.stdout) == (status or 0, "the last words")
    assert sorted(done.stderr.split("\n")) == ["", "taken apart", "told"]


def test_a_status_in_words_is_told_as_python_does():
    done = ended(client=True, status="what went wrong")
    assert done.returncode == 1
    assert "what went wrong" in done.stderr
