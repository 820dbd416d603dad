"""Full disks, missing permissions, a partition that stalls: what is wrong is named, nothing is claimed, and it goes on later."""

import signal
from dataclasses import replace

import pytest
from backfill_process import FILE_STEPS, At
from hostile_universe import Knobs
from truth_oracle import Watch

from gapless.explain import explain
from gapless.store import open_store

KNOBS = Knobs(seed=9, partitions=3, events=150, page=20)
UNUSABLE_STORE = 2
NOT_COMPLETE = 3
TWICE = {"attempts": 2, "backoff": "1ms", "max": "2ms"}
KILLED = -signal.SIGKILL


def blockers(site):
    with open_store(site.store_url, readonly=True) as store:
        return dict(explain(store.snapshot("orders")).blockers)


@pytest.mark.parametrize(
    "step", ["file_opened", "row_group_written", "file_written", "before_rename", "after_rename"]
)
def test_a_disk_that_is_full_for_a_moment_is_waited_for(make_site, step):
    site = make_site(knobs=KNOBS, target_rows=50)
    with Watch(site.oracle):
        assert site.run(at=At(step, 2, "no_space", times=2)) == 0, site.said()
    site.oracle.finish()


def test_a_disk_that_stays_full_holds_each_partition_with_the_reason_and_the_next_run_goes_on(make_site):
    site = make_site(knobs=KNOBS, target_rows=50, retry=TWICE)
    with Watch(site.oracle):
        assert site.run(at=At("file_written", 4, "no_space", times=10**6)) == NOT_COMPLETE, site.said()
    held = blockers(site)
    assert set(held) == set(site.oracle.universe)
    assert all(
        "No space left" in blocker.hint and blocker.code == "unsettled_event" for blocker in held.values()
    )
    site.run_to_the_end()
    left = [path for path in (site.folder / "out").rglob(".*") if path.is_file()]
    assert left == [], "what could not be written is not left lying about"


@pytest.mark.postgres
def test_files_that_may_not_grow_hold_each_partition(make_site, postgres_url):
    """A real limit of the operating system, which every write of the process meets."""
    site = make_site(postgres_url, KNOBS, target_rows=10_000, retry=TWICE)
    with Watch(site.oracle):
        assert site.run(largest_file=4096) == NOT_COMPLETE, site.said()
    assert all("cannot write" in blocker.hint for blocker in blockers(site).values())
    site.run_to_the_end()


@pytest.mark.parametrize("largest", [150_000, 300_000])
def test_a_store_that_may_not_grow_ends_the_run_with_an_error_and_what_it_holds_is_true(make_site, largest):
    site = make_site(knobs=Knobs(seed=9, partitions=3, events=1500, page=5), target_rows=5)
    with Watch(site.oracle):
        assert site.run(largest_file=largest) == UNUSABLE_STORE, site.said()
    assert "StoreUnwritable" in site.said()
    site.oracle.look()
    site.write_job(target_rows=1000)
    site.run_to_the_end()


def test_a_folder_that_may_not_be_written_holds_each_partition_and_says_what_to_do(make_site):
    site = make_site(knobs=KNOBS, target_rows=50, retry=TWICE)
    out = site.folder / "out"
    out.mkdir(mode=0o555)
    assert site.run(as_anybody=True) == NOT_COMPLETE, site.said()
    held = blockers(site)
    assert set(held) == set(site.oracle.universe)
    assert all("Permission denied" in blocker.hint for blocker in held.values())
    assert list(out.iterdir()) == []
    out.chmod(0o755)
    site.run_to_the_end()


def test_a_store_that_may_not_be_written_refuses_and_changes_nothing(make_site):
    site = make_site(knobs=KNOBS, target_rows=50)
    assert site.run(at=At("committed", 3)) == KILLED
    before = site.oracle.look()
    asked = site.stats()["events"]
    file = site.folder / "progress.db"
    file.chmod(0o444)
    assert site.run(as_anybody=True) == UNUSABLE_STORE, site.said()
    assert "StoreUnwritable" in site.said()
    assert site.oracle.look() == before
    assert site.stats()["events"] == asked, "nothing was read"
    file.chmod(0o644)
    site.run_to_the_end()


def test_one_stalled_partition_holds_the_frontier_by_name_and_all_others_are_read(make_site, store_url):
    knobs = Knobs(seed=10, partitions=3, events=150, page=20, stall=1, stall_after=60)
    site = make_site(
        store_url, knobs, target_rows=50, client={"retry": {"attempts": 2, "backoff": "1ms", "max": "2ms"}}
    )
    with Watch(site.oracle):
        assert site.run() == NOT_COMPLETE, site.said()
        now = site.oracle.look()
        assert now is not None
        states = {chain.partition: chain.state for chain in now.chains.values()}
        stalled = list(site.oracle.universe)[1]
        assert states == {name: "held" if name == stalled else "ended" for name in states}
        assert [(name, blocker.code) for name, blocker in blockers(site).items()] == [
            (stalled, "source_unavailable")
        ]
        (chain,) = [chain for chain in now.chains.values() if chain.partition == stalled]
        assert now.frontier == chain.bound
        assert chain.events >= 60 - 20
        site.release()
        site.run_to_the_end()


def test_every_step_of_a_file_is_one_that_fails_somewhere_above():
    assert {
        "file_opened",
        "row_group_written",
        "file_written",
        "before_rename",
        "after_rename",
        "file_durable",
    } == set(FILE_STEPS)


VIOLATED = 5


@pytest.mark.parametrize(
    "promise", ["event_behind_bound", "certificate_went_back", "certificate_behind_events"]
)
def test_a_source_that_breaks_a_promise_is_found_out_and_every_event_is_kept(make_site, promise):
    site = make_site(knobs=replace(KNOBS, break_promise=promise), target_rows=50)
    assert site.run() == VIOLATED, site.said()
    with open_store(site.store_url, readonly=True) as store:
        found = list(store.violations("orders"))
    assert {violation.kind for violation in found} == {promise}
    assert {violation.partition for violation in found} == set(site.oracle.universe)
    assert site.run() == VIOLATED, "what was broken stays known"
    with open_store(site.store_url, readonly=True) as store:
        assert list(store.violations("orders")) == found, (
            "and is one violation, however often it is looked at"
        )
        rows = {chain.partition: chain.events for chain in store.snapshot("orders").chains}
    assert rows == dict.fromkeys(site.oracle.universe, KNOBS.events)


def test_answers_that_never_come_are_asked_for_again(make_site):
    site = make_site(knobs=replace(KNOBS, rate_hang=0.1, hang=30.0), target_rows=50)
    with Watch(site.oracle):
        site.run_to_the_end()
    assert site.stats()["fault_hang"] > 0
