"""Another routing generation: by each of its proofs, and not without one."""

import pytest

from gapless.errors import InvalidPage
from gapless.progress import Bound, ChainState
from gapless.store.records import Blocker, MembershipPolicy

NO_PROOF = MembershipPolicy(reading_again=False)
MOVES = MembershipPolicy(moves="an event never moves behind what was certified")
HANDOFF = MembershipPolicy(handoff=True)
AGAIN = MembershipPolicy()
TRANSIT = "in transit from r1 to r2"


def missing(result):
    return [(blocker.code, blocker.partition) for blocker in result.missing]


def tasks(observed):
    return sorted((row.partition, row.generation) for row in observed.tasks)


def files(scene):
    return sorted((row.partition, row.chain) for row in scene.store.promotions("orders"))


@pytest.fixture
def routed(scene):
    """Members a through 100 and b through 70 under r1, published through 70."""
    scene.start("r1", a=100, b=70)
    return scene


class TestWithoutAProof:
    def test_the_old_chains_stop_and_the_frontier_stands(self, routed):
        observed = routed.observe("a", "b", generation="r2", policy=NO_PROOF)
        assert observed.tasks == []
        before = routed.contents()
        result = routed.cutover()
        assert (result.accepted, result.generation, missing(result)) == (
            False,
            "r1",
            [("handoff_unproven", "")],
        )
        assert (
            result.missing[0].detail == "routing generation 'r2' follows 'r1' without a proof of what moved"
        )
        assert routed.contents() == before
        routed.bring("b", 100)
        assert routed.publish() is None

    def test_the_event_that_moves_between_two_snapshots_is_not_claimed(self, scene):
        """Event 80 is b's under r1. a certifies 100 under r1 without it, it moves to a, b certifies 100 under r2 without it."""
        scene.start("r1", a=70, b=70)
        old = scene.live("b")
        scene.bring("a", 100)
        scene.observe("a", "b", generation="r2", policy=AGAIN)
        scene.bring("b", 100, "r2")
        assert scene.store.chain(old.chain).bound == Bound.through(70), (
            "a page of r2 is no page of r1's chain"
        )
        assert missing(scene.cutover()) == [("not_joined", "a")]
        assert scene.publish() is None
        assert scene.frontier() == Bound.through(70)
        scene.bring("a", 100, "r2")  # with event 80
        assert scene.cutover().accepted
        assert scene.publish(2).frontier == Bound.through(100)

    def test_an_empty_list_under_another_generation_proves_nothing(self, routed):
        routed.observe(generation="r2", policy=AGAIN)
        assert missing(routed.cutover()) == [
            ("unsealed_member", "a"),
            ("unsealed_member", "b"),
            ("handoff_unproven", ""),
        ]

    def test_a_generation_that_comes_back_is_refused_and_changes_nothing(self, routed):
        routed.observe("a", "b", generation="r2", policy=AGAIN)
        routed.observe("a", "b", generation="r3", policy=AGAIN)
        before = routed.contents()
        for earlier in ("r1", "r2"):
            with pytest.raises(InvalidPage, match=f"'{earlier}' comes back after 'r3' had followed it"):
                routed.observe("a", "b", generation=earlier, policy=AGAIN)
        assert routed.contents() == before

    def test_in_a_new_lineage_every_generation_is_new(self, routed):
        routed.observe("a", "b", generation="r2", policy=AGAIN)
        routed.store.rebuild("orders", "the source goes back to r1")
        assert routed.observe("a", "b", generation="r1").epoch == 2


