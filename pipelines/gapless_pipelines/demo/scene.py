"""What every run of the demo needs: a folder, the API's process, `gapless` as a user runs it, and what it has left behind."""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from gapless.errors import ConfigurationError, GaplessError, StoreError
from gapless.reading import Progress
from gapless_pipelines.demo.job_file import FILE_NAME, SCOPE, STORE, write_job_file

ANSWER_MS = 5
"""How long the API holds back each answer: about what a network would."""
_LOG = "backfill.log"
_LOOK_EVERY_SECONDS = 0.01


class DemoFailed(GaplessError):
    """The demo did not come as far as having something to show."""

    code = "demo"


@dataclass(frozen=True, slots=True)
class Ran:
    """One finished command: its exit status, and what it said on standard output and error."""

    exit_status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Scene:
    """`folder` holds the job file, the store and the files; `url` is the API's."""

    folder: Path
    url: str

    def gapless(self, *arguments: str) -> Ran:
        """Run a command to its end."""
        done = subprocess.run(
            _command(arguments),
            cwd=self.folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def gapless_json(self, *arguments: str) -> Any:
        """What a reading command answers with `--json`. Raises DemoFailed where it does not."""
        ran = self.gapless(*arguments, "--json")
        if ran.exit_status != 0:
            raise DemoFailed(
                f"`gapless {arguments[0]}` ended with exit status {ran.exit_status}", where=ran.err.strip()
            )
        return msgspec.json.decode(ran.out)

    def kill_backfill_at(self, events: int) -> None:
        """Start a backfill and end it by SIGKILL once so many events are durable. Raises DemoFailed where it ends before."""
        with (self.folder / _LOG).open("ab") as log:
            backfill = subprocess.Popen(
                _command(["backfill", FILE_NAME]),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            while self._durable_events() < events:
                if backfill.poll() is not None:
                    raise DemoFailed(
                        f"the backfill ended by itself with exit status {backfill.returncode}",
                        where=str(self.folder / _LOG),
                        remedy="it was to be killed half-way; its log says why it was not running any more",
                    )
                time.sleep(_LOOK_EVERY_SECONDS)
        finally:
            backfill.kill()
            backfill.wait()

    def _durable_events(self) -> int:
        """How many events are promoted so far, by the store's own rows."""
        path = self.folder / STORE
        if not path.exists():
            return 0
        try:
            with Progress(f"sqlite:///{path}") as progress:
                return progress.scope(SCOPE).snapshot().totals.events
        except StoreError:
            return 0  # the backfill is still creating it

    def served(self) -> "Served":
        """What the API has answered so far."""
        with urllib.request.urlopen(f"{self.url}/served", timeout=10) as answer:  # noqa: S310  # http, on loopback
            return msgspec.json.decode(answer.read(), type=Served)


class Served(msgspec.Struct, frozen=True):
    """`again` by airport: how often departures were sent that had been sent before. `unavailable`: 503; `expired`: 410."""

    pages: int
    unavailable: int
    expired: int
    again: Mapping[str, int]


@contextmanager
def scene(folder: Path, broken: str | None = None) -> Iterator[Scene]:
    """Start the API, write the job file, and end the API again. Raises DemoFailed where it does not start."""
    arguments = ["--delay-ms", str(ANSWER_MS), *(["--broken", broken] if broken else [])]
    command = [sys.executable, "-m", "gapless_pipelines.demo.server", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = _first_line(server.stdout)
            write_job_file(folder, url)
            yield Scene(folder, url)
        finally:
            server.terminate()


def prepare(folder: Path) -> None:
    """Make the folder. Raises ConfigurationError where it already holds a demo: its store would belong to that one."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigurationError(
            "the folder is not empty",
            where=str(folder),
            remedy="name another one with --dir, or leave it out",
        )


def _first_line(output: IO[str] | None) -> str:
    line = output.readline().strip() if output else ""
    if not line:
        raise DemoFailed(
            "the flights API did not start", remedy="what it said on standard error stands above"
        )
    return line


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "gapless_pipelines.cli", *arguments]
