"""A growing API, a job that streams it in processes of their own, and an oracle that holds every claim against what is final.

with StreamSite(folder, GrowingApi("null")) as site:
    process = site.start(); ...; site.stop(process)
    site.oracle.look()
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import backfill_process
import pyarrow.parquet as pq
import yaml
from backfill_process import At, Setup
from growing_api import GrowingApi, source_block

from gapless.audit import audit
from gapless.errors import StoreError
from gapless.progress import Bound
from gapless.store import open_store

SCOPE = "orders"
SOON = 60.0
POLLING = {"poll": "100ms", "longest": "300ms", "look": "500ms"}


@dataclass
class GrowingOracle:
    """An event may be delivered twice only where a restart explains it."""

    url: str
    api: GrowingApi
    looks: int = 0
    frontier: Bound | None = None
    _files: dict[str, list[str]] = field(default_factory=dict)

    def look(self) -> dict[str, list[str]]:
        """Judge this instant; partition -> the ids that were delivered, in order. Raises AssertionError."""
        self.looks += 1
        with closing(open_store(self.url, readonly=True)) as store:
            # The claim first: whatever it covers must be there already.
            snapshot = store.snapshot(SCOPE)
            promotions = list(store.promotions(SCOPE))
            with store.evidence(SCOPE) as evidence:
                again = {
                    row["partition"]
                    for row in evidence.journal()
                    if row["action"] == "restart" or "delivered again" in row["reason"]
                }
        delivered: dict[str, list[str]] = {}
        for row in promotions:
            if row.path is not None:
                delivered.setdefault(row.partition, []).extend(self._ids(row.path))
        for name, ids in delivered.items():
            assert len(ids) == len(set(ids)) or name in again, f"{name}: an event was delivered twice"
        frontier = snapshot.scope.frontier
        assert self.frontier is None or (frontier is not None and frontier >= self.frontier), "it went back"
        self.frontier = frontier
        if frontier is not None:
            for row in snapshot.chains:
                if row.is_member:
                    self._judge_member(row.partition, frontier, frozenset(delivered.get(row.partition, ())))
        return delivered

    def finish(self) -> None:
        """Everything that is final was delivered, the frontier says so, and the audit finds nothing."""
        delivered = self.look()
        for name, ids in self.api.expected().items():
            assert set(ids) <= set(delivered.get(name, ())), (
                f"{name}: {set(ids) - set(delivered.get(name, ()))}"
            )
        with closing(open_store(self.url, readonly=True)) as store:
            report = audit(store, SCOPE)
        assert report.clean, report.contradictions[:3]

    def _judge_member(self, name: str, frontier: Bound, have: frozenset[str]) -> None:
        with self.api.lock:
            owed = {
                event_id
                for position, event_id in self.api.partitions[name].events
                if frontier.covers(position)
            }
            assert self.api.partitions[name].certified >= frontier.position - 1, "nobody has certified that"
        assert owed <= have, f"{name}: {sorted(owed - have)[:3]} are missing, {frontier} is claimed"

    def _ids(self, path: str) -> list[str]:
        if path not in self._files:
            table = pq.read_table(path, columns=["_event_id"], partitioning=None)
            self._files[path] = table.column("_event_id").to_pylist()
        return self._files[path]


class StreamSite:
    def __init__(
        self, folder: Path, api: GrowingApi, store_url: str | None = None, tail: str | None = None, **job: Any
    ) -> None:
        self.folder = folder
        self.api = api
        self.store_url = store_url or f"sqlite:///{folder}/progress.db"
        self.job = folder / "job.yaml"
        self.log = folder / "log"
        self._tail, self._more = tail, job
        self._processes: list[BaseProcess] = []

    def __enter__(self) -> "StreamSite":
        self.api.__enter__()
        document = {
            "version": 1,
            "scope": SCOPE,
            "domain": {"type": "integer"},
            "source": {"type": "http", **source_block(self.api, self._tail)},
            "effect": {"type": "parquet", "path": str(self.folder / "out"), "target_rows": 1000},
            "retry": {"attempts": 3, "backoff": "50ms", "max": "200ms"},
            "store": {"url": self.store_url},
            "stream": POLLING,
            **self._more,
        }
        self.job.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        self.oracle = GrowingOracle(self.store_url, self.api)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.is_alive():
                process.kill()
                process.join(30)
        self.api.__exit__()

    def start(self, **options: Any) -> BaseProcess:
        """A stream of its own process."""
        return self._begun(
            backfill_process.begin(run_stream_job, Setup(str(self.job), str(self.log), **options))
        )

    def backfill(self) -> int:
        """A backfill to its end; its exit status."""
        return self.ended(self._begun(backfill_process.start(self.job, self.log)))

    def _begun(self, process: BaseProcess) -> BaseProcess:
        self._processes.append(process)
        return process

    def ended(self, process: BaseProcess) -> int:
        process.join(SOON)
        assert process.exitcode is not None, f"it does not end:\n{self.said()}"
        return process.exitcode

    def stop(self, process: BaseProcess, number: int = signal.SIGTERM) -> int:
        assert process.pid is not None
        os.kill(process.pid, number)
        return self.ended(process)

    def stop_twice(self, process: BaseProcess) -> int:
        """Ask again before the first word has had its effect: the process has to be in a page that does not come."""
        assert process.pid is not None
        os.kill(process.pid, signal.SIGTERM)
        threading.Event().wait(0.3)
        assert process.is_alive()
        return self.stop(process)

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def until(self, holds: Callable[[Any], bool], what: str, seconds: float = SOON) -> Any:
        """The first snapshot of which `holds` is true."""
        end = time.monotonic() + seconds
        while True:
            try:
                with closing(open_store(self.store_url, readonly=True)) as store:
                    snapshot = store.snapshot(SCOPE)
                    if holds(snapshot):
                        return snapshot
            except StoreError:
                # Not there yet.
                pass
            assert time.monotonic() < end, f"{what} does not come:\n{self.said()}"
            threading.Event().wait(0.02)

    def until_frontier(self, bound: Bound, seconds: float = SOON) -> Any:
        return self.until(
            lambda one: one.scope.frontier is not None and one.scope.frontier >= bound, str(bound), seconds
        )


def run_stream_job(setup: Setup) -> int:
    from dataclasses import replace

    from gapless.errors import GaplessError
    from gapless_pipelines.cli.stopping import Stopping
    from gapless_pipelines.cli.stream_command import stream_of
    from gapless_pipelines.job import load_job
    from gapless_pipelines.stream import run_stream

    backfill_process._limit(setup)
    backfill_process._at = setup.at
    job = load_job(setup.job)
    stream = stream_of(job)
    effect = replace(job.effect(), on_step=backfill_process.on_step)
    run = replace(
        stream.run,
        effect=effect,
        dead_letters=job.dead_letters(),
        on_step=backfill_process.on_step,
    )
    try:
        with Stopping(lambda: None) as stopping:
            outcome = run_stream(
                replace(stream, run=run), on_start=lambda local, plan: stopping.ask_by(local.stop)
            )
    except GaplessError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_status
    return outcome.exit_status


__all__ = ["At", "GrowingOracle", "StreamSite"]
