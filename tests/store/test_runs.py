"""Runs: numbered idempotently, strictly upwards for ever."""

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
    scene.store.end_run("run", "done")
    run = scene.store.snapshot("orders").run
    assert (run.state, run.heartbeat_at) == ("done", scene.clock.now())


def test_signs_of_life_of_an_unknown_run_are_an_error(scene):
    with pytest.raises(StoreError, match="no run 'ghost'"):
        scene.store.heartbeat("ghost")
    with pytest.raises(StoreError, match="no run 'ghost'"):
        scene.store.end_run("ghost", "done")
