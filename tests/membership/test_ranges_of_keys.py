"""A list says which keys its partitions serve: whatever the ends are, they are judged, and a fault is told in one error."""

from typing import Any

import pytest
from changing_api import ChangingApi, ids

from gapless.errors import InvalidPage
from gapless.progress import Bound

PARENTS = "      parents: parents\n"


class ApiWithKeys(ChangingApi):
    """`keys`: the ends of what each partition serves."""

    keys: dict[str, tuple[Any, Any]]

    def _partitions(self) -> dict[str, Any]:
        told = super()._partitions()
        for item in told["partitions"]:
            item["low"], item["high"] = self.keys[item["id"]]
        return told


@pytest.fixture
def serving(changing, monkeypatch):
    """A scene whose partitions serve these keys."""

    def make(**keys: tuple[Any, Any]):
        scene = changing({"r1": {name: [at] for at, name in enumerate(keys, 1)}}, now=10, kind=ApiWithKeys)
        scene.api.keys = keys
        written = scene.job

        def job(**options: Any):
            path = written(**options)
            text = path.read_text()
            assert PARENTS in text
            path.write_text(text.replace(PARENTS, PARENTS + "      key_range: {low: low, high: high}\n"))
            return path

        monkeypatch.setattr(scene, "job", job)
        return scene

    return make


@pytest.mark.parametrize(
    "keys",
    [
        {"a": ("", "m"), "b": ("m", None)},
        {"a": ("m", "z"), "b": ("", "m")},
        {"a": (None, 0), "b": (0, 7), "c": (-5, 0)},
    ],
    ids=["the empty text first", "the empty text last", "below nothing"],
)
def test_lists_of_any_order_and_kind_are_judged(serving, keys):
    scene = serving(**keys)
    if "c" in keys:
        with pytest.raises(InvalidPage, match="a and c serve the same keys"):
            scene.read()
        return
    assert scene.read().exit_status == 0
    assert scene.frontier() == Bound.through(10)
    assert scene.rows() == ids(1, 2)


def test_keys_that_share_no_order_are_an_error_of_the_list_before_anything_is_frozen(serving):
    scene = serving(a=("", "m"), b=(5, None))
    with pytest.raises(InvalidPage, match="the keys of a and b share no order") as raised:
        scene.read()
    assert raised.value.where == "the source's list of partitions"
    with scene.store() as store:
        assert store.scope("changing").epoch == 0


def test_a_list_with_such_keys_in_the_middle_of_a_run_stops_nobody(serving):
    scene = serving(a=("", "m"), b=("m", None))

    def mix(target, number):
        if "events" in target:
            scene.api.keys["b"] = (5, None)

    scene.api.before.append(mix)
    assert scene.read().exit_status == 0
    assert scene.frontier() == Bound.through(10)
