import pickle
from datetime import timedelta

import pytest

from gapless.errors import SourceUnavailable
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition, Range, Source
from gapless.progress import Bound, Certificate
from gapless.testing import Crash, ManualClock, ScriptedPage, ScriptedSource, WorkerCrash

EU = Partition("eu", {})


def test_pages_come_as_the_script_says() -> None:
    source: Source = ScriptedSource(
        {"eu": {None: ScriptedPage([("a", 1, {"x": 1}), ("b", 2)], next="t1", certificate=Bound.through(2))}}
    )
    page = source.open().fetch(EU, None)
    assert (page.ids, page.positions, page.next_token, page.end) == (["a", "b"], [1, 2], "t1", False)
    assert page.rows == [{"x": 1}, {"id": "b", "position": 2}]
    assert page.certificate == Certificate(Bound.through(2), "script")
    assert [one.partition for one in source.open().assignment().partitions] == [EU]


def test_each_fetch_of_a_token_meets_the_next_step_and_the_last_one_stays() -> None:
    source = ScriptedSource(
        {"eu": {"t": [SourceUnavailable("down"), Crash(), ScriptedPage(), ScriptedPage(next="u")]}}
    )
    session = source.open()
    with pytest.raises(SourceUnavailable, match="down"):
        session.fetch(EU, "t")
    with pytest.raises(WorkerCrash):
        session.fetch(EU, "t")
    assert [session.fetch(EU, "t").end for _ in range(3)] == [True, False, False]
    assert source.fetches == (("eu", "t"),) * 5


def test_a_pickled_copy_goes_on_where_the_original_stands() -> None:
    source = ScriptedSource({"eu": {None: [Crash(), ScriptedPage()]}}, range=Range(0, 5))
    with pytest.raises(WorkerCrash):
        source.open().fetch(EU, None)
    copy = pickle.loads(pickle.dumps(source))
    assert copy.open().fetch(EU, None).end
    assert copy.fetches == source.fetches
    assert (copy.range, copy.identity()) == (source.range, source.identity())


def test_no_except_exception_survives_a_crash() -> None:
    assert not issubclass(WorkerCrash, Exception)


def test_lists_are_met_in_turn_and_each_reading_of_the_generation_is_one() -> None:
    lists = [Assignment([ListedPartition(EU)], generation) for generation in ("r1", "r2")]
    session = ScriptedSource({"eu": {}}, assignments=lists).open()
    assert [session.assignment().generation, session.generation(), session.generation()] == ["r1", "r2", "r2"]
    with pytest.raises(SourceUnavailable):
        ScriptedSource({}, assignments=[SourceUnavailable("no list")]).open().assignment()


def test_what_the_script_does_not_hold_is_a_mistake_of_the_test() -> None:
    session = ScriptedSource({"eu": {None: ScriptedPage()}}).open()
    with pytest.raises(AssertionError, match="holds nothing"):
        session.fetch(EU, "t9")
    session.close()
    with pytest.raises(AssertionError, match="closed"):
        session.fetch(EU, None)


def test_restarts_are_given_for_their_bounds() -> None:
    source = ScriptedSource({}, restarts={Bound.through(4): "since 4"})
    assert source.restart_token(Bound.through(4)) == "since 4"
    assert source.restart_token(Bound.before(4)) is None


def test_a_manual_clock_moves_only_when_it_is_told_to() -> None:
    clock = ManualClock()
    began = clock.now()
    clock.sleep(2.5)
    clock.advance(60)
    assert clock.now() - began == timedelta(seconds=62.5)
    assert clock.monotonic() == 62.5
    assert clock.slept == [2.5]
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)
