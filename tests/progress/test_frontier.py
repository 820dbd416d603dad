"""The frontier is the minimum over the whole membership, or it is no number at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from progress_strategies import small_bounds, texts

from gapless.errors import NotComparable
from gapless.progress import (
    BLOCKER_CODES,
    Bound,
    Frontier,
    MemberBlocker,
    Membership,
    Position,
    Scalar,
    Vector,
    Withheld,
    frontier_of,
    merge_bounds,
)
from gapless.progress import (
    frontier as frontier_module,
)

NAMES = [f"p{number}" for number in range(6)]
moves = st.lists(st.tuples(st.sampled_from(NAMES), small_bounds), max_size=60)


def over(*members: str) -> Frontier:
    return Frontier(Membership(1, "", frozenset(members)))


@pytest.fixture(params=[1, 1024])
def batch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many repaired entries are kept before they are sorted back in: small, so that small tests do it too."""
    monkeypatch.setattr(frontier_module, "_SMALLEST_BATCH", request.param)
    return int(request.param)


@given(st.sets(st.sampled_from(NAMES)), moves, st.none() | small_bounds)
def test_it_is_the_minimum_over_the_membership_after_every_move(
    members: set[str], order: list[tuple[str, Bound]], cap: Bound | None
) -> None:
    frontier_module._SMALLEST_BATCH, kept = 1, frontier_module._SMALLEST_BATCH
    try:
        frontier, model = Frontier(Membership(1, "", frozenset(members)), cap=cap), dict.fromkeys(members)
        for partition, bound in order:
            if partition not in members:
                with pytest.raises(KeyError):
                    frontier.advance(partition, bound)
                continue
            known = model[partition]
            assert frontier.advance(partition, bound) == (known is None or bound > known)
            model[partition] = bound if known is None else max(known, bound)
            bounds = [bound for bound in model.values() if bound is not None]
            claims = len(bounds) == len(members)
            expected = min(bounds + ([] if cap is None else [cap])) if claims else None
            assert frontier.minimum() == expected
            assert frontier.vector() == model
            assert set(frontier.withheld()) == {name for name, bound in model.items() if bound is None}
    finally:
        frontier_module._SMALLEST_BATCH = kept


@given(moves.flatmap(lambda done: st.tuples(st.just(done), st.permutations(done))))
def test_order_and_repetition_of_moves_do_not_matter(
    orders: tuple[list[tuple[str, Bound]], list[tuple[str, Bound]]],
) -> None:
    first, second = over(*NAMES), over(*NAMES)
    for partition, bound in orders[0]:
        first.advance(partition, bound)
        first.minimum()
    for partition, bound in [*orders[1], *orders[0]]:
        second.advance(partition, bound)
    assert first.value() == second.value()
    assert first.vector() == second.vector()


@given(moves)
def test_it_never_goes_back(order: list[tuple[str, Bound]]) -> None:
    frontier, before = over(*NAMES[:3]), None
    for partition, bound in order:
        if partition in NAMES[:3]:
            frontier.advance(partition, bound)
            now = frontier.minimum()
            assert before is None or (now is not None and now >= before)
            before = now


@given(st.lists(st.tuples(texts, st.integers()), min_size=1, max_size=8), st.booleans())
def test_any_kind_of_position_serves(positions: list[Position], inclusive: bool) -> None:
    members = {str(number): Bound(position, inclusive) for number, position in enumerate(positions)}
    assert frontier_of(Membership(1, "", frozenset(members)), members) == Scalar(min(members.values()))


@pytest.mark.usefixtures("batch")
def test_many_members_that_take_turns_at_the_bottom() -> None:
    members = [f"m{number:04d}" for number in range(3000)]
    frontier = over(*members)
    for number, member in enumerate(members):
        frontier.advance(member, Bound.through(number))
    for turn in range(9000):
        assert frontier.minimum() == Bound.through(turn)
        frontier.advance(members[turn % 3000], Bound.through(turn + 3000))


