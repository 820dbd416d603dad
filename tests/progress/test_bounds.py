"""Bounds are cuts: a total order within one kind of position, and none across kinds."""

import pickle
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from progress_strategies import bounds, domain_and_bounds, small_bounds, texts

from gapless.errors import GaplessError, NotComparable, PositionError
from gapless.progress import Bound, highest


@given(small_bounds, st.integers(-1, 9))
def test_a_bound_covers_exactly_what_lies_below_its_cut(bound: Bound, position: int) -> None:
    assert bound.covers(position) == (
        position < bound.position or (bound.inclusive and position == bound.position)
    )


@given(small_bounds, small_bounds)
def test_a_lower_bound_covers_less(first: Bound, second: Bound) -> None:
    covered = [
        {position for position in range(-1, 10) if bound.covers(position)} for bound in (first, second)
    ]
    if first <= second:
        assert covered[0] <= covered[1]


@given(st.integers(), st.integers(1, 10**30))
def test_before_is_below_through_and_through_is_below_every_later_before(position: int, step: int) -> None:
    before, through = Bound.before(position), Bound.through(position)
    assert before < through < Bound.before(position + step)
    assert not through < before
    assert before != through


@given(domain_and_bounds)
def test_the_order_is_total(case: tuple[object, list[Bound]]) -> None:
    for first, second, third in (
        permutations(case[1][:3], 3) if len(case[1]) > 2 else [(*case[1], case[1][0])]
    ):
        assert (first < second) + (first == second) + (first > second) == 1
        assert (first <= second) == (not second < first)
        assert (first >= second) == (second <= first)
        if first <= second <= third:
            assert first <= third
        if first == second:
            assert hash(first) == hash(second)


@given(small_bounds | st.none(), small_bounds | st.none(), small_bounds | st.none())
def test_the_higher_of_two_claims_is_associative_commutative_and_idempotent(
    first: Bound | None, second: Bound | None, third: Bound | None
) -> None:
    assert highest(highest(first, second), third) == highest(first, highest(second, third))
    assert highest(first, second) == highest(second, first)
    assert highest(first, first) == first
    assert highest(first, None) == first


@given(bounds(texts))
def test_a_bound_survives_pickling(bound: Bound) -> None:
    assert pickle.loads(pickle.dumps(bound)) == bound


@pytest.mark.parametrize(
    ("first", "second"),
    [(9, "10"), ("9", 9), ((1, 2), (1, "2")), ((1, 2), (1, 2, 3)), (1, (1,)), (((1,), 2), ((1, 2), 2))],
)
def test_unlike_positions_share_no_order(first: object, second: object) -> None:
    one, other = Bound.before(first), Bound.before(second)  # type: ignore[arg-type]
    assert one != other
    for compare in (lambda: one < other, lambda: one <= other, lambda: one > other, lambda: one >= other):
        with pytest.raises(NotComparable, match="share no order"):
            compare()
    with pytest.raises(NotComparable):
        one.covers(second)  # type: ignore[arg-type]
    with pytest.raises(NotComparable):
        min(one, other)


def test_not_comparable_is_a_type_error_and_one_of_ours() -> None:
    assert issubclass(NotComparable, TypeError)
    assert issubclass(NotComparable, GaplessError)
    assert issubclass(PositionError, ValueError)
    with pytest.raises(TypeError):
        Bound.before(1) < 2  # type: ignore[operator]  # noqa: B015


@pytest.mark.parametrize(
    "position", [True, 1.0, float("nan"), None, [1], (), (1, 2.5), (1, (None,)), b"1", {1}]
)
def test_what_is_no_position_makes_no_bound(position: object) -> None:
    with pytest.raises(PositionError, match="is no position"):
        Bound.before(position)  # type: ignore[arg-type]


def test_an_endpoint_is_true_or_false() -> None:
    with pytest.raises(PositionError, match="endpoint"):
        Bound(1, 1)  # type: ignore[arg-type]


def test_a_bound_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Bound.before(1).position = 2  # type: ignore[misc]
