"""Event 80 moves from b to a between two routing generations: by each proof over HTTP, and without one the frontier stands."""

import pytest
from changing_api import HANDOFF, HOLD, MOVES

from gapless.progress import Bound

BEFORE = {"a": [10, 60], "b": [20, 70, 80]}
AFTER = {"a": [10, 60, 80], "b": [20, 70]}
ALL = sorted(f"e{at}" for at in (10, 20, 60, 70, 80))


def half_read(changing, **options):
    """Both are durable through 70 under r1; event 80 exists since, and moves with r2."""
    scene = changing({"r1": {"a": [10, 60], "b": [20, 70]}}, now=70, **options)
    assert scene.read(membership=options.pop("membership", "")).exit_status == 0
    assert scene.frontier() == Bound.through(70)
    scene.api.now = 100
    return scene


@pytest.mark.parametrize("names_pages", [True, False])
def test_without_a_proof_the_frontier_stands(changing, names_pages):
    scene = half_read(changing, names_pages=names_pages)
    scene.api.route("r2", AFTER)
    result = scene.read(membership=HOLD)
    assert (result.exit_status, scene.frontier()) == (3, Bound.through(70))
    assert "e80" not in scene.rows()


@pytest.mark.parametrize("names_pages", [True, False])
def test_reading_again_replaces_the_old_generation_and_no_event_is_there_twice(changing, names_pages):
    scene = half_read(changing, names_pages=names_pages)
    scene.api.route("r2", AFTER)
    result = scene.read()
    assert result.exit_status == 0, result.snapshot
    assert scene.frontier() == Bound.through(100)
    assert scene.rows() == ALL
    assert (result.snapshot.scope.epoch, result.snapshot.scope.generation) == (2, "r2")


@pytest.mark.parametrize("names_pages", [True, False])
def test_the_sources_promise_lets_tokens_and_bounds_go_on(changing, names_pages):
    scene = half_read(changing, names_pages=names_pages)
    scene.api.route("r2", AFTER)
    scene.api.requests.clear()
    result = scene.read(membership=MOVES)
    assert (result.exit_status, scene.frontier()) == (0, Bound.through(100))
    assert scene.rows() == ALL
    assert all("cursor=" in asked for asked in scene.api.requests if "events" in asked), (
        "nothing is read again"
    )


@pytest.mark.parametrize("names_pages", [True, False])
def test_a_handoff_certificate_brings_what_is_in_transit(changing, names_pages):
    scene = half_read(changing, names_pages=names_pages)
    scene.api.now = 100
    scene.api.route("r2", {"a": [10, 60, 80, 95], "b": [20, 70, 90]})
    scene.api.handoffs["r1", "r2"] = ((85, True), [80])
    # What the new owner has below its token is given by the handoff alone.
    scene.api.routing["r2"]["a"].remove(80)
    result = scene.read(membership=HANDOFF)
    assert result.exit_status == 0, result.snapshot
    assert scene.frontier() == Bound.through(100)
    assert scene.rows() == sorted([*ALL, "e90", "e95"])


@pytest.mark.parametrize(
    ("handoff", "said"),
    [
        (None, ""),
        (((69, True), [80]), "less than partition"),
        ((None, [80]), "no handoff certificate"),
    ],
)
def test_a_handoff_that_proves_too_little_leaves_the_frontier_where_it_is(changing, handoff, said):
    scene = half_read(changing)
    scene.api.route("r2", AFTER)
    if handoff is not None:
        scene.api.handoffs["r1", "r2"] = handoff
    result = scene.read(membership=HANDOFF)
    assert (result.exit_status, scene.frontier()) == (3, Bound.through(70))
    with scene.store() as store:
        missing = store.cutover("changing", dry_run=True).missing
    assert "handoff_unproven" in [one.code for one in missing]
    if handoff is not None and handoff[0] is not None:
        assert any(said in one.detail for one in missing)


@pytest.mark.parametrize("names_pages", [True, False])
@pytest.mark.parametrize("at", range(1, 9))
def test_routing_that_changes_in_the_middle_of_a_run_slips_past_nobody(changing, names_pages, at):
    """Whatever request it changes ahead of, all is delivered once, and the frontier is no higher than what is proved."""
    scene = half_read(changing, names_pages=names_pages)
    scene.api.routing["r1"]["b"].append(80)
    asked = len(scene.api.requests)

    def change(target, number):
        if number == asked + at:
            scene.api.route("r2", AFTER)

    scene.api.before.append(change)
    result = scene.read()
    assert scene.rows() == ALL, result.snapshot
    assert scene.frontier() == Bound.through(100)


def test_a_generation_that_comes_back_is_refused_and_changes_nothing(changing):
    from gapless.errors import InvalidPage

    scene = half_read(changing)
    scene.api.route("r2", AFTER)
    scene.read(membership=HOLD)
    scene.api.generation = "r1"
    with pytest.raises(InvalidPage, match="comes back"):
        scene.read(membership=HOLD)
    assert scene.frontier() == Bound.through(70)


def test_a_run_counts_what_it_has_read_whatever_became_of_the_chains(changing):
    scene = half_read(changing)
    scene.api.route("r2", AFTER)
    result = scene.read()
    assert result.events == len(ALL), "four of them take the place of those that were there"
