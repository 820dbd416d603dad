"""Observing the source's list: what it may change, and what it never does."""

import pytest

from gapless.errors import ForeignLineage, InvalidPage
from gapless.progress import Bound, ChainState


def partitions(rows):
    return sorted(row.partition for row in rows)


def test_the_first_list_freezes_epoch_one(scene):
    observed = scene.observe("a", "b", generation="r1")
    assert (observed.epoch, observed.observation, observed.scope.generation) == (1, 1, "r1")
    assert [(row.partition, row.epoch_in, row.generation) for row in observed.tasks] == [
        ("a", 1, "r1"),
        ("b", 1, "r1"),
    ]
    assert all(
        (row.bound, row.page_token, row.sequence, row.fencing_token) == (None, None, 0, 0)
        for row in observed.tasks
    )


def test_an_empty_first_list_freezes_nothing(scene):
    observed = scene.observe()
    assert (observed.epoch, observed.tasks) == (0, [])
    assert scene.observe("a").tasks[0].epoch_in == 1


def test_the_same_list_again_writes_nothing(scene):
    first = scene.observe("a", "b", seals={"a": Bound.through(9)}, list_bound=Bound.before(5))
    before = scene.contents()
    again = scene.observe("b", "a", seals={"a": Bound.through(9)}, list_bound=Bound.before(5))
    assert again.chains == first.chains
    assert scene.contents() == before


def test_a_newcomer_is_read_as_a_candidate_that_is_no_member(scene):
    scene.observe("a")
    observed = scene.observe("a", "n")
    assert observed.epoch == 1
    assert [(row.partition, row.epoch_in) for row in observed.tasks] == [("a", 1), ("n", None)]
    assert observed.tasks[1].page_token is None


def test_a_leaver_stays_a_member_and_holds_at_its_bound(scene):
    a, b = scene.members("a", "b")
    scene.advance(a, 100)
    scene.advance(b, 20)
    observed = scene.observe("a")
    assert [(row.partition, row.epoch_in, row.listed) for row in observed.tasks] == [("a", 1, 2), ("b", 1, 1)]
    assert scene.publish().frontier == Bound.through(20)


def test_a_candidate_that_vanishes_from_the_list_stays_open(scene):
    scene.observe("a")
    scene.observe("a", "n")
    observed = scene.observe("a")
    assert [(row.partition, row.epoch_in, row.listed) for row in observed.chains] == [
        ("a", 1, 3),
        ("n", None, 2),
    ]


def test_an_empty_later_list_removes_nobody_and_moves_nothing(scene):
    (row,) = scene.members("a")
    scene.advance(row, 10)
    before = scene.publish()
    observed = scene.observe()
    assert partitions(observed.chains) == ["a"]
    assert observed.scope.frontier == before.frontier


def test_under_another_routing_generation_the_old_chains_stop_and_the_new_ones_are_candidates(scene):
    scene.observe("a", "b", generation="r1")
    observed = scene.observe("a", "c", generation="r2")
    assert observed.scope.generation == "r1"
    assert [(row.partition, row.generation, row.epoch_in) for row in observed.tasks] == [
        ("a", "r2", None),
        ("c", "r2", None),
    ]
    assert len(observed.chains) == 4


def test_a_name_used_again_after_it_has_left_gets_a_chain_of_its_own(scene):
    (old,) = scene.members("a")
    scene.advance(old, 10)
    scene.sql("UPDATE gapless_chain SET epoch_out = 2, state = 'sealed'")
    (new,) = scene.observe("a").tasks
    assert new.chain != old.chain
    assert (new.bound, new.page_token, new.epoch_in) == (None, None, None)


def test_facts_of_the_list_are_kept_with_the_chain(scene):
    (row,) = scene.observe(
        "a",
        seals={"a": Bound.before(50)},
        successors={"a": ()},
        parents={"a": ("p", "q")},
        fields={"a": {"region": 7, "big": 2**80}},
    ).tasks
    assert (row.seal, row.successors, row.parents) == (Bound.before(50), (), ("p", "q"))
    assert row.fields == {"id": "a", "region": 7, "big": 2**80}