@pytest.mark.usefixtures("batch")
def test_many_members_of_which_one_creeps_along() -> None:
    members = [f"m{number:04d}" for number in range(2000)]
    frontier = over(*members)
    for number, member in enumerate(members):
        frontier.advance(member, Bound.through(number * 10))
    for position in range(1, 19_000):
        frontier.advance("m0000", Bound.through(position))
        if position % 10 == 0:
            frontier.advance(members[position // 10], Bound.through(10**6 - position))
        assert frontier.minimum() == Bound.through(position)


def test_bounds_120_and_100_with_an_event_failing_at_110_stay_at_100_then_130_gives_120() -> None:
    frontier = over("a", "b")
    frontier.advance("a", Bound.through(120))
    frontier.advance("b", Bound.through(100))
    assert frontier.minimum() == Bound.through(100)
    frontier.advance("b", Bound.through(130))
    assert frontier.minimum() == Bound.through(120)


def test_mixed_inclusive_and_exclusive_bounds_keep_their_endpoints() -> None:
    frontier = over("a", "b")
    frontier.advance("a", Bound.through(10))
    frontier.advance("b", Bound.before(10))
    assert frontier.minimum() == Bound.before(10)
    frontier.advance("b", Bound.before(11))
    assert frontier.minimum() == Bound.through(10)


def test_a_late_bound_is_a_counted_no_op() -> None:
    frontier = over("a")
    assert frontier.advance("a", Bound.through(90))
    assert not frontier.advance("a", Bound.through(90))
    assert not frontier.advance("a", Bound.before(90))
    assert frontier.no_ops == 2
    assert frontier.minimum() == Bound.through(90)


def test_the_minimum_of_nothing_is_no_claim() -> None:
    value = over().value()
    assert isinstance(value, Withheld)
    assert over().minimum() is None


def test_a_member_without_a_bound_withholds_and_is_named() -> None:
    frontier = over("a", "b", "c")
    frontier.advance("b", Bound.before(7))
    assert frontier.value() == Withheld((MemberBlocker("no_bound", "a"), MemberBlocker("no_bound", "c")))
    assert frontier.minimum() is None


def test_members_on_other_axes_give_the_vector_and_no_number() -> None:
    frontier = Frontier(Membership(1, "", frozenset({"a", "b"})), axes={"a": "offset", "b": "time"})
    frontier.advance("a", Bound.before(200))
    assert isinstance(frontier.value(), Withheld)
    frontier.advance("b", Bound.through(1_700_000_000))
    assert frontier.value() == Vector({"a": Bound.before(200), "b": Bound.through(1_700_000_000)})
    assert frontier.minimum() is None


@pytest.mark.parametrize("other", ["9", (9,), (9, "x")])
def test_members_with_unlike_positions_give_the_vector(other: Position) -> None:
    frontier = over("a", "b")
    frontier.advance("a", Bound.before(9))
    frontier.advance("b", Bound.before(other))
    assert isinstance(frontier.value(), Vector)
    assert frontier.minimum() is None


def test_one_member_may_not_change_what_its_bound_is_made_of() -> None:
    frontier = over("a")
    frontier.advance("a", Bound.before((1, "x")))
    for other in (Bound.before(2), Bound.before((1, 2)), Bound.before("x")):
        with pytest.raises(NotComparable):
            frontier.advance("a", other)
    assert frontier.minimum() == Bound.before((1, "x"))


def test_a_member_list_certified_less_far_caps_it_until_the_list_is_certified_further() -> None:
    frontier = Frontier(Membership(1, "", frozenset({"a"})), cap=Bound.before(40))
    frontier.advance("a", Bound.through(50))
    assert frontier.value() == Scalar(Bound.before(40), capped=True)
    assert not frontier.raise_cap(Bound.before(30))
    assert frontier.raise_cap(Bound.before(99))
    assert frontier.value() == Scalar(Bound.through(50), capped=False)


accumulators = st.dictionaries(st.sampled_from(NAMES), small_bounds)


@given(accumulators, accumulators, accumulators)
def test_merging_accumulators_is_associative_commutative_and_idempotent(
    first: dict[str, Bound], second: dict[str, Bound], third: dict[str, Bound]
) -> None:
    assert merge_bounds([merge_bounds([first, second]), third]) == merge_bounds(
        [first, merge_bounds([second, third])]
    )
    assert merge_bounds([first, second]) == merge_bounds([second, first])
    assert merge_bounds([first, first]) == merge_bounds([first]) == first
    assert merge_bounds([]) == {}


@given(st.lists(accumulators, max_size=5), st.sets(st.sampled_from(NAMES), min_size=1))
def test_the_frontier_of_a_merge_is_the_frontier_of_all_moves(
    parts: list[dict[str, Bound]], members: set[str]
) -> None:
    membership = Membership(1, "", frozenset(members))
    frontier = Frontier(membership)
    for part in parts:
        for partition in part.keys() & members:
            frontier.advance(partition, part[partition])
    assert frontier_of(membership, merge_bounds(parts)) == frontier.value()


def test_blocker_codes_are_the_closed_list_each_with_its_meaning_and_release() -> None:
    assert sorted(BLOCKER_CODES) == sorted(
        [
            *(
                "not_started",
                "no_bound",
                "no_certificate",
                "not_comparable",
                "unsettled_event",
                "source_unavailable",
            ),
            *(
                "token_expired",
                "range_trimmed",
                "token_cycle",
                "schema_drift",
                "violation",
                "membership_changed",
            ),
            *(
                "member_list_unproven",
                "not_joined",
                "unsealed_member",
                "missing_successor",
                "handoff_unproven",
                "fenced",
            ),
        ]
    )
    assert all(
        meaning and release and "\n" not in meaning + release for meaning, release in BLOCKER_CODES.values()
    )
    with pytest.raises(ValueError, match="documented blocker codes"):
        MemberBlocker("because", "p0")
