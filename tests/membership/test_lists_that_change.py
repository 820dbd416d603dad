"""A source's list changes between runs and in the middle of one: the frontier never moves by it, and nobody who stayed stops."""

import pytest
from changing_api import Listed, ids

from gapless.errors import InvalidPage
from gapless.progress import Bound


def test_a_newcomer_behind_the_frontier_is_read_from_its_start_and_enters_by_itself(changing):
    scene = changing({"r1": {"a": [1, 5, 90], "b": [2, 80]}}, now=100)
    assert scene.read().exit_status == 0
    assert scene.frontier() == Bound.through(100)
    scene.api.route("r1", {"a": [1, 5, 90, 130], "b": [2, 80, 120], "n": [3, 50, 110]})
    scene.api.now = 150
    result = scene.read()
    assert result.exit_status == 0, result.snapshot
    assert result.snapshot.scope.epoch == 2
    assert scene.frontier() == Bound.through(150)
    assert scene.rows() == ids(1, 2, 3, 5, 50, 80, 90, 110, 120, 130)


def test_a_newcomer_that_shows_up_while_the_run_goes_on_is_read_in_the_same_run(changing):
    scene = changing({"r1": {"a": [1, 5, 90], "b": [2, 80]}}, now=100)

    def join(target, number):
        if "events" in target:
            scene.api.route("r1", {"a": [1, 5, 90], "b": [2, 80], "n": [3]})

    scene.api.before.append(join)
    result = scene.read()
    assert (result.exit_status, result.snapshot.scope.epoch) == (0, 2)
    assert scene.rows() == ids(1, 2, 3, 5, 80, 90)


def test_a_newcomer_whose_first_page_is_empty_enters_by_its_certificate(changing):
    scene = changing({"r1": {"a": [1]}}, now=10)
    scene.read()
    scene.api.route("r1", {"a": [1], "n": []})
    result = scene.read()
    assert (result.exit_status, result.snapshot.scope.epoch) == (0, 2)


def test_a_split_parent_leaves_sealed_and_drained_and_its_children_go_on(changing):
    scene = changing({"r1": {"s0": [1, 60, 100], "a": [7]}}, now=100)
    scene.read()
    scene.api.route("r1", {"s0": [1, 60, 100], "a": [7, 140], "s1": [110], "s2": [120, 130]})
    scene.api.listed["s0"] = Listed((100, True), ["s1", "s2"])
    scene.api.listed["s1"] = Listed(parents=["s0"])
    scene.api.listed["s2"] = Listed(parents=["s0"])
    scene.api.now = 150
    result = scene.read()
    assert result.exit_status == 0, result.snapshot
    assert scene.frontier() == Bound.through(150)
    assert {row.partition for row in result.snapshot.chains if row.is_member} == {"a", "s1", "s2"}
    assert scene.rows() == ids(1, 7, 60, 100, 110, 120, 130, 140)
    again = scene.read()
    assert (again.exit_status, again.snapshot.scope.epoch) == (0, result.snapshot.scope.epoch)
    assert scene.rows() == ids(1, 7, 60, 100, 110, 120, 130, 140), (
        "listed as sealed still, and not read again"
    )


def test_who_vanishes_without_a_seal_holds_at_its_bound_and_stops_nobody(changing):
    scene = changing({"r1": {"a": [1, 5], "b": [2]}}, now=50)
    scene.read()
    scene.api.route("r1", {"a": [1, 5, 70]})
    scene.api.now = 100
    result = scene.read()
    assert result.exit_status == 3
    assert scene.frontier() == Bound.through(50)
    (a,) = [row for row in result.snapshot.chains if row.partition == "a"]
    assert a.bound == Bound.through(100)


def test_an_empty_list_removes_nobody_and_stops_nobody(changing):
    scene = changing({"r1": {"a": [1, 5]}}, now=50)
    scene.read()
    scene.api.listed.clear()
    scene.api.routing["r1"]["a"].append(70)
    scene.api.now = 100
    result = scene.read()
    assert (result.exit_status, result.snapshot.scope.epoch) == (3, 1)
    assert scene.frontier() == Bound.through(100), "of the member that went on; the list is frozen"


def test_a_backfill_that_stops_before_a_seal_is_not_stranded(changing):
    scene = changing({"r1": {"s0": [1, 60, 190]}}, now=100)
    scene.read(stop=50)
    scene.api.route("r1", {"s0": [1, 60, 190], "s1": [20, 210]})
    scene.api.listed["s0"] = Listed((200, True), ["s1"])
    scene.api.listed["s1"] = Listed(parents=["s0"])
    scene.api.now = 250
    result = scene.read(stop=90)
    assert result.exit_status == 0, result.snapshot
    assert scene.frontier() is not None
    assert scene.frontier() >= Bound.before(90)


def test_a_first_list_that_is_empty_is_an_error_and_nothing_is_frozen(changing):
    scene = changing({"r1": {"a": [1]}}, now=50)
    scene.api.listed.clear()
    with pytest.raises(InvalidPage, match="empty: there is no partition to read"):
        scene.read()
    with scene.store() as store:
        assert store.scope("changing").epoch == 0


def test_a_newcomer_that_cannot_be_asked_for_is_held_by_name_and_stops_nobody(changing):
    """No path leads to `..`: that is one partition's trouble."""
    scene = changing({"r1": {"a": [1]}}, now=50)
    scene.read()
    scene.api.route("r1", {"a": [1, 70], "..": [3]})
    scene.api.now = 100
    result = scene.read()
    assert result.exit_status == 3
    held = {row.partition: row.blocker.hint for row in result.snapshot.chains if row.blocker}
    assert list(held) == [".."]
    assert "segment" in held[".."]
    (a,) = [row for row in result.snapshot.chains if row.partition == "a"]
    assert a.bound == Bound.through(100)
