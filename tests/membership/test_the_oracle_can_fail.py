"""The oracle of changes judges a product in which one rule is broken: it has to say so."""

import pytest
from answering_api import NoAnswer
from changes_oracle import Oracle, Untrue
from changing_api import Listed
from restless_api import RestlessApi

from gapless.progress import Standing, cutover_step
from gapless.settling.chain_access import ChainAccess


def quiet(changing, routing, now, **options):
    """Nothing changes but what the test changes; every call begins with a store of its own."""
    scene = changing(routing, now, kind=RestlessApi, quiet=True, last=now, **options)
    scene.api.no_more_events()
    (scene.folder / "progress.db").unlink(missing_ok=True)
    return scene


def broken(api, name):
    """From now on this partition answers nothing."""

    def refuse(target, number):
        if f"/{name}/events" in target:
            raise NoAnswer

    api.before.append(refuse)


def judged(scene):
    return Oracle(scene.url, scene.api).look()


def newcomer(changing):
    scene = quiet(changing, {"r1": {"a": [2, 60], "b": [4, 70]}}, now=70)
    scene.read()
    scene.api.listed["n"] = Listed()
    scene.api.owners["r1"][3] = "n"
    broken(scene.api, "n")
    scene.read()
    return scene


def test_a_newcomer_that_is_let_in_at_once(changing, monkeypatch):
    judged(newcomer(changing))
    monkeypatch.setattr(cutover_step, "reaches", lambda bound, published: True)
    monkeypatch.setattr(cutover_step, "_lack_of_join", lambda *_: None)
    scene = newcomer(changing)
    with pytest.raises(Untrue, match="without \\['e3'\\]"):
        judged(scene)


def leaver(changing):
    scene = quiet(changing, {"r1": {"s": [2, 40], "b": [4, 50]}}, now=50)
    scene.read()
    scene.api.listed["s"] = Listed((80, True), [])
    scene.api.owners["r1"].update({80: "s", 90: "b"})
    scene.api.now = scene.api.last = 100
    scene.api.calm()
    broken(scene.api, "s")
    scene.read()
    return scene


def test_a_leaver_that_is_let_go_before_it_is_drained(changing, monkeypatch):
    judged(leaver(changing))
    monkeypatch.setattr(Standing, "drained", property(lambda one: one.seal is not None))
    scene = leaver(changing)
    with pytest.raises(Untrue, match="without \\['e80'\\]"):
        judged(scene)


HOLD = "membership: {on_change: hold}\n"


def moved_in_the_middle(changing):
    """Event 80 moves, between the two reads, from the partition that is read second to the one that was read first; nothing but
    the list tells of it."""
    scene = quiet(changing, {"r1": {"a": [10, 60], "b": [20, 70]}}, now=70, names_pages=False)
    scene.read(membership=HOLD)
    scene.api.now = scene.api.last = 100
    scene.api.calm()
    read = []

    def change(target, number):
        if "/events" not in target or scene.api.generation == "r2":
            return
        name = target.split("/")[2]
        if not read:
            scene.api.owners["r1"][80] = "b" if name == "a" else "a"
        elif name != read[0]:
            scene.api.owners["r2"] = {**scene.api.owners["r1"], 80: read[0]}
            scene.api.generation = "r2"
        read.append(name)
        scene.api.calm()

    scene.api.before.append(change)
    scene.read(membership=HOLD)
    return scene


def test_a_run_that_is_promoted_without_a_look_at_the_routing(changing, monkeypatch):
    judged(moved_in_the_middle(changing))
    monkeypatch.setattr(ChainAccess, "require_generation", lambda self, row: None)
    with pytest.raises(Untrue, match="without \\['e80'\\]"):
        judged(moved_in_the_middle(changing))
