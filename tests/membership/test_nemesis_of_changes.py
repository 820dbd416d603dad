"""A source that never rests, runs that are killed, and at every moment: what is published is delivered.

The oracle reads what is durable, and knows from the source itself which events its members own.
"""

import os
import random
import threading
from pathlib import Path

import pytest
from backfill_process import SETTLING_STEPS, At, start
from changes_oracle import Oracle
from changing_api import HANDOFF, MOVES, job_text
from restless_api import RestlessApi

from gapless.store import open_store

SEEDS = (2, 3)
# With the first two of the many, every pair of kinds is there: database, certified list, pages that name their generation.
MANY = range(100, 100 + int(os.environ.get("GAPLESS_KILLS", "200")) // 100)
PROOFS = {"reading again": "", "moves": MOVES, "handoff": HANDOFF}
ONE = {"r1": {"a": [0, 2, 4], "b": [6, 8], "c": [10]}}


def history(folder: Path, url: str, seed: int, proof: str, *, certified_list: bool, names_pages: bool) -> str:
    """Runs killed at random while the source changes, then one left alone; what happened, for the failure's text."""
    draw = random.Random(seed)
    api = RestlessApi(
        ONE, 10, page=3, names_pages=names_pages, seed=seed, proof=proof, certified_list=certified_list
    )
    with api:
        job, log = folder / "job.yaml", folder / "log"
        job.write_text(job_text(api, membership=PROOFS[proof], stop=api.last, store=url))
        oracle = Oracle(url, api)
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
        assert process.exitcode == 0, told + shown(url)
        oracle.look()
        rows = oracle.every_row()
        if proof == "handoff":
            rows = sorted(set(rows))
        assert rows == api.expected(), told + shown(url)
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


def shown(url: str) -> str:
    with open_store(url, readonly=True) as store:
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


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of the job lie in the current folder."""
    monkeypatch.chdir(tmp_path)


def judge(request, tmp_path, seed: int, proof: str) -> None:
    database = "postgres" if seed % 4 in (1, 2) else "sqlite"
    url = request.getfixturevalue(f"{database}_url")
    history(tmp_path, url, seed, proof, certified_list=seed % 2 == 1, names_pages=seed % 4 < 2)


@pytest.mark.postgres
@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_the_source_does_what_is_published_is_delivered(request, tmp_path, seed, proof):
    judge(request, tmp_path, seed, proof)


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("seed", MANY)
def test_many_more_histories(request, tmp_path, seed, proof):
    judge(request, tmp_path, seed, proof)
