"""How passes are paced: small first, then long enough to cost next to nothing, with as many readers as waiting asks for."""

from hypothesis import given
from hypothesis import strategies as st

from gapless.settling.worker import Tally
from gapless_pipelines.pacing import LONGEST_PASS, Pace, first_pace, next_pace, workers_for


def test_the_first_pass_reads_little_of_every_chain() -> None:
    limit = first_pace(list_seconds=0.001, most=8).limit(chains=100, feeds=8)
    assert limit.pages == 2
    assert limit.patience is not None


def test_a_source_that_is_slow_to_list_its_partitions_is_read_by_many_from_the_start() -> None:
    assert first_pace(list_seconds=0.05, most=8).workers == 8
    assert first_pace(list_seconds=0.002, most=8).workers == 1


def test_a_pass_is_long_against_what_it_costs_by_itself() -> None:
    pace = next_pace(
        Pace(seconds=1, workers=1, pages=2), wall=0.65, tally=Tally(waited=0.1, worked=0.4, pages=16), most=8
    )
    assert pace.pages is None
    assert pace.seconds >= 20 * 0.15


def test_passes_grow_to_a_longest_one() -> None:
    pace = Pace(seconds=1, workers=1, pages=2)
    lengths = []
    for _ in range(8):
        wall = pace.seconds + 0.1
        pace = next_pace(pace, wall, Tally(worked=pace.seconds, pages=100), most=8)
        lengths.append(pace.seconds)
    assert lengths == sorted(lengths)
    assert lengths[-1] == LONGEST_PASS


def test_where_nothing_came_patience_grows_and_everyone_reads() -> None:
    pace = Pace(seconds=5, workers=1, patience=0.5)
    slower = next_pace(pace, wall=1.0, tally=Tally(waited=0.9), most=8)
    assert slower.patience == 1.0
    assert slower.workers == 8
    for _ in range(20):
        slower = next_pace(slower, wall=1.0, tally=Tally(waited=0.9), most=8)
    assert slower.patience == 30.0


@given(st.floats(0, 1e4), st.integers(0, 10**6), st.integers(1, 64))
def test_there_is_always_a_reader_and_never_more_than_allowed(fetching: float, pages: int, most: int) -> None:
    assert 1 <= workers_for(fetching, pages, most) <= most


@given(st.floats(0.01, 30), st.integers(1, 16), st.integers(1, 10_000))
def test_a_slice_is_never_empty(seconds: float, workers: int, chains: int) -> None:
    limit = Pace(seconds=seconds, workers=workers).limit(chains, feeds=8)
    assert limit.seconds is not None
    assert limit.seconds > 0


def test_a_slow_source_is_read_by_many_also_where_its_pages_had_been_fetched_ahead() -> None:
    first = first_pace(list_seconds=0.01, most=8)
    ahead = Tally(waited=0.0, worked=0.02, fetching=16 * 0.05, pages=16)
    assert next_pace(first, wall=0.3, tally=ahead, most=8).workers == 8
