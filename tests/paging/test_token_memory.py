import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.paging.token_memory import TokenMemory


def steps_until_found(start: int, successor: list[int], limit: int) -> int:
    memory = TokenMemory(str(start), limit)
    token = start
    for step in range(1, 10 * len(successor) + 10):
        token = successor[token]
        if memory.meets_again(str(token), something_new=False):
            return step
    raise AssertionError("never found")


def first_repetition(start: int, successor: list[int]) -> tuple[int, int, int]:
    """Steps to the first repeated token, the length of the approach, and that of the circle; by looking at
    all."""
    met = {start: 0}
    token, step = start, 0
    while True:
        token, step = successor[token], step + 1
        if token in met:
            return step, met[token], step - met[token]
        met[token] = step


GRAPHS = st.integers(1, 60).flatmap(
    lambda size: st.tuples(
        st.lists(st.integers(0, size - 1), min_size=size, max_size=size), st.integers(0, size - 1)
    )
)


@given(GRAPHS)
def test_every_circle_is_found_at_its_first_repetition(graph: tuple[list[int], int]) -> None:
    successor, start = graph
    assert steps_until_found(start, successor, limit=1000) == first_repetition(start, successor)[0]


@given(GRAPHS, st.integers(1, 10))
def test_beyond_its_limit_every_circle_is_still_found(graph: tuple[list[int], int], limit: int) -> None:
    successor, start = graph
    first, approach, length = first_repetition(start, successor)
    found = steps_until_found(start, successor, limit)
    assert first <= found <= limit + 3 * (approach + length) + 2


@given(st.lists(st.booleans(), min_size=1, max_size=80), GRAPHS, st.sampled_from([3, 1000]))
def test_only_what_came_since_the_last_new_event_counts(
    news: list[bool], graph: tuple[list[int], int], limit: int
) -> None:
    successor, token = graph
    memory = TokenMemory(str(token), limit)
    since_news = {token}
    for something_new in news:
        token = successor[token]
        if something_new:
            since_news = set()
        found = memory.meets_again(str(token), something_new=something_new)
        assert not found or token in since_news, "a circle was reported where no token came again"
        if found:
            return
        if limit == 1000:
            assert token not in since_news, "a circle was missed"
        since_news.add(token)


@pytest.mark.parametrize("pages", [1_000, 20_000])
def test_memory_does_not_grow_beyond_the_limit(pages: int) -> None:
    memory = TokenMemory(None, limit=100)
    for number in range(pages):
        assert not memory.meets_again(f"t{number}", something_new=False)
    assert sum(sys.getsizeof(getattr(memory, name)) for name in memory.__slots__) < 20_000
