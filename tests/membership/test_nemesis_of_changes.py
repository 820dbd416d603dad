"""A source that never rests, runs that are killed, and at every moment: what is published is delivered.

The oracle reads what is durable, and knows from the source itself which events its members own.
"""

import os
import random
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from backfill_process import SETTLING_STEPS, At, start
from changing_api import HANDOFF, MOVES, job_text
from restless_api import RestlessApi

from gapless.progress import Bound
from gapless.store import open_store

SEEDS = range(4)
MANY = range(100, 100 + int(os.environ.get("GAPLESS_KILLS", "200")) // 5)
PROOFS = {"reading again": "", "moves": MOVES, "handoff": HANDOFF}
ONE = {"r1": {"a": [0, 2, 4], "b": [6, 8], "c": [10]}}


class Untrue(AssertionError):
    """What is published does not hold."""


class Oracle:
    """What is in the data set, held against what is published."""

    def __init__(self, url: str, api: RestlessApi) -> None:
        self._url = url
        self._api = api
        self._rows: dict[str, list[str]] = {}
        self._last: tuple[int, Bound | None] = (0, None)
        self.looks = 0

    def look(self) -> None:
        with open_store(self._url, readonly=True) as store:
            # The data set first: it only grows under one membership epoch, and the epoch is looked at again afterwards.
            while True:
                before = store.snapshot("changing").scope
                rows = self.delivered(store)
                snapshot = store.snapshot("changing")
                departed = self._departed(store)
                if snapshot.scope.epoch == before.epoch == store.scope("changing").epoch:
                    break
        self._judge(before, rows, [row.partition for row in snapshot.chains if row.is_member], departed)

    def _departed(self, store) -> list[str]:
        return [row.partition for row in store.promotions("changing")]

    def _judge(self, scope, rows, members, departed) -> None:
        self.looks += 1
        epoch, frontier = self._last
        if scope.epoch < epoch or (
            frontier is not None and (scope.frontier is None or scope.frontier < frontier)
        ):
            raise Untrue(f"went back from {self._last} to {(scope.epoch, scope.frontier)}")
        self._last = (scope.epoch, scope.frontier)
        if scope.frontier is None:
            return
        names = {*members, *departed}
        promised = self._api.promised(scope.generation, names)
        if scope.list_certified:
            promised = {f"e{at}": at for at in self._api.owners[scope.generation]}
        missing = [one for one, at in promised.items() if scope.frontier.covers(at) and one not in rows]
        if missing:
            raise Untrue(f"{scope.frontier} is published under epoch {scope.epoch} without {sorted(missing)}")

    def delivered(self, store) -> set[str]:
        return {event for path in self._paths(store) for event in self._in(path)}

    def every_row(self) -> list[str]:
        with open_store(self._url, readonly=True) as store:
            return sorted(event for path in self._paths(store) for event in self._in(path))

    def _paths(self, store) -> list[str]:
        return [row.path for row in store.promotions("changing") if row.path is not None]

    def _in(self, path: str) -> list[str]:
        if path not in self._rows:
            self._rows[path] = pq.read_table(path, columns=["_event_id"])["_event_id"].to_pylist()
        return self._rows[path]


def history(folder: Path, monkeypatch, seed: int, proof: str, certified_list: bool, names_pages: bool) -> str:
    """Runs killed at random while the source changes, then one left alone; what happened, for the failure's text."""
    monkeypatch.chdir(folder)
    draw = random.Random(seed)
    api = RestlessApi(
        ONE, 10, page=3, names_pages=names_pages, seed=seed, proof=proof, certified_list=certified_list
    )
    with api:
        job, log = folder / "job.yaml", folder / "log"
        job.write_text(job_text(api, membership=PROOFS[proof], stop=api.last))
        oracle = Oracle(f"sqlite:///{folder / 'progress.db'}", api)
        for _ in range(draw.randint(3, 5)):
            process = start(job, log, at=At(draw.choice(SETTLING_STEPS), draw.randint(1, 25)))
            watch(oracle, process)
        api.calm()
        for _ in range(4):
            process = start(job, log)
            watch(oracle, process)
            if process.exitcode == 0:
                break
        told = (
            f"seed {seed}, {proof}, certified list {certified_list}\n{api.changes}\n{log.read_text()[-3000:]}"
        )
        assert process.exitcode == 0, told + shown(folder)
        oracle.look()
        rows = oracle.every_row()
        if proof == "handoff":
            rows = sorted(set(rows))
        assert rows == api.expected(), told + shown(folder)
    return told


def look_if_there(oracle: Oracle) -> None:
    from gapless.errors import StoreAbsent, UnknownScope

    try:
        oracle.look()
    except (StoreAbsent, UnknownScope):
        return


def watch(oracle: Oracle, process) -> None:
    """Look again and again while the run goes on."""
    ended = threading.Event()
    while process.is_alive():
        look_if_there(oracle)
        ended.wait(0.1)
    process.join()


def shown(folder: Path) -> str:
    with open_store(f"sqlite:///{folder / 'progress.db'}", readonly=True) as store:
        snapshot = store.snapshot("changing")
        rows = [
            f"\n{row.partition} {row.generation} {row.kind} {row.epoch_in} listed {row.listed} {row.state} {row.bound}"
            f" seal {row.seal} {row.successors} {row.blocker}"
            for row in snapshot.chains
        ]
        scope = snapshot.scope
        head = (
            f"\n{scope.epoch} {scope.generation}/{scope.observed_generation} {scope.frontier} cap {scope.cap}"
        )
        return head + "".join(rows) + f"\n{store.cutover('changing', dry_run=True)}"


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_the_source_does_what_is_published_is_delivered(tmp_path, monkeypatch, seed, proof):
    history(tmp_path, monkeypatch, seed, proof, certified_list=seed % 2 == 1, names_pages=seed % 4 < 2)


@pytest.mark.soak
@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("seed", MANY)
def test_many_more_histories(tmp_path, monkeypatch, seed, proof):
    history(tmp_path, monkeypatch, seed, proof, certified_list=seed % 2 == 1, names_pages=seed % 4 < 2)
