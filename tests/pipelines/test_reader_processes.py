"""Reader processes: exact whatever happens to one of them, and gone when their parent is."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import forked_backfill
import pyarrow.parquet as pq
import pytest
from paged_api import PagedApi, page, served

from gapless.reading import Progress

PARTITIONS = ("a", "b", "c", "d")
JOB = """\
version: 1
scope: orders
domain: {{type: integer}}
source:
  type: http
  base_url: {url}
  partitions: {{list: [a, b, c, d]}}
  pages:
    path: "/partitions/{{partition.id}}/events"
    records: events
    next: {{type: cursor, from: next_cursor, param: cursor, end: "null"}}
  event: {{id: id, position: position}}
  certificate:
    page: {{position: complete_through.position, inclusive: complete_through.inclusive}}
effect: {{type: parquet, path: {folder}/out}}
store: {{url: "sqlite:///{folder}/progress.db"}}
"""


@pytest.fixture
def job(tmp_path: Path):
    pages = {name: [page(n * 10 + 1, n * 10 + 2) for n in range(6)] for name in PARTITIONS}
    with served(PagedApi(pages)) as api:
        path = tmp_path / "job.yaml"
        path.write_text(JOB.format(url=api.url, folder=tmp_path))
        yield path


def run(job: Path, happening: str = "", **options) -> subprocess.CompletedProcess:
    command = [sys.executable, forked_backfill.__file__, str(job), happening]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def promoted(job: Path) -> dict[str, list[str]]:
    """Partition -> the ids of its promoted events, in order."""
    found: dict[str, list[str]] = {name: [] for name in PARTITIONS}
    with Progress(f"sqlite:///{job.parent}/progress.db") as progress:
        for file in progress.scope("orders").files():
            found[file.partition] += pq.read_table(file.path)["_event_id"].to_pylist()
    return found


EVERYTHING = {name: [f"e{n * 10 + k}" for n in range(6) for k in (1, 2)] for name in PARTITIONS}


def test_two_processes_read_everything_once_and_report_to_one(job):
    done = run(job)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["heard"] == list(PARTITIONS)
    assert said["events"] == 48
    assert promoted(job) == EVERYTHING


def test_what_a_killed_reader_has_left_is_read_by_its_parent(job):
    done = run(job, "kill_reader")
    assert done.returncode == 0, done.stderr
    assert promoted(job) == EVERYTHING


def test_an_error_of_a_reader_is_its_parents(job):
    done = run(job, "fail_reader")
    assert done.returncode == 1
    assert "something nobody has foreseen" in done.stderr


def test_no_reader_outlives_a_killed_parent_and_the_next_run_completes(job):
    """The pipe that all of them hold open is at its end when the last of them is."""
    reading, writing = os.pipe()
    killed = run(job, "kill_parent", pass_fds=(writing,))
    os.close(writing)
    assert killed.returncode == -9
    ended, _, _ = select.select([reading], [], [], 60)
    assert ended, "a process of the killed run is still there"
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert run(job).returncode == 0
    assert promoted(job) == EVERYTHING


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="tells of the locks of processes on Linux alone")
def test_each_process_holds_the_locks_of_its_own_store(job):
    """SQLite's locks are a process's own: a fork that finds a connection of its parent in memory takes none, and whoever closes
    the store last, as far as the system can see, removes the log that the fork goes on writing."""
    assert run(job, "tell_locks").returncode == 0
    for who in ("parent", "forked"):
        assert (job.parent / f"locks_of_{who}").read_text() == "progress.db progress.db-shm", who


def test_all_readers_leave_when_asked_to_stop(job):
    stopped = run(job, "stop")
    assert stopped.returncode == 3, stopped.stderr
    assert json.loads(stopped.stdout)["exit_status"] == 3
    assert run(job).returncode == 0
    assert promoted(job) == EVERYTHING
