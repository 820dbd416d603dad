"""Two runs at once, twins of one run, and a process that sleeps while a newer run takes over: the data set is that of one."""

import os
import signal
from uuid import uuid4

import pytest
from backfill_process import At
from hostile_universe import Knobs
from truth_oracle import Watch

KNOBS = Knobs(seed=8, partitions=3, events=400, page=20)
TARGET = 40
FENCED = 4


@pytest.fixture
def site(make_site, store_url):
    return make_site(store_url, KNOBS, target_rows=TARGET)


def until(site, process, holds):
    """Look until `holds(instant)`; fails where the process has ended before."""
    while True:
        now = site.oracle.look()
        if now is not None and holds(now):
            return now
        process.join(0.01)
        assert process.exitcode is None, f"it has ended before:\n{site.said()}"


def promoted(pages):
    return lambda now: sum(chain.sequence for chain in now.chains.values()) >= pages


def test_a_second_run_takes_over_and_the_first_one_says_so(site):
    with Watch(site.oracle):
        first = site.start()
        until(site, first, promoted(1))
        second = site.start()
        assert site.ended(second) == 0, site.said()
        assert site.ended(first) in (FENCED, 0), site.said()
        site.run_to_the_end()


def test_two_runs_begun_at_once_make_one_data_set(site):
    with Watch(site.oracle):
        both = [site.start(), site.start()]
        codes = sorted(site.ended(one) for one in both)
    assert codes in ([0, FENCED], [0, 0]), site.said()
    site.run_to_the_end()


def test_twins_of_one_run_make_one_data_set(site):
    """The same run id, and so the same fencing token, in two processes."""
    run_id = uuid4().hex
    with Watch(site.oracle):
        both = [site.start(run_id=run_id), site.start(run_id=run_id)]
        assert [site.ended(one) for one in both] == [0, 0], site.said()
    now = site.run_to_the_end()
    assert {listed.fencing_token for listed in now.manifest} == {1}


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("sqlite", "taken"),
        ("sqlite", "fetched"),
        ("sqlite", "durable"),
        ("sqlite", "committed"),
        pytest.param("postgres", "durable", marks=pytest.mark.postgres),
    ],
)
def test_a_process_that_wakes_up_after_it_was_fenced_changes_nothing(make_site, request, kind, step):
    """It is stopped by SIGSTOP with its page, its file or its answer in hand, and goes on when everything is over."""
    site = make_site(request.getfixturevalue(f"{kind}_url"), KNOBS)
    # With one reader, so that no other one of its threads is stopped within a transaction and keeps everybody from writing.
    site.write_job(target_rows=TARGET, workers=1)
    mark = site.folder / "stopped"
    with Watch(site.oracle):
        sleeper = site.start(at=At(step, 3, "stop", mark=str(mark)))
        while not mark.exists():
            sleeper.join(0.01)
            assert sleeper.exitcode is None, site.said()
        now = site.run_to_the_end()
        assert sleeper.pid is not None
        os.kill(sleeper.pid, signal.SIGCONT)
        assert site.ended(sleeper) == FENCED, site.said()
        later = site.oracle.finish()
    assert later.manifest == now.manifest
    assert later.chains == now.chains
