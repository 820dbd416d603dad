"""A backfill by two processes, as a program: `python forked_backfill.py JOB [HAPPENING]`; prints what came of it as JSON.

HAPPENING says what happens to the forked reader, or to its parent, when the first page is applied there: `kill_reader`,
`fail_reader`, `kill_parent`, `stop`; `tell_locks`: both write beside the job which of the store's files they have locked."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from gapless_pipelines.backfill import Backfill, run_backfill
from gapless_pipelines.job import load_job

PARENT = os.getpid()
HAPPENING = sys.argv[2] if len(sys.argv) > 2 else ""


def on_step(name: str) -> None:
    """Looked up by name where the transforms are unpickled, so that it knows which process it is in."""
    if name != "applied":
        return
    forked = os.getpid() != PARENT
    if forked and HAPPENING == "kill_reader":
        os.kill(os.getpid(), signal.SIGKILL)
    if forked and HAPPENING == "fail_reader":
        raise LookupError("something nobody has foreseen")
    if forked and HAPPENING == "kill_parent":
        os.kill(PARENT, signal.SIGKILL)
    if HAPPENING == "tell_locks":
        _tell_locks(Path(sys.argv[1]).parent, "forked" if forked else "parent")


def _tell_locks(folder: Path, who: str) -> None:
    inodes = {path.stat().st_ino: path.name for path in folder.glob("progress.db*")}
    held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    mine = {inodes.get(int(fields[5].rpartition(":")[2])) for fields in held if fields[4] == str(os.getpid())}
    (folder / f"locks_of_{who}").write_text(" ".join(sorted(name for name in mine if name)))


def main() -> int:
    job = load_job(sys.argv[1])
    heard: set[str] = set()
    said: dict[str, Any] = {}

    def on_start(run: Any, plan: Any) -> None:
        said["run"] = run

    def on_reading() -> None:
        if HAPPENING == "stop":
            said["run"].stop()

    backfill = Backfill(
        job.source(), job.effect(), job.store.ref(), job.engine(), processes=2, on_step=on_step
    )
    outcome = run_backfill(
        backfill, lambda progress: heard.add(progress.partition), None, on_start, on_reading
    )
    json.dump(
        {
            "exit_status": outcome.exit_status,
            "events": outcome.events,
            "passes": outcome.passes,
            "heard": sorted(heard),
        },
        sys.stdout,
    )
    return outcome.exit_status


if __name__ == "__main__":
    sys.modules["forked_backfill"] = sys.modules["__main__"]
    on_step.__module__ = "forked_backfill"
    sys.exit(main())
