"""Laws of the cap."""

from hypothesis import given
from hypothesis import strategies as st

from gapless.progress import NO_CAP, Bound, IntegerDomain
from gapless.store.cap import first_cap, next_cap

bounds = st.none() | st.builds(Bound, st.integers(0, 9), st.booleans())
looks = st.lists(st.tuples(bounds, st.booleans(), bounds), max_size=12)
key = IntegerDomain().key


@given(bounds, looks)
def test_the_frontier_never_passes_a_cap_and_a_certified_list_covers_it(first, looks):
    """Whatever the lists say, and however far the members come in between."""
    cap, certified = first_cap(None if first is None else key(first))
    frontier = key(None)
    best = None if first is None else key(first)
    for list_bound, unproven, minimum in looks:
        frontier = max(frontier, min(key(minimum), cap))
        seen = None if list_bound is None else key(list_bound)
        before = cap
        cap, certified = next_cap(cap, certified, frontier, seen, unproven)
        if seen is not None and not unproven:
            best = seen if best is None else max(best, seen)
        assert cap >= frontier
        if unproven:
            assert cap <= before, "nobody unproven ever raises a cap"
        if certified:
            assert best is not None
            assert frontier <= best, "some list of members alone was certified that far"


@given(bounds)
def test_a_first_list_without_a_certificate_is_frozen_without_a_cap(bound):
    assert first_cap(None) == (NO_CAP, False)
    if bound is not None:
        assert first_cap(key(bound)) == (key(bound), True)
