"""What is explained of a list that has changed: who is to enter, who is to leave, and what of the routing is unproven."""

from typing import Any

import pytest
from snapshots import at, candidate, held, member, scope, snapshot

from gapless.explain import Holding, explain
from gapless.membership_change import change_of
from gapless.progress import Bound, ChainState
from gapless.reading import Reached, waited_for
from gapless.store.records import TRANSIT, Blocker, ChainRow, FrontierRow, MembershipPolicy, Snapshot

HOLD = MembershipPolicy(on_change="hold")
AGAIN = MembershipPolicy()
MOVES = MembershipPolicy(moves="it never moves an event behind a certificate")
HANDOFF = MembershipPolicy(handoff=True)
NO_PROOF = MembershipPolicy(reading_again=False)


def codes(found: Snapshot) -> dict[str, str]:
    return {partition: blocker.code for partition, blocker in explain(found).blockers}


def withheld(found: Snapshot) -> tuple[str, str] | None:
    blocker = explain(found).withheld
    return None if blocker is None else (blocker.code, blocker.hint)


def holding(found: Snapshot, partition: str) -> Holding:
    (one,) = [held for held in explain(found).holding if held.row.partition == partition]
    return one


def capped(frontier: int, **changes: Any) -> FrontierRow:
    """A frozen list with a newcomer or another generation in sight: the frontier stands."""
    return scope(frontier, cap=at(frontier), capped=True, **changes)


def again(partition: str, bound: int | None = None, **changes: Any) -> ChainRow:
    """A candidate of generation r2."""
    return candidate(partition, bound, generation="r2", chain=hash(partition) + 1, listed=2, **changes)


def rerouted(policy: MembershipPolicy, *chains: ChainRow, **changes: Any) -> Snapshot:
    """Member `a` of generation r1, complete through 100, under a list of generation r2."""
    now = capped(100, observation=2, observed_generation="r2", membership=policy)
    listed = 1 if any(row.partition == "a" for row in chains) else 2
    return snapshot(now, member("a", 100, listed=listed), *chains, **changes)


def transit(bound: int | None = None, **changes: Any) -> ChainRow:
    """The chain of the events in transit, certified through `bound`."""
    fields = {"from": "r1", "to": "r2"}
    return candidate(
        "in transit from r1 to r2", bound, kind=TRANSIT, fields=fields, generation="r2", **changes
    )


class TestNewcomers:
    def test_one_that_is_not_complete_has_not_joined_and_is_waited_for(self) -> None:
        found = snapshot(capped(100), member("a", 100), candidate("c", 40))
        one = holding(found, "c")
        assert (one.blocker.code, one.blocker.hint) == (
            "not_joined",
            "it is complete: through 40; published: through 100",
        )
        assert one.waits_for_time_alone
        assert one.command == "gapless backfill JOB"
        assert withheld(found) == (
            "not_joined",
            "partition c: it is complete: through 40; published: through 100",
        )

    def test_one_that_no_page_has_come_of_has_not_joined(self) -> None:
        found = snapshot(capped(100), member("a", 100), candidate("c", fencing_token=0))
        assert holding(found, "c").blocker.hint == "it is complete: nothing; published: through 100"

    def test_one_whose_source_ended_short_of_the_frontier_needs_somebody(self) -> None:
        found = snapshot(capped(100), member("a", 100), candidate("c", 40, state=ChainState.ENDED))
        assert not holding(found, "c").waits_for_time_alone
        assert not explain(found).by_itself

    def test_one_behind_a_list_certified_further_holds_only_itself(self) -> None:
        now = scope(100, cap=Bound.through(200), capped=True, list_certified=True)
        found = snapshot(now, member("a", 100), candidate("c", 40))
        assert codes(found) == {"c": "not_joined"}
        assert withheld(found) is None

    def test_one_that_is_complete_waits_for_the_cutover_of_a_run(self) -> None:
        found = snapshot(capped(100), member("a", 100), candidate("c", 100))
        one = holding(found, "c")
        assert (one.blocker.code, one.command, one.waits_for_time_alone) == (
            "membership_changed",
            "gapless epoch cutover",
            True,
        )
        assert withheld(found) == (
            "membership_changed",
            "the source's list has newcomers; everything is proved: the next cutover of a run takes it in",
        )

    def test_one_that_is_complete_waits_for_an_operator_where_the_job_holds(self) -> None:
        found = snapshot(capped(100, membership=HOLD), member("a", 100), candidate("c", 100))
        assert not holding(found, "c").waits_for_time_alone
        assert holding(found, "c").command == "gapless epoch cutover"
        assert "the job lets no run cut over: `gapless epoch cutover` does" in withheld(found)[1]
        assert waited_for(found, Bound.through(150)).reached is Reached.BLOCKED

    def test_one_that_has_vanished_needs_an_end(self) -> None:
        now = capped(100, observation=2)
        found = snapshot(now, member("a", 100, listed=2), candidate("c", 100))
        assert codes(found) == {"c": "unsealed_member"}
        assert withheld(found)[0] == "unsealed_member"

    def test_one_whose_parent_has_not_ended_is_named_with_it(self) -> None:
        found = snapshot(capped(100), member("a", 100), candidate("c", 100, parents=("a",)))
        assert holding(found, "c").blocker.hint == "its parent a has not ended"

    def test_of_several_the_one_that_nobody_reads_any_more_is_what_withholds(self) -> None:
        ended = candidate("d", 40, state=ChainState.ENDED)
        found = snapshot(capped(100), member("a", 100), candidate("c", 40), ended)
        assert withheld(found)[1].startswith("partition d: ")


