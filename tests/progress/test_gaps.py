"""Out-of-order completion: what is complete is exactly what was completed, in space for the gaps alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.progress import Gaps

numbers = st.integers(0, 400)
ranges = st.tuples(numbers, st.integers(0, 300)).map(lambda pair: (pair[0], pair[0] + pair[1]))
steps = st.lists(numbers | ranges, max_size=60)


def completed(done: "list[int | tuple[int, int]]", start: int = 0) -> tuple[Gaps, set[int]]:
    gaps, model = Gaps(start), set()
    for step in done:
        if isinstance(step, int):
            assert gaps.complete(start + step) == (start + step not in model)
            model.add(start + step)
        else:
            gaps.complete_range(start + step[0], start + step[1])
            model.update(range(start + step[0], start + step[1]))
    return gaps, model


@given(steps, st.sampled_from([0, 5, 64, -1000]))
def test_what_is_complete_is_what_was_completed(done: "list[int | tuple[int, int]]", start: int) -> None:
    gaps, model = completed(done, start)
    everything = range(start, start + 800)
    assert [number for number in everything if number in gaps] == sorted(model)
    assert list(gaps.open(start + 800)) == [number for number in everything if number not in model]
    assert gaps.through == next(number for number in everything if number not in model)
    assert gaps.settled == (len(model) == gaps.through - start)
    assert start - 1 not in gaps


@given(steps)
def test_space_is_for_the_gaps_alone(done: "list[int | tuple[int, int]]") -> None:
    gaps, model = completed(done)
    holes = sum(number not in model and number + 1 in model for number in range(800))
    assert gaps.entries <= 4 * holes


@given(st.lists(numbers, max_size=80).flatmap(lambda done: st.tuples(st.just(done), st.permutations(done))))
def test_the_order_and_repetition_of_completions_do_not_matter(orders: tuple[list[int], list[int]]) -> None:
    first, _ = completed(list(orders[0]))
    second, _ = completed([*orders[1], *orders[0]])
    assert first.through == second.through
    assert list(first.open(500)) == list(second.open(500))


@given(steps)
def test_the_prefix_never_shrinks(done: "list[int | tuple[int, int]]") -> None:
    gaps, before = Gaps(), 0
    for step in done:
        if isinstance(step, int):
            gaps.complete(step)
        else:
            gaps.complete_range(*step)
        assert gaps.through >= before
        before = gaps.through


def test_one_open_number_under_a_million_complete_ones_costs_next_to_nothing() -> None:
    gaps = Gaps()
    for number in range(1, 100_000):
        gaps.complete(number)
    gaps.complete_range(100_000, 10**12)
    assert gaps.through == 0
    assert gaps.entries <= 4
    assert gaps.complete(0)
    assert gaps.through == 10**12
    assert gaps.entries == 0


def test_what_lies_below_the_start_is_an_error() -> None:
    gaps = Gaps(10)
    with pytest.raises(ValueError, match="below the start"):
        gaps.complete(9)
    with pytest.raises(ValueError, match="below the start"):
        gaps.complete_range(9, 12)
    assert gaps.through == 10
