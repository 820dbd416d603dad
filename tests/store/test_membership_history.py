"""What the store keeps of how membership moved: epochs with their proofs, every list that differed, steps of the frontier."""

import sqlalchemy as sa

from gapless.progress import Bound
from gapless.store import schema


def observations(scene):
    column = schema.observation.c
    with scene.connection() as connection:
        rows = connection.execute(sa.select(schema.observation).order_by(column.observation)).mappings()
        return [(row["observation"], row["generation"], row["partitions"], row["lineage"]) for row in rows]


def through(position):
    return {"position": str(position), "inclusive": True}


def test_an_epochs_proof_says_who_entered_and_left_and_by_what(scene):
    scene.start(a=100, b=20)
    scene.observe("a", "b", "n", seals={"b": Bound.through(20)}, successors={"b": ("n",)})
    old, new = scene.live("b"), scene.bring("n", 30)
    scene.clock.sleep(60)
    scene.cutover()
    first, second = scene.epochs()
    assert (first.epoch, first.proof, first.frontier) == (1, {"by": "first list", "members": 2}, None)
    assert (second.epoch, second.frontier, second.basis) == (2, Bound.through(20), "certified")
    assert second.opened_at == scene.clock.now()
    proof = {key: value for key, value in second.proof.items() if key != "attempt"}
    assert proof == {
        "by": "cutover",
        "observation": 2,
        "entered": {str(new.chain): through(30)},
        "left": {str(old.chain): {"seal": through(20), "by": "source", "successors": ["n"]}},
        "replaced": [],
        "dropped": [],
    }


def test_epochs_are_numbered_without_a_gap_also_over_refusals_and_a_rebuild(scene):
    scene.start(a=10)
    for number in range(3):
        scene.observe("a", *(f"n{earlier}" for earlier in range(number + 1)))
        assert not scene.cutover().accepted
        scene.bring(f"n{number}", 10)
        assert scene.cutover().to_epoch == number + 2
    scene.store.rebuild("orders", "anew")
    scene.observe("a")
    scene.observe("a", "m")
    assert scene.cutover().accepted
    assert [(row.lineage, row.epoch) for row in scene.epochs()] == [
        (1, 1),
        (1, 2),
        (1, 3),
        (1, 4),
        (2, 5),
        (2, 6),
    ]


def test_the_members_of_every_epoch_can_be_told_from_the_chains(scene):
    scene.start(a=10, b=10)
    scene.observe("a", "b", "n")
    scene.bring("n", 10)
    scene.cutover()
    scene.observe("a", "n", "b", seals={"a": Bound.through(10)}, successors={"a": ()})
    scene.cutover()
    column = schema.chain.c
    found = {}
    with scene.connection() as connection:
        for epoch in (1, 2, 3):
            members = sa.select(column.partition).where(
                column.epoch_in <= epoch, sa.or_(column.epoch_out.is_(None), column.epoch_out > epoch)
            )
            found[epoch] = sorted(connection.execute(members).scalars())
    assert found == {1: ["a", "b"], 2: ["a", "b", "n"], 3: ["b", "n"]}


def test_a_list_is_kept_once_for_every_time_it_differed(scene):
    scene.observe("a", generation="r1")
    scene.observe("a", generation="r1")
    scene.observe("a", "b", generation="r1")
    scene.observe(generation="r2")
    scene.store.rebuild("orders", "anew")
    scene.observe("a", generation="r1")
    assert observations(scene) == [(1, "r1", 1, 1), (2, "r1", 2, 1), (3, "r2", 0, 1), (4, "r1", 1, 2)]


def test_of_a_list_that_did_not_differ_the_highest_certificate_is_kept(scene):
    for position in (10, 30, 20):
        scene.observe("a", list_bound=Bound.before(position))
    with scene.connection() as connection:
        (bound,) = connection.execute(sa.select(schema.observation.c.list_bound)).scalars()
    domain = scene.store.scope("orders").domain
    assert domain.from_key(bound) == Bound.before(30)


def test_the_frontier_is_at_or_above_every_epochs_own_and_below_all_that_entered(scene):
    """What an audit goes by, over a history of several changes."""
    scene.start(a=10, b=10)
    position = 10
    for number in range(4):
        names = ["a", "b", *(f"n{earlier}" for earlier in range(number + 1))]
        scene.observe(*names)
        position += 10
        for name in names:
            scene.bring(name, position)
        scene.cutover()
        scene.publish(number + 2)
    domain = scene.store.scope("orders").domain
    epochs = scene.epochs()
    frontiers = [domain.key(row.frontier) for row in epochs]
    assert frontiers == sorted(frontiers)
    for row in epochs[1:]:
        for entered in row.proof["entered"].values():
            assert Bound(int(entered["position"]), entered["inclusive"]) >= row.frontier
    assert scene.frontier() == Bound.through(50)


def test_nothing_of_a_history_is_ever_rewritten_by_what_comes_after(scene):
    scene.start(a=10)
    scene.observe("a", "n")
    scene.bring("n", 10)
    scene.cutover()
    before = scene.contents()
    scene.observe("a", "n", "m")
    scene.bring("m", 10)
    scene.cutover()
    scene.store.rebuild("orders", "anew")
    after = scene.contents()
    for table in ("epoch", "observation", "promotion", "frontier_history"):
        assert set(map(repr, before[table])) <= set(map(repr, after[table])), table
