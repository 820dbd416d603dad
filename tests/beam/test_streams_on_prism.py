"""A stream on Prism, in a program of its own: it follows a source that grows and a list that grows, until somebody ends it."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import streamed_pipeline
from streamed_pipeline import EVENTS, LATE, POLLING, SCOPE, ClockedSource

from gapless.errors import StoreError
from gapless.progress import Bound
from gapless.store import open_store

WITHIN = 90.0


class Streaming:
    """The program, while it runs."""

    def __init__(self, way: str, folder: Path, url: str, began: float, prism: Path) -> None:
        script = Path(streamed_pipeline.__file__)
        command = [
            *(sys.executable, str(script), way, str(folder), url, str(began)),
            "--streaming",
            "--runner=PrismRunner",
            f"--prism_location={prism}",
            "--environment_type=LOOPBACK",
            "--experiments=disable_prism_server_singleton",
        ]
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": str(script.parent), "PATH": path},
                stdout=log,
                stderr=log,
                # In a group of its own: Prism, which it starts, is to end with it.
                start_new_session=True,
            )

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start(tmp_path: Path, sqlite_url: str, prism: Path) -> Iterator:
    started: list[Streaming] = []

    def begin(way: str, began: float) -> Streaming:
        started.append(Streaming(way, tmp_path, sqlite_url, began, prism))
        return started[-1]

    yield begin
    for one in started:
        one.kill()


def frontier(url: str) -> Bound | None:
    try:
        with closing(open_store(url, readonly=True)) as store:
            return store.scope(SCOPE).frontier
    except StoreError:
        # The first run has not created it yet.
        return None


def follow(streaming: Streaming, url: str, until: Bound) -> dict[Bound, float]:
    """When each frontier was seen first."""
    seen: dict[Bound, float] = {}
    ends = time.monotonic() + WITHIN
    while until not in seen:
        assert time.monotonic() < ends, f"{seen}\n{streaming.log.read_text()[-3000:]}"
        assert streaming.process.poll() is None, streaming.log.read_text()[-3000:]
        now = frontier(url)
        if now is not None:
            seen.setdefault(now, time.time())
            if now >= until:
                return seen
        time.sleep(0.02)
    return seen


@pytest.mark.prism
@pytest.mark.parametrize("way", ["in_place", "in_pipeline"])
def test_a_stream_follows_its_source_a_newcomer_included_and_survives_a_kill(
    way, start, tmp_path, sqlite_url, record_property
):
    began = time.time()
    source = ClockedSource(began)
    first = start(way, began)
    follow(first, sqlite_url, Bound.through(10 * (LATE - 3) + 9))
    first.kill()
    second = start(way, began)
    # Beyond what the first one can have read, however slow this machine is.
    pages = max(LATE + 4, source.pages()) + 5
    end = Bound.through(10 * pages + 9)
    seen = follow(second, sqlite_url, end)
    second.kill()
    with closing(open_store(sqlite_url)) as store:
        chains = store.snapshot(SCOPE).chains
        assert sorted(row.partition for row in chains if row.is_member) == ["p0", "p1", "p2", "p9"]
        assert {row.fencing_token for row in chains} == {2}
        assert all(row.events == EVENTS * row.sequence for row in chains)
        assert all(row.bound is not None and row.bound >= end for row in chains)
    if way == "in_pipeline":
        given = set((tmp_path / "given").read_text().split())
        for row in chains:
            assert {
                f"{row.partition}-{10 * page + n}" for page in range(pages) for n in range(EVENTS)
            } <= given
    late = [
        at - source.there_since(bound.position // 10)
        for bound, at in seen.items()
        if bound.position // 10 > pages - 4
    ]
    assert late
    # From a certified page at the source to a published frontier: reported, and bounded loosely on a machine that may be busy.
    record_property("median seconds to a published frontier", round(statistics.median(late), 3))
    print(f"{way}: {statistics.median(late):.2f} s, a poll every {POLLING.every}-{POLLING.longest} s")
    assert statistics.median(late) < 20 * POLLING.longest
