"""The rule of the delivery frontier against all rows, and what follows from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.progress import (
    Bound,
    CoverCode,
    DeliveryBlocker,
    DeliveryFrontier,
    Scalar,
    Withheld,
    delivered_through,
    judge_cover,
    table_frontier,
)

ROWS = st.dictionaries(st.integers(1, 40), st.booleans(), max_size=40)
IDS = st.integers(0, 45)


def of_rows(rows: dict[int, bool], coverage: int, settled: int | None) -> int:
    """By all rows: id -> whether it is terminal."""
    inside = [id_ for id_ in rows if settled is not None and coverage < id_ <= settled]
    still_open = [id_ for id_ in inside if not rows[id_]]
    return delivered_through(coverage, settled, min(still_open, default=None), max(inside, default=None))


@given(rows=ROWS, coverage=IDS, settled=st.none() | IDS)
def test_no_row_above_coverage_and_at_or_below_the_frontier_is_open(
    rows: dict[int, bool], coverage: int, settled: int | None
) -> None:
    through = of_rows(rows, coverage, settled)
    assert through >= coverage
    assert all(rows[id_] for id_ in rows if coverage < id_ <= through)
    assert through <= max(coverage, settled or 0)


@given(rows=ROWS, coverage=IDS, settled=IDS)
def test_it_is_as_high_as_the_rows_allow(rows: dict[int, bool], coverage: int, settled: int) -> None:
    through = of_rows(rows, coverage, settled)
    beyond = [id_ for id_ in rows if through < id_ <= settled]
    assert not beyond or not rows[min(beyond)], "the next row is open, or there is none"


@given(rows=ROWS, coverage=IDS, settled=IDS, further=IDS)
def test_more_that_is_settled_never_lowers_it(
    rows: dict[int, bool], coverage: int, settled: int, further: int
) -> None:
    assert of_rows(rows, coverage, settled) <= of_rows(rows, coverage, max(settled, further))


@given(rows=ROWS, coverage=IDS, settled=IDS, later=st.dictionaries(st.integers(1, 60), st.booleans()))
def test_rows_that_appear_above_the_settled_id_do_not_matter(
    rows: dict[int, bool], coverage: int, settled: int, later: dict[int, bool]
) -> None:
    appeared = {id_: terminal for id_, terminal in later.items() if id_ > settled}
    assert of_rows({**rows, **appeared}, coverage, settled) == of_rows(rows, coverage, settled)


@given(rows=ROWS, settled=IDS, shards=st.lists(st.sampled_from("abc"), min_size=41, max_size=41))
def test_the_table_is_complete_below_the_first_open_row_of_any_shard(
    rows: dict[int, bool], settled: int, shards: list[str]
) -> None:
    bounds = {}
    for shard in {shards[id_] for id_ in rows}:
        own = {id_: terminal for id_, terminal in rows.items() if shards[id_] == shard}
        still_open = [id_ for id_ in own if not own[id_] and id_ <= settled]
        blocker = DeliveryBlocker("non_terminal", id=min(still_open)) if still_open else None
        bounds[shard] = DeliveryFrontier(shard, 0, of_rows(own, 0, settled), blocker, settled).complete
    value = table_frontier(dict(bounds), settled)
    if not rows:
        assert isinstance(value, Withheld)
        return
    still_open = [id_ for id_ in rows if not rows[id_] and id_ <= settled]
    assert isinstance(value, Scalar)
    assert value.bound == Bound.through(min(still_open) - 1 if still_open else settled)


@given(wishes=st.lists(st.tuples(IDS, IDS), max_size=30))
def test_covered_ranges_are_a_chain_whatever_workers_wish(wishes: list[tuple[int, int]]) -> None:
    coverage, ranges = 0, []
    for after, through in wishes:
        if judge_cover(coverage, None, after, through) is CoverCode.OK:
            ranges.append((after, through))
            coverage = through
    assert [after for after, _ in ranges] == [0, *(through for _, through in ranges)][: len(ranges)]


def test_a_shard_without_a_known_settled_id_is_complete_through_its_frontier_alone() -> None:
    assert DeliveryFrontier("a", 3, 7).complete == Bound.through(7)


def test_a_writer_does_not_keep_the_shard_from_being_complete_through_what_is_settled() -> None:
    held = DeliveryFrontier("a", 3, 7, DeliveryBlocker("open_writer", pid=1), settled=90)
    assert held.complete == Bound.through(90)


def test_other_codes_than_the_documented_ones_are_refused() -> None:
    with pytest.raises(ValueError, match="none of the documented blocker codes"):
        DeliveryBlocker("busy")
