from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import candidate, held, member, scope, snapshot

from gapless.explain import Explanation, Holding, explain, short_of
from gapless.progress import BLOCKER_CODES, Bound, ChainState
from gapless.store.records import Blocker, ChainRow, MembershipPolicy, Snapshot

LATER = datetime(2013, 6, 1, 13, tzinfo=timezone.utc)


def codes(explanation: Explanation) -> dict[str, str]:
    return {partition: blocker.code for partition, blocker in explanation.blockers}


def withheld(found: Snapshot) -> tuple[str, str] | None:
    blocker = explain(found).withheld
    return None if blocker is None else (blocker.code, blocker.hint)


def test_nothing_holds_while_everybody_is_read() -> None:
    explanation = explain(snapshot(90, member("a", 120), member("b", 90)))
    assert explanation == Explanation(None, ())
    assert explanation.settled


def test_without_a_membership_the_frontier_is_withheld() -> None:
    assert withheld(snapshot(None)) == ("not_started", "no run has frozen the list of partitions yet")


def test_where_every_member_has_left_the_frontier_is_withheld() -> None:
    """The minimum of nothing is no claim."""
    assert withheld(snapshot(100, frozen=True)) == (
        "member_list_unproven",
        "every member has left in order: nobody is left who could raise the frontier",
    )


def test_the_member_that_stands_lowest_and_is_held_withholds_the_frontier() -> None:
    explanation = explain(snapshot(100, member("a", 120), held("b", 100)))
    assert explanation.withheld is not None
    assert explanation.withheld.code == "unsettled_event"
    assert explanation.withheld.hint == "partition b: effect raised ValueError: no"
    assert explanation.withheld.event_id == "e110"
    assert codes(explanation) == {"b": "unsettled_event"}


def test_a_partition_held_above_the_lowest_is_named_but_does_not_withhold() -> None:
    explanation = explain(snapshot(50, member("a", 50), held("b", 100)))
    assert explanation.withheld is None
    assert codes(explanation) == {"b": "unsettled_event"}
    assert not explanation.settled


def test_among_equally_low_members_the_held_one_withholds() -> None:
    assert withheld(snapshot(100, member("a", 100), held("b", 100))) == (
        "unsettled_event",
        "partition b: effect raised ValueError: no",
    )


def test_an_exclusive_bound_stands_below_an_inclusive_one() -> None:
    below = held("b", Bound.before(100))
    assert withheld(snapshot(None, member("a", 100), below)) is not None
    assert withheld(snapshot(None, member("a", Bound.before(100)), held("b", 100))) is None


def test_a_member_no_run_has_taken_withholds_everything() -> None:
    found = snapshot(None, member("a", 120), member("b", fencing_token=0))
    assert withheld(found) == ("not_started", "partition b: no run has taken this partition yet")


def test_a_member_without_a_promoted_page_has_not_started() -> None:
    explanation = explain(snapshot(None, member("a")))
    assert codes(explanation) == {"a": "not_started"}


def test_pages_without_a_certificate_leave_no_bound_while_the_chain_goes_on() -> None:
    assert codes(explain(snapshot(None, member("a", sequence=7)))) == {"a": "no_bound"}


def test_a_chain_that_ends_without_a_certificate_has_none_to_come() -> None:
    ended = member("a", sequence=7, state=ChainState.ENDED, read_to=Bound.through(70))
    assert codes(explain(snapshot(None, ended))) == {"a": "no_certificate"}


def test_a_chain_that_ends_before_any_page_had_a_certificate_has_none_to_come() -> None:
    assert codes(explain(snapshot(None, member("a", state=ChainState.ENDED)))) == {"a": "no_certificate"}


def test_the_end_of_the_pages_is_no_evidence_for_events_behind_the_last_certificate() -> None:
    ended = member("a", 80, state=ChainState.ENDED, read_to=Bound.through(95))
    explanation = explain(snapshot(80, ended, member("b", 200)))
    assert explanation.withheld is not None
    assert explanation.withheld.code == "no_certificate"
    assert "at 95 and has certified only through 80" in explanation.withheld.hint


def test_a_chain_that_ends_certified_through_its_last_event_holds_nothing() -> None:
    ended = member("a", 80, state=ChainState.ENDED, read_to=Bound.through(80))
    assert explain(snapshot(80, ended, member("b", 200))).settled