class TestByTheSourcesPromise:
    def test_tokens_and_bounds_go_on_under_the_new_generation(self, routed):
        before = routed.live("a")
        assert routed.observe("a", "b", generation="r2", policy=MOVES).tasks == []
        result = routed.cutover()
        assert (result.accepted, result.generation, result.entered, result.left) == (True, "r2", [], [])
        after = routed.live("a")
        assert (after.chain, after.page_token, after.sequence, after.bound, after.generation) == (
            before.chain,
            before.page_token,
            before.sequence,
            before.bound,
            "r2",
        )
        assert routed.epochs()[-1].proof["routing"] == {
            "from": "r1",
            "to": "r2",
            "by": "moves",
            "reason": MOVES.moves,
        }
        routed.bring("b", 90)
        assert routed.publish(2).frontier == Bound.through(90)

    def test_a_page_of_the_old_generation_is_lost(self, routed, kit):
        zombie = routed.live("b")
        routed.observe("a", "b", generation="r2", policy=MOVES)
        routed.cutover()
        assert routed.store.promote(kit.promotion(zombie, 100)) is None
        assert routed.store.hold(zombie, ChainState.HELD, Blocker("source_unavailable", "x")) is False
        assert routed.live("b").bound == Bound.through(70)

    def test_who_waited_for_the_cutover_is_opened_and_who_is_held_otherwise_is_not(self, routed):
        routed.store.hold(routed.live("a"), ChainState.HELD, Blocker("membership_changed", "r2"))
        routed.store.hold(routed.live("b"), ChainState.HELD, Blocker("unsettled_event", "x", "e", 80))
        routed.observe("a", "b", generation="r2", policy=MOVES)
        routed.cutover()
        assert (routed.live("a").state, routed.live("a").blocker) == (ChainState.OPEN, None)
        assert (routed.live("b").state, routed.live("b").blocker.code) == (ChainState.HELD, "unsettled_event")

    def test_newcomers_enter_by_their_own_proof_and_leavers_hold(self, routed):
        routed.observe("a", "n", generation="r2", policy=MOVES)
        result = routed.cutover()
        assert (result.accepted, missing(result)) == (True, [("unsealed_member", "b"), ("not_joined", "n")])
        routed.bring("n", 70)
        assert routed.cutover().entered == ["n"]

    def test_a_newcomer_of_the_old_generation_goes_on_too(self, routed):
        routed.observe("a", "b", "n", generation="r1", policy=MOVES)
        candidate = routed.bring("n", 40)
        routed.observe("a", "b", "n", generation="r2", policy=MOVES)
        assert routed.cutover().accepted
        after = routed.live("n")
        assert (after.chain, after.generation, after.is_candidate) == (candidate.chain, "r2", True)
        routed.bring("n", 70)
        assert routed.cutover().entered == ["n"]

    def test_who_has_left_is_not_brought_back_by_a_list_of_the_next_generation(self, routed):
        ends = {"seals": {"b": Bound.through(70)}, "successors": {"b": ()}}
        routed.observe("a", "b", generation="r1", **ends)
        assert routed.cutover().left == ["b"]
        routed.observe("a", "b", generation="r2", policy=MOVES, **ends)
        assert routed.cutover().accepted
        observed = routed.observe("a", "b", generation="r2", policy=MOVES, **ends)
        assert tasks(observed) == [("a", "r2")]

    def test_two_generations_one_after_the_other_are_one_step(self, routed):
        routed.observe("a", "b", generation="r2", policy=MOVES)
        routed.observe("a", "b", generation="r3", policy=MOVES)
        assert routed.cutover().generation == "r3"
        assert {row.generation for row in routed.store.snapshot("orders").chains} == {"r3"}

    def test_the_last_one_that_had_to_stay_leaves_for_a_newcomer_of_the_next_generation(self, routed):
        ends = {"seals": {"a": Bound.through(100), "b": Bound.through(70)}, "successors": {"a": (), "b": ()}}
        routed.observe("a", "b", generation="r1", **ends)
        assert routed.cutover().left == ["b"]
        routed.observe("n", generation="r2", policy=MOVES)
        routed.bring("n", 100)
        result = routed.cutover()
        assert (result.generation, result.entered, result.left) == ("r2", ["n"], ["a"])


