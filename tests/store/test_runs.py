"""Runs: numbered idempotently, strictly upwards for ever."""

from datetime import timedelta

import pytest

from gapless.errors import StoreError


def test_the_same_run_id_gets_the_same_number_however_often(scene):
    first = scene.store.begin_run("orders", "run", "local")
    assert scene.another().begin_run("orders", "run", "prism") == first
    assert scene.store.snapshot("orders").run.engine == "local"


def test_numbers_grow_with_every_run(scene):
    numbers = [scene.store.begin_run("orders", f"run {n}", "local") for n in range(5)]
    assert numbers == sorted(set(numbers))


def test_numbers_grow_also_over_the_deletion_of_everything(scene, kit):
    last = max(scene.store.begin_run("orders", f"run {n}", "local") for n in range(3))
    for table in ("run", "scope", "chain"):
        scene.sql(f"DELETE FROM gapless_{table}")
    scene.store.register_scope(kit.identity())
    assert scene.store.begin_run("orders", "run 0", "local") > last


def test_twins_that_begin_one_run_at_the_same_time_share_its_number(scene, kit):
    stores = [scene.another() for _ in range(8)]
    numbers = kit.at_once([lambda store=store: store.begin_run("orders", "run", "local") for store in stores])
    assert len(set(numbers)) == 1


def test_runs_that_begin_at_the_same_time_never_share_a_number(scene, kit):
    stores = [scene.another() for _ in range(8)]
    numbers = kit.at_once(
        [
            lambda store=store, n=n: store.begin_run("orders", f"run {n}", "local")
            for n, store in enumerate(stores)
        ]
    )
    assert len(set(numbers)) == 8


def test_a_run_id_belongs_to_one_scope(scene, kit):
    scene.store.begin_run("orders", "run", "local")
    scene.store.register_scope(kit.identity(scope="other"))
    with pytest.raises(StoreError, match="belongs to scope 'orders'"):
        scene.store.begin_run("other", "run", "local")


def test_the_latest_run_tells_its_state_and_its_heartbeat(scene):
    scene.store.begin_run("orders", "older", "local")
    scene.store.begin_run("orders", "run", "local")
    began = scene.clock.now()
    scene.clock.sleep(5)
    scene.store.heartbeat("run")
    run = scene.store.snapshot("orders").run
    assert (run.run_id, run.state, run.started_at, run.heartbeat_at) == (
        "run",
        "running",
        began,
        scene.clock.now(),
    )
    scene.clock.sleep(5)
    scene.store.end_run("run", "stopped")
    run = scene.store.snapshot("orders").run
    assert (run.state, run.heartbeat_at) == ("stopped", scene.clock.now())


def state_of(scene):
    return scene.store.snapshot("orders").run.state


def test_a_running_run_that_is_silent_for_more_than_a_minute_is_lost_until_it_is_heard_of_again(scene):
    scene.store.begin_run("orders", "run", "local")
    scene.clock.sleep(60)
    assert state_of(scene) == "running"
    scene.clock.sleep(0.001)
    assert state_of(scene) == "lost"
    assert scene.store.heartbeat("run")
    assert state_of(scene) == "running"


@pytest.mark.parametrize("end", ["finished", "stopped", "failed"])
def test_a_run_that_was_ended_is_neither_lost_nor_revived_by_a_late_sign_of_life(scene, end):
    scene.store.begin_run("orders", "run", "local")
    scene.store.end_run("run", end)
    ended_at = scene.clock.now()
    scene.clock.sleep(3600)
    assert not scene.another().heartbeat("run")
    assert (state_of(scene), scene.store.snapshot("orders").run.heartbeat_at) == (end, ended_at)


def test_the_time_of_the_last_sign_of_life_never_goes_back(scene):
    scene.store.begin_run("orders", "run", "local")
    last = scene.clock.now()
    scene.clock.instant -= timedelta(seconds=30)
    assert scene.store.heartbeat("run"), "a clock that is behind is alive all the same"
    scene.clock.instant = last
    assert scene.store.snapshot("orders").run.heartbeat_at == last


def test_a_pipeline_that_ends_leaves_the_last_word_to_whoever_started_it(scene):
    scene.store.begin_run("orders", "run", "local")
    scene.store.finish_run("run")
    scene.store.finish_run("run")
    assert state_of(scene) == "finished"
    scene.store.end_run("run", "failed")
    scene.store.finish_run("run")
    assert state_of(scene) == "failed"


def test_a_run_reads_on_after_its_pipeline_has_ended(scene):
    scene.store.begin_run("orders", "run", "local")
    scene.store.finish_run("run")
    scene.store.resume_run("run")
    assert scene.store.heartbeat("run")
    assert state_of(scene) == "running"


def test_there_are_no_other_ends(scene):
    scene.store.begin_run("orders", "run", "local")
    with pytest.raises(ValueError, match="does not end as 'lost'"):
        scene.store.end_run("run", "lost")


@pytest.mark.parametrize(
    "say", ["heartbeat", "finish_run", "resume_run", lambda store, run_id: store.end_run(run_id, "finished")]
)
def test_signs_of_life_of_an_unknown_run_are_an_error(scene, say):
    with pytest.raises(StoreError, match="no run 'ghost'"):
        getattr(scene.store, say)("ghost") if isinstance(say, str) else say(scene.store, "ghost")
