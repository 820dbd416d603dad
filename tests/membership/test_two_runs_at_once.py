"""A run reads the list, and while the answer is on its way another one follows a later list: the late answer undoes nothing."""

import pytest
from changing_api import HOLD, ChangingApi, Listed, ids

from gapless.errors import InvalidPage
from gapless.progress import Bound


class SlowListApi(ChangingApi):
    """`meanwhile` happens once, between what the list says and its arrival."""

    meanwhile = None

    def answer(self, target):
        answer = super().answer(target)
        happens, self.meanwhile = (
            (self.meanwhile, None) if target == "/partitions" else (None, self.meanwhile)
        )
        if happens is not None:
            happens()
        return answer


@pytest.fixture
def read(changing):
    """Parent s0 and member a, complete through 100, events up to 150 to be read."""
    scene = changing({"r1": {"s0": [1, 60, 100], "a": [7]}}, now=100, kind=SlowListApi)
    assert scene.read().exit_status == 0
    scene.api.now = 150
    return scene


def test_who_left_meanwhile_is_not_brought_back_by_the_older_list(read):
    ended = []

    def split():
        read.api.route("r1", {"s0": [1, 60, 100], "a": [7], "s1": [110]})
        read.api.listed["s0"] = Listed((100, True), ["s1"])
        read.api.listed["s1"] = Listed(parents=["s0"])
        ended.append(read.read().exit_status)
        read.api.listed.pop("s0")

    read.api.meanwhile = split
    result = read.read()
    assert (ended, result.exit_status) == ([0], 0), result.snapshot
    assert read.rows() == ids(1, 7, 60, 100, 110)
    assert {row.partition for row in result.snapshot.chains if row.is_live} == {"a", "s1"}


def test_routing_that_changed_meanwhile_is_no_generation_that_comes_back(read):
    def move():
        read.api.route("r2", {"s0": [1, 60], "a": [7, 100, 120]})
        assert read.read(membership=HOLD).exit_status == 3

    read.api.meanwhile = move
    result = read.read()
    assert result.exit_status == 0, result.snapshot
    assert read.frontier() == Bound.through(150)
    assert read.rows() == ids(1, 7, 60, 100, 120)


def test_a_list_that_is_refused_leaves_no_run_behind(read):
    with read.store() as store:
        before = store.snapshot("changing").run
    read.api.listed["s0"] = Listed((120, True), ["a"])
    read.api.listed["a"] = Listed((120, True), ["s0"])
    with pytest.raises(InvalidPage, match="circle"):
        read.read()
    with read.store() as store:
        assert store.snapshot("changing").run == before