class TestByItsHandoffCertificate:
    def test_it_needs_one_that_has_been_read_reaches_far_enough_and_is_drained(self, routed):
        observed = routed.observe("a", "b", generation="r2", policy=HANDOFF)
        assert tasks(observed) == [(TRANSIT, "r2")]
        result = routed.cutover()
        assert missing(result) == [("handoff_unproven", "")]
        assert result.missing[0].detail.endswith("no handoff certificate between them has been read")
        routed.bring(TRANSIT, 99)
        assert "covers through 99, less than partition a was promoted through: through 100" in (
            routed.cutover().missing[0].detail
        )
        routed.bring(TRANSIT, 100)
        assert routed.cutover().missing[0].detail.endswith("are not settled yet")
        routed.bring(TRANSIT, 100, end=True)
        result = routed.cutover()
        assert (result.accepted, result.generation) == (True, "r2")
        assert routed.epochs()[-1].proof["routing"]["by"] == "handoff"
        assert routed.epochs()[-1].proof["routing"]["complete"] == {"position": "100", "inclusive": True}
        assert routed.members_now() == ["a", "b"], "the events in transit are no member"
        assert TRANSIT in {partition for partition, _ in files(routed)}, "and they are in the data set"
        routed.bring("b", 90)
        assert routed.publish(2).frontier == Bound.through(90)

    def test_it_has_to_reach_the_last_position_that_was_promoted_though_no_certificate_did(self, routed):
        routed.bring("b", None, read_to=Bound.through(500))
        routed.observe("a", "b", generation="r2", policy=HANDOFF)
        routed.bring(TRANSIT, 400, end=True)
        assert "partition b was promoted through: through 500" in routed.cutover().missing[0].detail

    def test_one_that_falls_short_is_asked_for_anew(self, routed, kit):
        routed.observe("a", "b", generation="r2", policy=HANDOFF)
        short = routed.bring(TRANSIT, 80, end=True)
        again = {"policy": HANDOFF, "renew": False}
        listed = kit.assignment("a", "b", generation="r2")
        assert routed.store.observe("orders", listed, **again).tasks == []
        (task,) = routed.store.observe("orders", listed, policy=HANDOFF).tasks
        assert (task.partition, task.chain != short.chain, task.bound) == (TRANSIT, True, None)
        assert TRANSIT not in {partition for partition, _ in files(routed)}
        routed.bring(TRANSIT, 100, end=True)
        assert routed.cutover().accepted
        assert (TRANSIT, short.chain) not in files(routed)

    def test_one_between_other_generations_is_of_no_use(self, routed):
        routed.observe("a", "b", generation="r2", policy=HANDOFF)
        routed.bring(TRANSIT, 100, end=True)
        observed = routed.observe("a", "b", generation="r3", policy=HANDOFF)
        assert tasks(observed) == [("in transit from r1 to r3", "r3")]
        assert not routed.cutover().accepted
        routed.bring("in transit from r1 to r3", 100, end=True)
        assert routed.cutover().generation == "r3"
        assert "in transit from r1 to r2" not in {partition for partition, _ in files(routed)}

    def test_a_late_page_of_a_certificate_given_up_is_lost(self, routed, kit):
        routed.observe("a", "b", generation="r2", policy=HANDOFF)
        late = routed.live(TRANSIT)
        routed.observe("a", "b", generation="r3", policy=HANDOFF)
        assert routed.store.promote(kit.promotion(late, 100)) is None

    def test_one_first_seen_under_a_generation_between_is_read_anew(self, routed):
        """What was n's under r1, elsewhere under r2, and n's again under r3 lies behind its token, in transit for nobody."""
        routed.observe("a", "b", "n", generation="r2", policy=HANDOFF)
        routed.bring("n", 100, "r2")
        observed = routed.observe("a", "b", "n", generation="r3", policy=HANDOFF)
        assert tasks(observed) == [("in transit from r1 to r3", "r3"), ("n", "r3")]
        routed.bring("in transit from r1 to r3", 100, end=True)
        result = routed.cutover()
        assert (result.accepted, result.generation, result.entered) == (True, "r3", [])
        assert missing(result) == [("not_joined", "n")]
        assert [(row.partition, row.generation) for row in routed.store.snapshot("orders").chains] == [
            ("a", "r3"),
            ("b", "r3"),
            ("n", "r3"),
        ]
        routed.bring("n", 100, "r3")
        assert routed.cutover().entered == ["n"]

    def test_a_newcomer_does_not_hold_the_handoff(self, routed):
        routed.observe("a", "b", "n", generation="r2", policy=HANDOFF)
        routed.bring(TRANSIT, 100, end=True)
        routed.bring("n", 5000)
        result = routed.cutover()
        assert (result.accepted, result.entered) == (True, ["n"])

    def test_events_in_transit_count_though_the_last_member_leaves_by_the_same_step(self, routed):
        ends = {"seals": {"a": Bound.through(100), "b": Bound.through(70)}, "successors": {"a": (), "b": ()}}
        routed.observe("a", "b", generation="r1", **ends)
        routed.cutover()
        routed.observe("n", generation="r2", policy=HANDOFF)
        routed.bring(TRANSIT, 100, end=True)
        routed.bring("n", 100)
        result = routed.cutover()
        assert (result.generation, result.entered, result.left) == ("r2", ["n"], ["a"])
        routed.observe("n", generation="r2", policy=HANDOFF)
        assert TRANSIT in {partition for partition, _ in files(routed)}