class TestLeavers:
    def test_a_member_that_is_no_longer_listed_must_be_sealed_to_leave(self) -> None:
        found = snapshot(scope(100, observation=2), member("-a b", 100), member("b", 200, listed=2))
        one = holding(found, "-a b")
        assert one.blocker.code == "unsealed_member"
        assert one.command == "gapless epoch seal --at ... --reason ... -- '-a b'"
        assert not one.waits_for_time_alone
        assert withheld(found)[0] == "unsealed_member"

    @pytest.mark.parametrize("successors", [None, ("z",)])
    def test_one_that_has_ended_needs_its_successors(self, successors: tuple[str, ...] | None) -> None:
        found = snapshot(scope(100), member("b", 200), self.sealed("a", 100, successors))
        one = holding(found, "a")
        assert one.blocker.code == "missing_successor"
        assert one.command == "gapless epoch show"
        assert not one.waits_for_time_alone

    def test_successors_that_are_being_read_are_waited_for(self) -> None:
        found = snapshot(
            capped(100), member("b", 200), self.sealed("a", 100, ("c",)), candidate("c", 40, parents=("a",))
        )
        assert codes(found) == {"a": "missing_successor", "c": "not_joined"}
        assert holding(found, "a").waits_for_time_alone
        assert waited_for(found, Bound.through(150)).reached is Reached.NOT_YET

    @pytest.mark.parametrize("successors", [(), ("b",)])
    def test_one_that_has_ended_in_order_waits_for_the_cutover(self, successors: tuple[str, ...]) -> None:
        found = snapshot(scope(100), member("b", 200), self.sealed("a", 100, successors))
        one = holding(found, "a")
        assert (one.blocker.code, one.command) == ("membership_changed", "gapless epoch cutover")
        assert one.waits_for_time_alone
        assert withheld(found)[0] == "membership_changed"

    def test_a_successor_that_has_left_in_order_is_accounted_for(self) -> None:
        rows = (member("b", 200), self.sealed("a", 100, ("c",)))
        assert codes(snapshot(scope(100), *rows)) == {"a": "missing_successor"}
        gone = snapshot(scope(100), *rows, departed=frozenset({"c"}))
        assert codes(gone) == {"a": "membership_changed"}

    def test_one_that_is_read_towards_its_end_holds_nothing(self) -> None:
        found = snapshot(scope(40), member("b", 200), member("a", 40, seal=at(100), successors=()))
        assert explain(found).settled

    def test_one_whose_pages_ended_before_its_seal_says_so(self) -> None:
        short = member("a", 40, seal=at(100), successors=(), state=ChainState.ENDED)
        one = holding(snapshot(scope(40), member("b", 200), short), "a")
        assert (one.blocker.code, one.blocker.hint) == (
            "unsealed_member",
            "it ends at through 100, and has been promoted through 40 only",
        )
        assert one.command is None

    def sealed(self, partition: str, end: int, successors: tuple[str, ...] | None) -> ChainRow:
        return member(partition, end, seal=at(end), state=ChainState.ENDED, successors=successors)


