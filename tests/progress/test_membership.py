"""Entering and leaving a membership epoch, each by its own proofs, and nothing changes where one is missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from progress_strategies import small_bounds

from gapless.errors import NotComparable
from gapless.progress import (
    Bound,
    KeyRange,
    MemberBlocker,
    Membership,
    MembershipCode,
    Moves,
    Seal,
    Standing,
    cutover,
    judge_join,
    judge_seal,
    step_towards_list,
)

AT_100 = Bound.through(100)
FIRST = Membership(1, "r1", frozenset({"a", "b"}))
BOUNDS = {"a": AT_100, "b": Bound.through(120)}


@pytest.mark.parametrize(
    ("bound", "seal", "code"),
    [
        (AT_100, Seal(AT_100, ("c",)), MembershipCode.OK),
        (AT_100, Seal(Bound.before(100), ()), MembershipCode.OK),
        (AT_100, Seal(AT_100, ()), MembershipCode.OK),
        (Bound.before(100), Seal(AT_100, ()), MembershipCode.NOT_DRAINED),
        (None, Seal(AT_100, ()), MembershipCode.NOT_DRAINED),
        (AT_100, Seal(AT_100, None), MembershipCode.NO_SUCCESSOR),
        (AT_100, Seal(AT_100, None, decommissioned=True), MembershipCode.OK),
        (Bound.before(9), Seal(AT_100, None, decommissioned=True), MembershipCode.NOT_DRAINED),
        (Bound.before(9), Seal(AT_100, None), MembershipCode.NOT_DRAINED),
    ],
)
def test_a_partition_ends_where_it_is_drained_and_its_successors_are_stated(
    bound: Bound | None, seal: Seal, code: MembershipCode
) -> None:
    assert judge_seal(bound, seal) is code


@pytest.mark.parametrize(
    ("floor", "token", "published", "code"),
    [
        (AT_100, "t", None, MembershipCode.OK),
        (AT_100, "t", AT_100, MembershipCode.OK),
        (AT_100, "t", Bound.before(100), MembershipCode.OK),
        (None, "t", None, MembershipCode.OK),
        (AT_100, "", None, MembershipCode.OK),
        (AT_100, None, None, MembershipCode.NO_INHERITED_TOKEN),
        (Bound.before(100), "t", AT_100, MembershipCode.FLOOR_BELOW_PUBLISHED),
        (None, "t", AT_100, MembershipCode.FLOOR_BELOW_PUBLISHED),
    ],
)
def test_a_newcomer_is_complete_from_an_explicit_start_through_what_is_published(
    floor: Bound | None, token: str | None, published: Bound | None, code: MembershipCode
) -> None:
    assert judge_join(floor, token, published=published) is code


def test_a_child_waits_for_every_parent() -> None:
    def join(sealed: set[str]) -> MembershipCode:
        return judge_join(AT_100, "t", published=None, parents=["a", "b"], sealed=sealed)

    assert join({"a"}) is MembershipCode.GATED
    assert join({"a", "b"}) is MembershipCode.OK


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ((0, 10), (5, 15), True),
        ((0, 10), (10, 20), False),
        ((None, 10), (9, None), True),
        ((None, 10), (10, None), False),
        ((None, None), (3, 4), True),
        (("a", "m"), ("lz", "z"), True),
        (("a", "m"), ("m", "z"), False),
    ],
)
def test_key_ranges_are_half_open(
    first: tuple[object, object], second: tuple[object, object], overlap: bool
) -> None:
    one, other = KeyRange(*first), KeyRange(*second)  # type: ignore[arg-type]
    assert one.overlaps(other) is other.overlaps(one) is overlap
    code = MembershipCode.OVERLAPS_UNSEALED if overlap else MembershipCode.OK
    assert judge_join(AT_100, "t", published=None, key_range=one, unsealed_ranges=[other]) is code
    assert judge_join(AT_100, "t", published=None, unsealed_ranges=[other]) is MembershipCode.OK


def test_unlike_key_ranges_do_not_compare() -> None:
    with pytest.raises(NotComparable):
        KeyRange(0, 5).overlaps(KeyRange("a", "b"))


def test_the_same_list_is_a_new_epoch_of_the_same_members() -> None:
    assert cutover(FIRST, ["a", "b"], bounds=BOUNDS, seals={}).membership == Membership(
        2, "r1", FIRST.members
    )


def test_what_is_not_listed_has_not_left() -> None:
    refused = cutover(FIRST, ["a"], bounds=BOUNDS, seals={})
    assert refused.membership is None
    assert refused.code is MembershipCode.UNSEALED_MEMBER
    assert [(blocker.code, blocker.partition) for blocker in refused.missing] == [("unsealed_member", "b")]


def test_a_sealed_partition_leaves_only_when_it_is_drained_through_its_seal() -> None:
    seals = {"b": Seal(Bound.through(130), ())}
    assert cutover(FIRST, ["a"], bounds=BOUNDS, seals=seals).code is MembershipCode.UNSEALED_MEMBER
    drained = cutover(FIRST, ["a"], bounds={**BOUNDS, "b": Bound.through(130)}, seals=seals)
    assert drained.membership == Membership(2, "r1", frozenset({"a"}))


def test_a_leaver_takes_its_successors_along() -> None:
    seals = {"b": Seal(Bound.through(120), ("c", "d"))}
    entered = {**BOUNDS, "c": Bound.through(120)}
    refused = cutover(FIRST, ["a", "c"], bounds=entered, seals=seals)
    assert refused.missing == (
        MemberBlocker(
            "missing_successor", "b", "d, which carries on from it, neither enters nor has left in order"
        ),
    )
    both = cutover(FIRST, ["a", "c", "d"], bounds={**entered, "d": Bound.through(120)}, seals=seals)
    assert both.code is MembershipCode.OK


def test_a_successor_may_have_left_in_order_itself() -> None:
    seals = {"b": Seal(Bound.through(120), ("c",)), "c": Seal(Bound.through(125), ("d",))}
    read = {**BOUNDS, "c": Bound.through(125), "d": Bound.through(125)}
    assert cutover(FIRST, ["a", "d"], bounds=read, seals=seals).code is MembershipCode.OK
    refused = cutover(FIRST, ["a"], bounds={**BOUNDS, "c": Bound.through(125)}, seals=seals)
    assert [(blocker.code, blocker.partition) for blocker in refused.missing] == [
        ("missing_successor", "b"),
        ("missing_successor", "c"),
    ]
    undrained = cutover(FIRST, ["a", "d"], bounds={**read, "c": Bound.through(124)}, seals=seals)
    assert [blocker.code for blocker in undrained.missing] == ["unsealed_member", "missing_successor"]


def test_a_successor_that_departed_at_an_earlier_cutover_is_accounted_for() -> None:
    seals = {"b": Seal(Bound.through(120), ("c",))}
    assert cutover(FIRST, ["a"], bounds=BOUNDS, seals=seals).code is MembershipCode.MISSING_SUCCESSOR
    assert cutover(FIRST, ["a"], bounds=BOUNDS, seals=seals, departed={"c"}).code is MembershipCode.OK


def test_unknown_successors_are_missing_ones_unless_an_operator_decides() -> None:
    unknown = {"b": Seal(Bound.through(120), None)}
    assert cutover(FIRST, ["a"], bounds=BOUNDS, seals=unknown).code is MembershipCode.MISSING_SUCCESSOR
    decided = {"b": Seal(Bound.through(120), None, decommissioned=True)}
    assert cutover(FIRST, ["a"], bounds=BOUNDS, seals=decided).code is MembershipCode.OK


def test_partitions_that_name_each_other_as_successors_hold() -> None:
    seals = {"b": Seal(Bound.through(120), ("c",)), "c": Seal(Bound.through(120), ("b",))}
    read = {**BOUNDS, "c": Bound.through(120)}
    assert cutover(FIRST, ["a"], bounds=read, seals=seals).code is MembershipCode.MISSING_SUCCESSOR


def test_two_leavers_may_share_a_successor() -> None:
    seals = {"a": Seal(AT_100, ("c", "d")), "b": Seal(AT_100, ("d",)), "c": Seal(AT_100, ("d",))}
    read = {**BOUNDS, "c": AT_100, "d": AT_100}
    assert cutover(FIRST, ["d"], bounds=read, seals=seals).membership == Membership(2, "r1", frozenset("d"))


def test_a_newcomer_enters_when_it_has_been_read_through_the_published_frontier() -> None:
    def enter(bounds: dict[str, Bound | None]) -> MembershipCode:
        return cutover(FIRST, ["a", "b", "c"], bounds=bounds, seals={}, published=AT_100).code

    assert enter(dict(BOUNDS)) is MembershipCode.NOT_JOINED
    assert enter({**BOUNDS, "c": None}) is MembershipCode.NOT_JOINED
    assert enter({**BOUNDS, "c": Bound.before(100)}) is MembershipCode.NOT_JOINED
    assert enter({**BOUNDS, "c": AT_100}) is MembershipCode.OK


def test_a_candidate_that_vanishes_holds_as_a_member_does() -> None:
    refused = cutover(FIRST, ["a", "b"], bounds={**BOUNDS, "c": AT_100}, seals={})
    assert [(blocker.code, blocker.partition) for blocker in refused.missing] == [("unsealed_member", "c")]


def test_a_partition_that_has_left_does_not_simply_come_back() -> None:
    seals = {"c": Seal(AT_100, ())}
    refused = cutover(FIRST, ["a", "b", "c"], bounds=BOUNDS, seals=seals, departed={"c"})
    assert refused.code is MembershipCode.NOT_JOINED


def test_whoever_has_ended_and_is_listed_still_may_stay_or_enter() -> None:
    """An end keeps nobody from being counted: what it has proved stands in the minimum."""
    seals = {"b": Seal(AT_100, ("c",)), "c": Seal(AT_100, ())}
    kept = cutover(FIRST, ["a", "b", "c"], bounds={**BOUNDS, "c": AT_100}, seals=seals)
    assert kept.membership == Membership(2, "r1", frozenset({"a", "b", "c"}))


def test_another_routing_generation_needs_a_proof_of_what_moved() -> None:
    refused = cutover(FIRST, ["a", "b"], bounds=BOUNDS, seals={}, generation="r2")
    assert refused.code is MembershipCode.HANDOFF_UNPROVEN
    proven = cutover(FIRST, ["a", "b"], bounds=BOUNDS, seals={}, generation="r2", proof=Moves("documented"))
    assert proven.membership == Membership(2, "r2", FIRST.members)


def test_everything_that_is_missing_is_named() -> None:
    refused = cutover(FIRST, ["a", "n"], bounds=BOUNDS, seals={}, published=AT_100, generation="r2")
    assert [blocker.code for blocker in refused.missing] == [
        "unsealed_member",
        "not_joined",
        "handoff_unproven",
    ]


names = st.sampled_from("abcdef")
seals_by_name = st.dictionaries(
    names, st.builds(Seal, small_bounds, st.none() | st.lists(names, max_size=2).map(tuple), st.booleans())
)


@given(
    st.frozensets(names),
    st.frozensets(names),
    st.dictionaries(names, st.none() | small_bounds),
    seals_by_name,
    st.none() | small_bounds,
)
def test_no_cutover_loses_what_is_published(
    members: frozenset[str],
    listed: frozenset[str],
    candidates: dict[str, Bound | None],
    seals: dict[str, Seal],
    published: Bound | None,
) -> None:
    bounds = {**dict.fromkeys(members), **candidates}
    current = Membership(3, "", members)
    after = cutover(current, listed, bounds=bounds, seals=seals, published=published)
    assert (after.membership is None) == bool(after.missing)
    if after.membership is None:
        return
    assert after.membership == Membership(4, "", listed)
    for entered in listed - members:
        bound = bounds[entered]
        assert published is None or (bound is not None and bound >= published)
    for left in bounds.keys() - listed:
        bound = bounds[left]
        assert bound is not None
        assert bound >= seals[left].at
        if not seals[left].decommissioned:
            assert all(
                successor in listed or successor in seals for successor in seals[left].successors or ()
            )


def test_where_everybody_has_ended_whoever_is_proved_furthest_stays() -> None:
    """A membership of nobody claims nothing: what the last ones have proved could never be published."""
    ends = {1: 100, 2: 200, 3: 150}
    standings = [
        Standing(chain, f"p{chain}", "r1", True, False, Bound.through(at), seal=Seal(Bound.through(at), ()))
        for chain, at in ends.items()
    ]
    step = step_towards_list("r1", standings, observed="r1", frontier=Bound.through(50))
    assert (step.leaving, step.missing) == ((1, 3), ())
    again = step_towards_list("r1", [standings[1]], observed="r1", frontier=Bound.through(100))
    assert not again.changes
    assert not again.missing
    with_a_newcomer = [standings[1], Standing(4, "n", "r1", False, True, Bound.through(200))]
    assert step_towards_list("r1", with_a_newcomer, observed="r1", frontier=Bound.through(200)).leaving == (
        2,
    )