class TestByReadingAgain:
    def test_the_new_chains_replace_the_old_ones_when_all_are_through_the_frontier(self, routed):
        old = {row.chain for row in routed.store.snapshot("orders").chains}
        observed = routed.observe("a", "b", generation="r2", policy=AGAIN)
        assert tasks(observed) == [("a", "r2"), ("b", "r2")]
        routed.bring("a", 70, "r2")
        routed.bring("b", 69, "r2")
        result = routed.cutover()
        assert (result.accepted, missing(result)) == (False, [("not_joined", "b")])
        assert {chain for _, chain in files(routed)} == old, "the data set is the old one's until then"
        routed.bring("b", 70, "r2")
        result = routed.cutover()
        assert (result.entered, result.replaced) == (["a", "b"], ["a", "b"])
        assert {chain for _, chain in files(routed)} & old == set(), "no event twice"
        assert [partition for partition, _ in files(routed)].count("a") == 1
        assert routed.frontier() == Bound.through(70)
        assert routed.epochs()[-1].proof["routing"] == {"from": "r1", "to": "r2", "by": "reading again"}

    def test_partitions_may_be_others_when_the_list_is_certified_through_the_frontier(self, routed):
        routed.observe("c", generation="r2", policy=AGAIN, list_bound=Bound.before(70))
        routed.bring("c", 70, "r2")
        assert missing(routed.cutover()) == [("unsealed_member", "a"), ("unsealed_member", "b")]
        routed.observe("c", generation="r2", policy=AGAIN, list_bound=Bound.through(70))
        result = routed.cutover()
        assert (result.entered, result.replaced) == (["c"], ["a", "b"])
        assert {partition for partition, _ in files(routed)} == {"c"}

    def test_an_old_member_that_ended_keeps_what_it_has(self, routed):
        ends = {"seals": {"b": Bound.through(70)}, "successors": {"b": ()}}
        routed.observe("a", "b", generation="r1", **ends)
        routed.observe("a", generation="r2", policy=AGAIN)
        routed.bring("a", 70, "r2")
        result = routed.cutover()
        assert (result.entered, result.left, result.replaced) == (["a"], ["b"], ["a"])
        assert {partition for partition, _ in files(routed)} == {"a", "b"}

    def test_whoever_had_left_under_a_name_that_is_read_again_is_replaced_too(self, routed):
        ends = {"seals": {"b": Bound.through(70)}, "successors": {"b": ()}}
        routed.observe("a", "b", generation="r1", **ends)
        assert routed.cutover().left == ["b"]
        observed = routed.observe("a", "b", generation="r2", policy=AGAIN, **ends)
        assert tasks(observed) == [("a", "r2"), ("b", "r2")]
        routed.bring("a", 70, "r2")
        routed.bring("b", 70, "r2")
        result = routed.cutover()
        assert (result.entered, result.left) == (["a", "b"], ["b"])
        assert [partition for partition, _ in files(routed)].count("b") == 1

    def test_candidates_of_a_generation_that_never_counted_are_dropped(self, routed):
        routed.observe("a", "b", generation="r2", policy=AGAIN)
        zombie = routed.bring("a", 70, "r2")
        observed = routed.observe("a", "b", generation="r3", policy=AGAIN)
        assert tasks(observed) == [("a", "r3"), ("b", "r3")]
        routed.bring("a", 70, "r3")
        routed.bring("b", 70, "r3")
        assert routed.cutover().generation == "r3"
        assert {row.generation for row in routed.store.snapshot("orders").chains} == {"r3"}
        assert routed.store.chain(zombie.chain).state is ChainState.SUPERSEDED
        assert len(files(routed)) == 2

    def test_a_candidate_seen_under_a_generation_in_between_holds_too(self, routed):
        routed.observe("a", "b", "x", generation="r2", policy=AGAIN)
        routed.observe("a", "b", generation="r3", policy=AGAIN)
        routed.bring("a", 70, "r3")
        routed.bring("b", 70, "r3")
        assert missing(routed.cutover()) == [("unsealed_member", "x")]

    def test_what_was_in_transit_once_is_not_in_the_data_set_twice(self, routed):
        routed.observe("a", "b", generation="r2", policy=HANDOFF)
        routed.bring(TRANSIT, 100, end=True)
        routed.cutover()
        routed.observe("a", "b", generation="r3", policy=AGAIN)
        routed.bring("a", 70, "r3")
        routed.bring("b", 70, "r3")
        assert routed.cutover().generation == "r3"
        assert {partition for partition, _ in files(routed)} == {"a", "b"}

    def test_what_was_in_transit_stays_where_it_may_be_of_one_that_left_and_keeps_what_it_has(self, routed):
        routed.observe("a", "b", generation="r2", policy=HANDOFF)
        routed.bring(TRANSIT, 100, end=True)
        routed.cutover()
        ends = {"seals": {"b": Bound.through(70)}, "successors": {"b": ()}}
        routed.observe("a", "b", generation="r2", policy=HANDOFF, **ends)
        routed.cutover()
        routed.observe("a", generation="r3", policy=AGAIN)
        routed.bring("a", 70, "r3")
        assert routed.cutover().generation == "r3"
        assert TRANSIT in {partition for partition, _ in files(routed)}

    def test_a_job_that_changes_its_mind_in_between_goes_by_what_it_says_now(self, routed):
        routed.observe("a", "b", generation="r2", policy=AGAIN)
        routed.bring("a", 50, "r2")
        routed.observe("a", "b", generation="r2", policy=MOVES)
        result = routed.cutover()
        assert (result.accepted, result.generation) == (True, "r2")
        assert routed.live("a").bound == Bound.through(100), "the member's own chain has gone on"
        assert len(routed.store.snapshot("orders").chains) == 2