def test_silence_takes_no_fact_back_and_a_seal_never_goes_down(scene):
    scene.observe("a", seals={"a": Bound.through(50)}, successors={"a": ("s",)}, parents={"a": ()})
    (row,) = scene.observe("a").tasks
    assert (row.seal, row.successors, row.parents) == (Bound.through(50), ("s",), ())
    (row,) = scene.observe("a", seals={"a": Bound.before(50)}).tasks
    assert row.seal == Bound.through(50)
    (row,) = scene.observe("a", seals={"a": Bound.through(60)}, successors={"a": ("s", "t")}).tasks
    assert (row.seal, row.successors) == (Bound.through(60), ("s", "t"))


def test_a_changed_fact_is_a_new_observation(scene):
    first = scene.observe("a", "b")
    second = scene.observe("a", "b", seals={"a": Bound.through(9)})
    assert second.observation == first.observation + 1
    assert [row.listed for row in second.tasks] == [2, 2]


def test_a_chain_that_has_ended_or_lies_in_a_gap_is_no_task(scene):
    a, b = scene.members("a", "b")
    scene.advance(a, 10, end=True)
    scene.sql("UPDATE gapless_chain SET state = 'gap' WHERE chain = :chain", chain=b.chain)
    observed = scene.observe("a", "b", "c")
    assert partitions(observed.tasks) == ["c"]
    assert [row.state for row in observed.chains] == [ChainState.ENDED, ChainState.GAP, ChainState.OPEN]


def test_a_list_that_names_a_partition_twice_is_refused_and_changes_nothing(scene):
    scene.observe("a")
    before = scene.contents()
    with pytest.raises(InvalidPage, match="'b' twice"):
        scene.observe("a", "b", "b")
    assert scene.contents() == before


def test_a_run_of_another_lineage_is_refused_and_changes_nothing(scene, kit):
    scene.observe("a")
    scene.sql("UPDATE gapless_scope SET lineage = 2")
    before = scene.contents()
    with pytest.raises(ForeignLineage, match="is in lineage 2, this run works in 1"):
        scene.store.observe("orders", kit.assignment("a", "b"), lineage=1)
    assert scene.contents() == before


