from hypothesis import given
from hypothesis import strategies as st

from gapless.paging.novelty import Novelty

PAGES = st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=6), max_size=8)


@given(PAGES)
def test_an_event_is_new_above_the_highest_position_or_unmet_at_it(
    pages: list[list[tuple[int, int]]],
) -> None:
    novelty = Novelty()
    met: set[tuple[int, int]] = set()
    for page in pages:
        top = max((position for _, position in met), default=-1)
        expected = any(
            position > top or (position == top and (i, position) not in met) for i, position in page
        )
        assert novelty.take([str(i) for i, _ in page], [position for _, position in page]) is expected
        met |= set(page)
        assert novelty.highest == max((position for _, position in met), default=None)
        for i, position in met:
            assert novelty.knows(str(i), position) is (position == novelty.highest)


def test_beyond_its_limit_events_at_one_position_no_longer_count_as_new() -> None:
    novelty = Novelty(limit=3)
    assert novelty.take(["a", "b"], [1, 1])
    assert novelty.take(["c", "d"], [1, 1])
    assert not novelty.take(["e"], [1])
    assert novelty.take(["e"], [2])