class TestChangedRouting:
    def test_without_a_proof_the_handoff_is_what_is_missing(self) -> None:
        found = rerouted(NO_PROOF)
        assert withheld(found) == (
            "handoff_unproven",
            "routing generation 'r2' follows 'r1' without a proof of what moved",
        )
        one = holding(found, "a")
        assert one.blocker.code == "membership_changed"
        assert one.blocker.hint == (
            "the source now routes under generation 'r2'; this chain is of 'r1', and is read no further"
        )
        assert one.command == "gapless epoch show"
        assert waited_for(found, Bound.through(150)).blocker == explain(found).withheld
        assert waited_for(found, Bound.through(150)).reached is Reached.BLOCKED

    def test_read_again_the_old_chain_stops_and_the_new_one_has_not_joined(self) -> None:
        found = rerouted(AGAIN, again("a", 40))
        assert [(one.row.generation, one.blocker.code) for one in explain(found).holding] == [
            ("r1", "membership_changed"),
            ("r2", "not_joined"),
        ]
        assert withheld(found) == (
            "not_joined",
            "partition a: it is complete: through 40; published: through 100",
        )
        assert waited_for(found, Bound.through(150)).reached is Reached.NOT_YET

    def test_read_again_a_member_that_is_gone_needs_an_end_first(self) -> None:
        found = rerouted(AGAIN, again("a", 40), member("b", 200))
        assert withheld(found) == (
            "unsealed_member",
            "partition b: it is not listed, and nobody stated where it ends",
        )
        assert waited_for(found, Bound.through(150)).reached is Reached.BLOCKED

    def test_by_the_sources_promise_only_the_cutover_is_to_come(self) -> None:
        found = rerouted(MOVES)
        assert withheld(found) == (
            "membership_changed",
            "the source now routes under generation 'r2'; everything is proved: the next cutover of a run takes it in",
        )
        assert holding(found, "a").command == "gapless epoch cutover"
        assert holding(found, "a").waits_for_time_alone

    def test_a_handoff_whose_events_in_transit_are_read_is_waited_for(self) -> None:
        found = rerouted(HANDOFF, transit(sequence=2, events=7))
        assert withheld(found) == (
            "handoff_unproven",
            "routing generation 'r2' follows 'r1', and no handoff certificate between them has been read",
        )
        one = holding(found, "in transit from r1 to r2")
        assert one.blocker == Blocker(
            "handoff_unproven", "the events in transit are to be settled first: 7 of them have an outcome"
        )
        assert one.waits_for_time_alone
        assert waited_for(found, Bound.through(150)).reached is Reached.NOT_YET

    def test_a_handoff_that_reaches_less_than_was_read_needs_another_certificate(self) -> None:
        short = transit(90, state=ChainState.ENDED)
        found = rerouted(HANDOFF, short)
        assert withheld(found) == (
            "handoff_unproven",
            "routing generation 'r2' follows 'r1', and the handoff certificate covers through 90,"
            " less than partition a was promoted through: through 100",
        )
        assert "in transit from r1 to r2" not in codes(found)
        assert not explain(found).by_itself

    def test_a_handoff_the_source_does_not_certify_is_told_as_the_source_said_it(self) -> None:
        refused = Blocker("handoff_unproven", "404 from the source")
        found = rerouted(HANDOFF, transit(state=ChainState.HELD, blocker=refused))
        assert holding(found, "in transit from r1 to r2").blocker == refused
        assert waited_for(found, Bound.through(150)).reached is Reached.BLOCKED

    def test_a_handoff_that_is_settled_waits_for_the_cutover_only(self) -> None:
        found = rerouted(HANDOFF, transit(100, state=ChainState.ENDED))
        assert codes(found) == {"a": "membership_changed"}
        assert withheld(found)[0] == "membership_changed"
        assert explain(found).by_itself

    def test_a_newcomer_under_unproven_routing_says_what_it_waits_for(self) -> None:
        found = rerouted(NO_PROOF, candidate("n", 100, generation="r2", listed=2))
        assert holding(found, "n").blocker.code == "handoff_unproven"

    def test_a_member_that_is_held_besides_keeps_its_own_blocker(self) -> None:
        now = capped(100, observation=2, observed_generation="r2", membership=NO_PROOF)
        found = snapshot(now, held("a", 100, listed=2), member("b", 200, listed=2))
        assert codes(found) == {"a": "unsettled_event", "b": "membership_changed"}
        assert withheld(found)[0] == "unsettled_event"

    def test_a_chain_held_by_the_routing_goes_on_with_the_cutover(self) -> None:
        changed = Blocker("membership_changed", "the page was answered under 'r2'")
        stopped = member("a", 100, listed=2, state=ChainState.HELD, blocker=changed)
        now = capped(100, observation=2, observed_generation="r2", membership=MOVES)
        (one,) = explain(snapshot(now, stopped)).holding
        assert one.waits_for_time_alone
        assert one.command == "gapless epoch cutover"


def test_what_is_published_below_the_target_though_proved_above_it_is_not_blocked() -> None:
    """A publish alone brings it, whatever holds further up."""
    now = scope(50, cap=Bound.through(100), capped=True, list_certified=True, membership=HOLD)
    found = snapshot(now, member("a", 100), candidate("c", 100))
    assert waited_for(found, Bound.through(80)).reached is Reached.NOT_YET
    assert waited_for(found, Bound.through(101)).reached is Reached.BLOCKED


def test_a_list_the_epoch_is_made_of_is_no_change() -> None:
    assert change_of(snapshot(100, member("a", 100), held("b", 100))) is None