class TestCap:
    """How far a publish may go, given what is known of the list."""

    def test_a_frozen_list_has_no_cap(self, scene):
        observed = scene.observe("a")
        assert (observed.scope.capped, observed.scope.list_certified) == (False, False)

    def test_a_certified_list_caps_the_frontier_at_its_certificate(self, scene):
        scene.observe("a", list_bound=Bound.before(1200))
        (row,) = scene.members("a")
        scene.advance(row, 1300)
        moved = scene.publish()
        assert (moved.frontier, moved.list_certified) == (Bound.before(1200), True)

    def test_the_certificate_rises_without_a_new_epoch_and_never_falls(self, scene):
        scene.observe("a", list_bound=Bound.before(10))
        assert scene.observe("a", list_bound=Bound.before(20)).scope.cap == Bound.before(20)
        observed = scene.observe("a", list_bound=Bound.before(15))
        assert (observed.scope.cap, observed.epoch, observed.observation) == (Bound.before(20), 1, 1)

    def test_an_unproven_newcomer_holds_a_frozen_list_where_the_frontier_stands(self, scene):
        (row,) = scene.members("a")
        row = scene.advance(row, 10)
        scene.publish()
        observed = scene.observe("a", "n")
        assert (observed.scope.capped, observed.scope.cap) == (True, Bound.through(10))
        scene.advance(row, 20)
        assert scene.publish() is None
        assert scene.frontier() == Bound.through(10)

    def test_before_anything_is_published_a_newcomer_withholds_everything(self, scene):
        (row,) = scene.members("a")
        scene.advance(row, 10)
        observed = scene.observe("a", "n")
        assert (observed.scope.capped, observed.scope.cap) == (True, None)
        assert scene.publish() is None

    def test_another_generation_holds_a_frozen_list_even_where_it_lists_nobody(self, scene):
        (row,) = scene.members("a")
        row = scene.advance(row, 10)
        scene.publish()
        scene.observe(generation="r2")
        scene.advance(row, 20)
        assert scene.publish() is None

    def test_a_leaver_alone_sets_no_cap(self, scene):
        scene.observe("a", "b")
        assert scene.observe("a").scope.capped is False

    def test_a_newcomer_in_a_certified_list_does_not_let_the_frontier_pass_the_last_certificate(self, scene):
        """P2 came to be at 1200 and holds an event at 1201, unread; the list that names it is certified through 1400."""
        scene.observe("p0", "p1", list_bound=Bound.before(1200))
        p0, p1 = scene.members("p0", "p1")
        scene.advance(p0, 1300)
        scene.advance(p1, 1250)
        scene.publish()
        observed = scene.observe("p0", "p1", "p2", list_bound=Bound.before(1400))
        assert observed.scope.cap == Bound.before(1200)
        assert scene.publish() is None
        assert scene.frontier() == Bound.before(1200)

    def test_a_list_that_becomes_certified_holds_the_frontier_until_the_certificate_has_caught_up(
        self, scene
    ):
        (row,) = scene.members("a")
        row = scene.advance(row, 10)
        scene.publish()
        behind = scene.observe("a", list_bound=Bound.before(5)).scope
        assert (behind.cap, behind.list_certified) == (Bound.through(10), False)
        caught_up = scene.observe("a", list_bound=Bound.before(15)).scope
        assert (caught_up.cap, caught_up.list_certified) == (Bound.before(15), True)


def test_many_may_observe_at_once_and_every_partition_has_one_live_chain(scene, kit):
    names = [f"p{number}" for number in range(6)]
    lists = [kit.assignment(*names[start : start + 4]) for start in range(3)] * 3
    stores = [scene.another() for _ in lists]
    kit.at_once(
        [
            lambda s=store, a=listed: s.observe("orders", a)
            for store, listed in zip(stores, lists, strict=True)
        ]
    )
    scope = scene.store.scope("orders")
    chains = scene.store.snapshot("orders").chains
    assert sorted(row.partition for row in chains) == sorted(set(names))
    assert scope.epoch == 1
    members = [row.partition for row in chains if row.epoch_in == 1]
    assert len(members) == 4, "one list alone has frozen the epoch"
    assert scope.capped, "whoever came later is unproven"


def test_a_list_of_thousands_is_observed_in_statements_of_bounded_size(scene):
    names = [f"p{number}" for number in range(6000)]
    scene.observe(*names[:5500])
    observed = scene.observe(*names)
    assert sum(row.epoch_in == 1 for row in observed.chains) == 5500
    assert {row.listed for row in observed.chains} == {2}


class TestAListThatIsOlderThanTheLatestCutover:
    """Two looks at once: one is slow, and is noted after the other has let `b` leave."""

    @pytest.fixture
    def left(self, scene):
        scene.start("r1", a=100, b=70)
        scene.observe("a", "b", generation="r1", seals={"b": Bound.through(70)}, successors={"b": ()})
        assert scene.cutover().left == ["b"]
        return scene

    def test_it_is_not_taken_note_of(self, left, kit):
        before = left.contents()
        late = left.store.observe("orders", kit.assignment("a", "b", generation="r1"), epoch=1)
        assert partitions(late.tasks) == ["a"]
        assert left.contents() == before

    def test_one_that_is_not_is(self, left, kit):
        again = left.store.observe("orders", kit.assignment("a", "b", generation="r1"), epoch=2)
        assert partitions(again.tasks) == ["a", "b"], "an id that is used again is a newcomer"
