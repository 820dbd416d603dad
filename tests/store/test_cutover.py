"""The cutover under one routing generation: who enters, who leaves, who holds, and what a refusal names."""

import pytest

from gapless.errors import UnknownScope
from gapless.progress import Bound, ChainState


def missing(result):
    return [(blocker.code, blocker.partition) for blocker in result.missing]


def seals(**ends):
    return {name: Bound.through(position) for name, position in ends.items()}


class TestEntering:
    def test_a_newcomer_behind_the_frontier_stays_out_and_is_named(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", 99)
        before = scene.contents()
        result = scene.cutover()
        assert (result.accepted, result.from_epoch, result.to_epoch) == (False, 1, 2)
        assert missing(result) == [("not_joined", "n")]
        assert result.missing[0].detail == "it is complete: through 99; published: through 100"
        assert scene.contents() == before, "a refusal changes nothing"

    def test_it_enters_when_it_is_complete_through_the_frontier_which_does_not_move_by_it(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("a", 150)
        scene.bring("n", 100)
        result = scene.cutover()
        assert (result.accepted, result.entered, result.left, result.missing) == (True, ["n"], [], ())
        scope = scene.store.scope("orders")
        assert (scope.epoch, scope.frontier, scope.capped, scope.changing) == (
            2,
            Bound.through(100),
            False,
            False,
        )
        assert scene.live("n").epoch_in == 2
        scene.bring("n", 120)
        assert scene.publish(1) is None, "nobody publishes under the epoch that was"
        assert scene.publish(2).frontier == Bound.through(120), "its bound counts from here on"

    def test_a_bound_that_excludes_the_frontiers_own_position_is_behind_it(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", None, bound=Bound.before(100))
        assert missing(scene.cutover()) == [("not_joined", "n")]

    def test_one_whose_first_page_is_empty_enters_by_its_certificate(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", 100, events=0, rows=0, path=None)
        assert scene.cutover().entered == ["n"]

    def test_pages_without_a_certificate_bring_nobody_in(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", None, read_to=Bound.through(500))
        assert missing(scene.cutover()) == [("not_joined", "n")]

    def test_before_anything_is_published_it_enters_at_once_and_withholds(self, scene):
        scene.observe("a")
        scene.observe("a", "n")
        scene.bring("a", 100)
        assert scene.publish() is None
        assert scene.cutover().entered == ["n"]
        assert scene.publish(2) is None, "it has no bound yet"
        scene.bring("n", 30)
        assert scene.publish(2).frontier == Bound.through(30)

    def test_who_is_proved_does_not_wait_for_who_is_not(self, scene):
        scene.start(a=100)
        scene.observe("a", "n", "slow")
        scene.bring("n", 100)
        scene.bring("slow", 10)
        scene.bring("a", 200)
        result = scene.cutover()
        assert (result.entered, missing(result)) == (["n"], [("not_joined", "slow")])
        assert scene.publish(2) is None, "the list names one who has not been read"
        scene.bring("n", 200)
        assert scene.publish(2) is None
        scene.bring("slow", 100)
        assert scene.cutover().entered == ["slow"]
        assert scene.publish(3) is None
        scene.bring("slow", 200)
        assert scene.publish(3).frontier == Bound.through(200)

    def test_its_pages_are_in_the_data_set_from_then_on(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", 100)
        assert {row.partition for row in scene.store.promotions("orders")} == {"a"}
        scene.cutover()
        assert {row.partition for row in scene.store.promotions("orders")} == {"a", "n"}

    def test_a_candidate_that_vanishes_holds_the_frontier_where_it_stands(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", 100)
        scene.observe("a")
        scene.bring("a", 200)
        result = scene.cutover()
        assert (result.accepted, missing(result)) == (False, [("unsealed_member", "n")])
        assert scene.publish() is None

    def test_a_vanished_candidate_keeps_no_other_newcomer_out(self, scene):
        scene.start(a=100)
        scene.observe("a", "gone")
        scene.observe("a", "n")
        scene.bring("n", 100)
        result = scene.cutover()
        assert (result.entered, missing(result)) == (["n"], [("unsealed_member", "gone")])
        scene.bring("a", 200)
        scene.bring("n", 200)
        assert scene.publish(2) is None, "whoever was seen once must enter or leave in order"

    def test_a_vanished_candidate_that_is_listed_again_goes_on_where_it_was(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        before = scene.bring("n", 60)
        scene.observe("a")
        scene.observe("a", "n")
        assert scene.live("n").chain == before.chain
        scene.bring("n", 100)
        assert scene.cutover().entered == ["n"]


class TestLeaving:
    def test_without_a_certified_end_nobody_leaves(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a")
        result = scene.cutover()
        assert missing(result) == [("unsealed_member", "b")]
        assert result.missing[0].detail == "it is not listed, and nobody stated where it ends"
        scene.bring("a", 200)
        assert scene.publish() is None
        assert scene.frontier() == Bound.through(20)

    def test_it_leaves_when_it_is_drained_through_its_end(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals=seals(b=50), successors={"b": ()})
        result = scene.cutover()
        assert missing(result) == [("unsealed_member", "b")]
        assert result.missing[0].detail == "it ends at through 50, and has been promoted through 20 only"
        scene.bring("b", 50)
        assert scene.cutover().left == ["b"]
        assert scene.members_now() == ["a"]
        assert scene.publish(2).frontier == Bound.through(100)

    def test_an_end_that_includes_its_position_is_not_reached_by_a_bound_that_does_not(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals=seals(b=50), successors={"b": ()})
        scene.bring("b", None, bound=Bound.before(50))
        assert not scene.cutover().accepted
        scene.bring("b", None, bound=Bound.before(51))
        assert scene.cutover().left == ["b"]

    def test_unknown_successors_hold_it_and_none_let_it_go(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals=seals(b=20))
        result = scene.cutover()
        assert missing(result) == [("missing_successor", "b")]
        assert result.missing[0].detail == "the successors of b are unknown"
        scene.observe("a", "b", seals=seals(b=20), successors={"b": ()})
        assert scene.cutover().left == ["b"]

    def test_a_sealed_partition_that_is_no_longer_listed_leaves_all_the_same(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals=seals(b=20), successors={"b": ()})
        scene.observe("a")
        assert scene.cutover().left == ["b"]

    def test_who_has_left_and_is_listed_still_is_not_brought_back(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals=seals(b=20), successors={"b": ()})
        scene.cutover()
        before = scene.contents()
        observed = scene.observe("a", "b", seals=seals(b=20), successors={"b": ()})
        assert [row.partition for row in observed.chains] == ["a"]
        assert scene.contents() == before
        assert not scene.cutover().accepted

    def test_its_pages_stay_in_the_data_set(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals=seals(b=20), successors={"b": ()})
        scene.cutover()
        assert {row.partition for row in scene.store.promotions("orders")} == {"a", "b"}

    def test_it_can_never_be_promoted_held_or_settled_again(self, scene, kit):
        scene.start(a=100, b=20)
        zombie = scene.live("b")
        scene.observe("a", "b", seals=seals(b=20), successors={"b": ()})
        scene.cutover()
        before = scene.contents()
        assert scene.store.promote(kit.promotion(zombie, 30)) is None
        assert scene.store.record_receipts(zombie, {"e": "delivered"}) is False
        assert scene.store.restart(zombie, "since", "410") is None
        assert scene.contents() == before
        assert scene.store.chain(zombie.chain).state is ChainState.SEALED

    def test_where_all_would_leave_the_furthest_stays_until_somebody_comes(self, scene):
        """A membership of nobody claims nothing: what the last one is proved through would never be published."""
        scene.start(a=100, b=20)
        scene.bring("b", 150)
        ends = {"seals": seals(a=100, b=150), "successors": {"a": (), "b": ()}}
        scene.observe("a", "b", **ends)
        assert scene.cutover().left == ["a"]
        assert not scene.cutover().accepted
        assert scene.publish(2).frontier == Bound.through(150)
        scene.observe("a", "b", "n", **ends)
        scene.bring("n", 150)
        result = scene.cutover()
        assert (result.entered, result.left, scene.members_now()) == (["n"], ["b"], ["n"])

    def test_two_that_carry_on_from_each_other_never_leave(self, scene):
        """Stated one after the other: each list alone is sound."""
        scene.start(a=100, b=100, c=100)
        scene.observe("a", "b", "c", seals=seals(a=100), successors={"a": ("b",)})
        scene.sql(
            "UPDATE gapless_chain SET seal = (SELECT frontier FROM gapless_scope), successors = '[\"a\"]'"
            " WHERE partition = 'b'"
        )
        result = scene.cutover()
        assert missing(result) == [("missing_successor", "a"), ("missing_successor", "b")]


class TestTheList:
    """How far the list itself is certified, and how the cap follows a cutover."""

    def test_an_empty_list_moves_nobody(self, scene):
        scene.start(a=100)
        scene.observe()
        assert missing(scene.cutover()) == [("unsealed_member", "a")]

    def test_a_list_that_is_a_page_short_holds_and_the_next_whole_one_goes_on(self, scene):
        scene.start(a=100, b=100)
        scene.observe("a")
        assert missing(scene.cutover()) == [("unsealed_member", "b")]
        assert scene.store.scope("orders").changing
        scene.observe("a", "b")
        assert not scene.store.scope("orders").changing
        result = scene.cutover()
        assert (result.accepted, result.missing) == (False, ())
        scene.bring("a", 200)
        scene.bring("b", 200)
        assert scene.publish().frontier == Bound.through(200)

    def test_a_certified_list_lifts_the_cap_to_its_certificate_by_the_cutover(self, scene):
        scene.observe("a", list_bound=Bound.before(1200))
        scene.bring("a", 1300)
        scene.publish()
        scene.observe("a", "n", list_bound=Bound.before(1400))
        assert scene.store.scope("orders").cap == Bound.before(1200)
        scene.bring("n", 1260)
        assert scene.cutover().accepted
        scope = scene.store.scope("orders")
        assert (scope.cap, scope.list_certified) == (Bound.before(1400), True)
        assert scene.publish(2).frontier == Bound.through(1260)

    def test_while_one_newcomer_is_left_the_certificate_lifts_nothing(self, scene):
        scene.observe("a", list_bound=Bound.before(1200))
        scene.bring("a", 1300)
        scene.publish()
        scene.observe("a", "n", "m", list_bound=Bound.before(1400))
        scene.bring("n", 1260)
        assert scene.cutover().entered == ["n"]
        assert scene.store.scope("orders").cap == Bound.before(1200)

    def test_a_certified_list_that_stops_to_be_one_leaves_the_last_certificate(self, scene):
        scene.observe("a", list_bound=Bound.before(50))
        scene.bring("a", 100)
        scene.publish()
        scene.observe("a", "n")
        scene.bring("n", 100)
        scene.cutover()
        assert scene.publish(2) is None
        scene.observe("a", "n", list_bound=Bound.before(90))
        assert scene.publish(2).frontier == Bound.before(90)


class TestDeciding:
    def test_a_dry_run_tells_the_same_and_writes_nothing(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a", "b", "n", seals=seals(b=20), successors={"b": ()})
        scene.bring("n", 100)
        before = scene.contents()
        told = scene.cutover(dry_run=True)
        assert scene.contents() == before
        assert told == scene.cutover()
        assert told.accepted

    def test_a_reader_may_ask_for_it_too(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        with scene.another(readonly=True) as reader:
            assert missing(reader.cutover("orders", dry_run=True)) == [("not_joined", "n")]

    def test_where_the_list_is_what_the_epoch_is_made_of_there_is_nothing_to_do(self, scene):
        scene.start(a=100)
        result = scene.cutover()
        assert (result.accepted, result.missing) == (False, ())

    def test_before_any_list_was_frozen_it_is_refused(self, scene):
        assert missing(scene.cutover()) == [("not_started", "")]

    def test_an_unknown_scope_is_an_error(self, scene):
        with pytest.raises(UnknownScope):
            scene.store.cutover("nobody")