@pytest.mark.parametrize("state", [ChainState.HELD, ChainState.GAP])
def test_a_stopped_chain_has_a_blocker_even_where_the_store_names_none(state: ChainState) -> None:
    found = explain(snapshot(50, member("a", 50, state=state)))
    assert len(found.holding) == 1
    assert found.withheld is not None


def test_a_held_member_comes_before_the_cap() -> None:
    capped = scope(100, cap=Bound.through(100), capped=True)
    blocker = explain(snapshot(capped, held("a", 100), candidate("c", 40))).withheld
    assert blocker is not None
    assert blocker.code == "unsettled_event"


def test_a_list_certified_no_further_than_the_frontier_withholds_what_lies_above() -> None:
    capped = scope(60, cap=Bound.through(60), capped=True, list_certified=True)
    assert withheld(snapshot(capped, member("a", 100))) == (
        "member_list_unproven",
        "the list of partitions is certified through 60 only",
    )


def test_a_list_certified_nowhere_withholds_everything() -> None:
    capped = scope(None, cap=None, capped=True, list_certified=True)
    assert withheld(snapshot(capped, member("a", 100))) is not None


def test_a_list_certified_as_far_as_the_lowest_member_withholds_nothing() -> None:
    capped = scope(100, cap=Bound.through(100), capped=True, list_certified=True)
    assert explain(snapshot(capped, member("a", 100))).settled


def test_members_come_before_newcomers_and_the_lowest_first() -> None:
    found = snapshot(
        None,
        candidate("n"),
        held("d", 40),
        held("c", 30),
        member("b", sequence=2),
        member("a", fencing_token=0),
    )
    assert [partition for partition, _ in explain(found).blockers] == ["a", "b", "c", "d", "n"]


class TestWhatTimeReleases:
    def of(self, row: ChainRow) -> bool:
        (holding,) = explain(snapshot(None, row)).holding
        return holding.waits_for_time_alone

    def test_a_retry_that_is_due_later(self) -> None:
        assert self.of(held("a", 100, blocker=Blocker("unsettled_event", "h", "e", 110, retry_at=LATER)))

    def test_not_a_hold_whose_retries_are_used_up(self) -> None:
        assert not self.of(held("a", 100))

    def test_not_a_source_that_gave_up(self) -> None:
        assert not self.of(held("a", 100, blocker=Blocker("source_unavailable", "503")))

    def test_a_held_chain_that_is_being_tried_again(self) -> None:
        again = member("a", 100, blocker=Blocker("source_unavailable", "503"))
        assert self.of(again)

    def test_not_a_gap_even_with_a_retry(self) -> None:
        gap = member("a", 100, state=ChainState.GAP, blocker=Blocker("range_trimmed", "h", retry_at=LATER))
        assert not self.of(gap)

    @pytest.mark.parametrize("row", [member("a", fencing_token=0), member("a", sequence=3)])
    def test_what_is_still_to_be_read(self, row: ChainRow) -> None:
        assert self.of(row)

    def test_not_an_end_without_a_certificate(self) -> None:
        assert not self.of(member("a", 80, state=ChainState.ENDED, read_to=Bound.through(95)))


class TestTheCommandThatHelps:
    def of(self, blocker: Blocker, partition: str = "p") -> str | None:
        return Holding(member(partition, 1), blocker).command

    def test_skip_names_partition_and_event(self) -> None:
        assert self.of(Blocker("unsettled_event", "h", "e1", 1)) == "gapless skip p e1 --reason ..."
        assert self.of(Blocker("schema_drift", "h", "e1", 1)) == "gapless skip p e1 --reason ..."

    def test_ids_are_quoted_for_a_shell(self) -> None:
        assert self.of(Blocker("unsettled_event", "h", "it's; rm", 1), "eu west") == (
            "gapless skip 'eu west' 'it'\"'\"'s; rm' --reason ..."
        )

    def test_ids_that_look_like_options_stand_behind_the_options(self) -> None:
        assert self.of(Blocker("unsettled_event", "h", "-e", 1)) == "gapless skip --reason ... -- p -e"

    def test_a_page_as_a_whole_cannot_be_skipped(self) -> None:
        assert self.of(Blocker("unsettled_event", "disk full")) is None

    def test_what_only_the_source_can_mend_has_none(self) -> None:
        assert self.of(Blocker("range_trimmed", "h")) is None


class TestShortOf:
    def test_names_who_stands_below_the_target_only(self) -> None:
        found = snapshot(100, held("a", 100), held("b", 200), member("c", 50))
        assert [held.row.partition for held in short_of(found, Bound.through(150))] == ["a"]

    def test_a_chain_that_ended_short_of_it_will_not_get_there(self) -> None:
        ended = member("a", 80, state=ChainState.ENDED)
        (found,) = short_of(snapshot(80, ended), Bound.through(90))
        assert found.blocker.code == "no_certificate"
        assert not found.waits_for_time_alone
        assert short_of(snapshot(80, ended), Bound.through(80)) == []

    def test_a_chain_is_named_once(self) -> None:
        ended = member("a", 80, state=ChainState.ENDED, read_to=Bound.through(85))
        assert len(short_of(snapshot(80, ended), Bound.through(90))) == 1


POLICIES = [
    MembershipPolicy(on_change="hold"),
    MembershipPolicy(moves="the source says so"),
    MembershipPolicy(handoff=True),
    MembershipPolicy(reading_again=False),
    MembershipPolicy(),
]
bounds = st.none() | st.integers(0, 5)
states = st.sampled_from([ChainState.OPEN, ChainState.HELD, ChainState.GAP, ChainState.ENDED])
blockers = st.none() | st.sampled_from(sorted(BLOCKER_CODES)).map(lambda code: Blocker(code, "h"))


@st.composite
def rows(draw: st.DrawFn) -> list[ChainRow]:
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6))
    return [
        member(
            name,
            draw(bounds),
            state=draw(states),
            blocker=draw(blockers),
            listed=draw(st.integers(1, 2)),
            epoch_in=draw(st.sampled_from([1, 1, 1, None])),
            fencing_token=draw(st.integers(0, 1)),
            sequence=draw(st.integers(0, 2)),
            generation=draw(st.sampled_from(["r1", "r1", "r2"])),
            seal_basis=draw(st.sampled_from(["source", "operator"])),
            parents=draw(st.sampled_from([None, ("a",), ("z",)])),
            seal=draw(bounds.map(lambda b: None if b is None else Bound.through(b))),
            successors=draw(st.sampled_from([None, (), ("a",), ("z",)])),
            read_to=draw(bounds.map(lambda b: None if b is None else Bound.through(b))),
        )
        for name in names
    ]


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    cap = draw(bounds)
    frontier = scope(
        draw(bounds),
        observation=2,
        observed_generation=draw(st.sampled_from(["r1", "r1", "r2"])),
        membership=draw(st.sampled_from(POLICIES)),
        cap=None if cap is None else Bound.through(cap),
        capped=draw(st.booleans()),
        list_certified=draw(st.booleans()),
    )
    return snapshot(frontier, *draw(rows()))


@settings(deadline=None)
@given(snapshots())
def test_every_code_is_of_the_closed_list(found: Snapshot) -> None:
    explanation = explain(found)
    shown = {held.blocker.code for held in explanation.holding}
    shown |= {explanation.withheld.code} if explanation.withheld else set()
    assert shown <= BLOCKER_CODES.keys()


@settings(deadline=None)
@given(snapshots())
def test_every_held_chain_and_every_newcomer_has_one_blocker(found: Snapshot) -> None:
    named = [held.row.partition for held in explain(found).holding]
    assert len(named) == len(set(named))
    for row in found.chains:
        if row.state in (ChainState.HELD, ChainState.GAP) or row.blocker is not None or row.epoch_in is None:
            assert row.partition in named


@settings(deadline=None)
@given(snapshots())
def test_a_member_without_a_bound_always_withholds(found: Snapshot) -> None:
    members = [row for row in found.chains if row.epoch_in is not None]
    if not members or any(row.bound is None for row in members):
        assert explain(found).withheld is not None


@settings(deadline=None)
@given(snapshots())
def test_the_order_of_the_rows_makes_no_difference(found: Snapshot) -> None:
    turned = snapshot(found.scope, *reversed(found.chains))
    assert explain(found) == explain(turned)


@settings(deadline=None)
@given(snapshots(), st.integers(0, 5))
def test_whoever_is_short_of_a_target_stands_below_it(found: Snapshot, position: int) -> None:
    target = Bound.through(position)
    for holding in short_of(found, target):
        assert holding.row.bound is None or holding.row.bound < target
