"""A chain read as a stream for settling in the pipeline: when it is called again, when it pauses, and what it reads again."""

from datetime import timedelta
from itertools import pairwise

import pytest
from emission import POLLING, EmittingRun, ids, promote
from streamed_script import growing, idle, pages_from

from gapless.errors import InvalidPage, SourceUnavailable, TokenExpired
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition, Range
from gapless.progress import Bound, ChainState
from gapless.settling.retrying import RetryPolicy
from gapless.settling.stream_state import STUCK_SECONDS, StreamState
from gapless.store.records import Blocker
from gapless.testing import ScriptedPage, ScriptedSource


def test_a_stream_reads_on_where_it_left_while_nothing_is_promoted(bench):
    source = ScriptedSource(
        {"a": {**growing(3), "t3": [idle("t3"), idle("t3"), *growing(1, first=3).values()], "t4": idle("t4")}}
    )
    stream = EmittingRun(bench, source).stream("a")
    stream.poll()
    assert (ids(stream.out), stream.due) == (["e0", "e1", "e2"], 1.0)
    assert stream.wait().poll() == []
    assert ids(stream.wait().poll()) == ["e3"]
    assert [page.number for page in stream.out] == [0, 1, 2, 3]
    assert bench.chain("a").sequence == 0


def test_it_is_called_later_and_later_while_nothing_comes_and_soon_again_when_something_has(bench):
    script = {None: [idle(None)] * 6 + [ScriptedPage([("e0", 0)], "t1", caught_up=True)], "t1": idle("t1")}
    stream = EmittingRun(bench, ScriptedSource({"a": script})).stream("a")
    dues = []
    for _ in range(9):
        stream.poll()
        dues.append(stream.due)
        stream.wait()
    assert dues == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 1.0, 2.0, 4.0]


def test_an_idle_page_does_not_go_out_and_a_higher_bound_without_events_does(bench):
    script = {
        None: ScriptedPage([("e0", 0)], "t1", Bound.through(0), caught_up=True),
        "t1": [
            ScriptedPage((), "t1", Bound.through(0), caught_up=True),
            ScriptedPage((), "t1", Bound.through(5), caught_up=True),
            ScriptedPage((), "t1", Bound.through(5), caught_up=True),
        ],
    }
    stream = EmittingRun(bench, ScriptedSource({"a": script})).stream("a")
    for _ in range(5):
        stream.poll()
        stream.wait()
    assert [(page.number, page.start_token, page.next_token) for page in stream.out] == [
        (0, None, "t1"),
        (1, "t1", "t1"),
    ]
    promote(bench.store, stream.out)
    assert bench.chain("a").bound == Bound.through(5)


def test_it_pauses_while_too_many_pages_are_open_and_drops_none(bench):
    source = ScriptedSource({"a": {**growing(9), "t9": idle("t9")}})
    stream = EmittingRun(bench, source).stream("a", max_open_pages=4)
    stream.poll()
    assert len(stream.out) == 4
    for _ in range(3):
        assert stream.wait().poll() == []
    assert 0 < stream.due < POLLING.every
    promote(bench.store, stream.out[:3])
    assert ids(stream.wait().poll()) == ["e4", "e5", "e6"]
    promote(bench.store, stream.out[3:])
    assert ids(stream.wait().poll()) == ["e7", "e8"]
    assert ids(stream.out) == [f"e{n}" for n in range(9)]


def test_pages_that_stay_open_for_too_long_are_read_again_and_each_time_after_twice_as_long(bench):
    source = ScriptedSource({"a": {**growing(3), "t3": idle("t3")}})
    stream = EmittingRun(bench, source).stream("a")
    stream.poll()
    began = bench.clock.monotonic()
    times = []
    while len(times) < 3:
        if stream.wait().poll():
            times.append(bench.clock.monotonic() - began)
            began = bench.clock.monotonic()
    assert ids(stream.out) == ["e0", "e1", "e2"] * 4
    for time, least in zip(times, (STUCK_SECONDS, 2 * STUCK_SECONDS, 4 * STUCK_SECONDS), strict=True):
        assert least <= time <= least + 2 * POLLING.longest
    attempts = {page.attempt for page in stream.out}
    assert len(attempts) == len(stream.out)
    promote(bench.store, stream.out[-3:])
    for _ in range(20):
        assert stream.wait().poll() == [], "nothing is open any more"


def test_what_is_read_again_is_less_each_time_so_that_it_never_adds_up(bench):
    source = ScriptedSource({"a": {**growing(9), "t9": idle("t9")}})
    stream = EmittingRun(bench, source).stream("a", max_open_pages=8)
    read = [ids(stream.poll())]
    while len(read) < 6:
        if again := stream.wait().poll():
            read.append(ids(again))
    assert [len(pages) for pages in read] == [8, 4, 2, 1, 1, 1]
    assert {pages[0] for pages in read} == {"e0"}
    promote(bench.store, stream.out[-1:])
    assert len(stream.wait().poll()) == 8, "it goes on in full once it gets on"


def test_a_chain_that_was_idle_for_long_is_not_stuck_when_its_next_page_is_open(bench):
    script = {**growing(1), "t1": [idle("t1")] * 20 + list(growing(1, first=1).values()), "t2": idle("t2")}
    stream = EmittingRun(bench, ScriptedSource({"a": script})).stream("a")
    stream.poll()
    promote(bench.store, stream.out)
    while len(stream.out) == 1:
        stream.wait().poll()
    emitted = bench.clock.monotonic()
    assert emitted > 4 * STUCK_SECONDS
    for _ in range(3):
        assert stream.wait().poll() == []
    while not stream.wait().poll():
        pass
    assert STUCK_SECONDS <= bench.clock.monotonic() - emitted <= STUCK_SECONDS + 2 * POLLING.longest


def test_a_circle_of_tokens_longer_than_a_slice_is_found(bench):
    around = {f"t{n}": ScriptedPage((), f"t{(n + 1) % 100}") for n in range(100)}
    source = ScriptedSource({"a": {None: ScriptedPage((), "t0"), **around}})
    stream = EmittingRun(bench, source).stream("a", max_open_pages=10_000)
    stops = []
    for _ in range(40):
        stops += [page.stop.code for page in stream.poll() if page.stop]
        if stops:
            break
        stream.wait()
    assert stops == ["token_cycle"]


def test_it_reads_on_from_the_row_where_that_does_not_stand_on_its_path(bench):
    """A twin has read other pages, and its were promoted."""
    script = {**growing(3), "t3": idle("t3"), "u": ScriptedPage([("e2", 2)], "t3", caught_up=True)}
    run = EmittingRun(bench, ScriptedSource({"a": script}))
    stream = run.stream("a")
    stream.poll()
    twin = ScriptedPage([("e0", 0), ("e1", 1)], "u")
    mine = stream.out[0]
    promote(
        run.store,
        [type(mine)(mine.task, "twin", 0, None, twin.next, ["e0", "e1"], [0, 1], [{}, {}])],
    )
    (again,) = stream.wait().poll()
    assert (again.number, again.start_token, again.ids) == (1, "u", ["e2"])


def test_a_row_that_a_twin_has_taken_further_is_read_on_from(bench):
    run = EmittingRun(bench, ScriptedSource({"a": {**growing(4), "t4": idle("t4")}}))
    slow, fast = run.stream("a", max_open_pages=2), run.stream("a")
    slow.poll()
    fast.poll()
    promote(run.store, fast.out)
    assert slow.wait().poll() == []
    assert slow.state.point.token == "t4"


@pytest.mark.parametrize("pages", [1, 3, 6])
def test_pages_are_numbered_anew_where_a_twin_has_cut_them_otherwise(bench, pages):
    """It has come to the same token with another sequence."""
    script = {**growing(4), "t4": [idle("t4")] * 2 + list(growing(1, first=4).values()), "t5": idle("t5")}
    run = EmittingRun(bench, ScriptedSource({"a": script}))
    stream = run.stream("a")
    stream.poll()
    mine = stream.out[0]
    tokens = [None, *(f"u{n}" for n in range(1, pages)), "t4"]
    promote(
        run.store,
        [
            type(mine)(mine.task, f"twin {n}", n, start, following)
            for n, (start, following) in enumerate(pairwise(tokens))
        ],
    )
    while len(stream.out) == 4:
        stream.wait().poll()
    assert (stream.out[-1].ids, stream.out[-1].number) == (["e4"], pages)
    assert bench.chain("a").sequence == pages


def test_the_state_that_was_lost_costs_a_rereading_and_nothing_else(bench):
    run = EmittingRun(bench, ScriptedSource({"a": {**growing(3), "t3": idle("t3")}}))
    first = run.stream("a")
    first.poll()
    promote(run.store, first.out[:1])
    again = run.stream("a")
    assert ids(again.poll()) == ["e1", "e2"]


def test_it_ends_where_a_newer_run_has_the_chain(bench):
    source = ScriptedSource({"a": {**growing(1), "t1": idle("t1")}})
    stream = EmittingRun(bench, source).stream("a")
    stream.poll()
    EmittingRun(bench, source).emit("a")
    fetched = len(source.fetches)
    assert stream.wait().poll() == []
    assert stream.due is None
    assert len(source.fetches) == fetched


def test_it_ends_where_the_chain_has_ended_and_not_before_its_last_page_is_promoted(bench):
    source = ScriptedSource({"a": pages_from(3)})
    stream = EmittingRun(bench, source).stream("a")
    stream.poll()
    for _ in range(5):
        assert stream.wait().poll() == []
    promote(bench.store, stream.out)
    assert stream.wait().poll() == []
    assert stream.due is None


def test_last_pages_that_were_lost_are_read_again_too(bench):
    stream = EmittingRun(bench, ScriptedSource({"a": pages_from(3)})).stream("a")
    stream.poll()
    while not stream.wait().poll():
        assert stream.due is not None
    assert ids(stream.out) == ["e0", "e1", "e2"] * 2


def test_it_ends_at_the_proved_end_of_its_range(bench):
    source = ScriptedSource({"a": {**growing(4), "t4": idle("t4")}}, range=Range(stop=2))
    stream = EmittingRun(bench, source).stream("a")
    stream.poll()
    assert ids(stream.out) == ["e0", "e1", "e2"]
    promote(bench.store, stream.out)
    stream.wait().poll()
    assert stream.due is None


def test_a_source_that_fails_is_asked_again_later_and_nobody_waits_in_the_call(bench):
    script = {**growing(2), "t2": idle("t2")}
    script["t1"] = [SourceUnavailable("HTTP 503", retry_after=5.0), script["t1"]]
    stream = EmittingRun(bench, ScriptedSource({"a": script})).stream("a")
    stream.poll()
    assert (ids(stream.out), stream.due) == (["e0"], 5.0)
    assert bench.clock.slept == []
    assert ids(stream.wait().poll()) == ["e1"]


def test_it_goes_on_trying_after_the_attempts_of_a_batch_and_says_when(bench):
    script = {**growing(2), "t2": idle("t2")}
    broken = SourceUnavailable("HTTP 503", retry_after=1.0)
    script["t1"] = [broken] * 5 + [script["t1"]]
    retry = RetryPolicy(attempts=2, maximum=60.0)
    run = EmittingRun(bench, ScriptedSource({"a": script}), retry=retry)
    stream = run.stream("a")
    stream.poll()
    promote(run.store, stream.out)
    stops, dues = [], []
    while len(stream.out) == 1:
        stops += [page.stop for page in stream.wait().poll() if page.stop]
        assert stream.due is not None
        dues.append(stream.due)
    assert dues[:3] == [POLLING.held] * 3
    assert {(stop.at_token, stop.state) for stop in stops} == {("t1", ChainState.HELD)}
    assert all(stop.retry_at is not None for stop in stops)
    assert ids(stream.out) == ["e0", "e1"]


def test_a_held_chain_is_left_alone_until_its_time_and_then_taken_up_again(bench):
    run = EmittingRun(bench, ScriptedSource({"a": {**growing(1), "t1": idle("t1")}}))
    stream = run.stream("a")
    stream.refuse_after = 1
    stream.poll()
    row = run.store.chain(stream._task.chain)
    retry_at = bench.clock.now() + timedelta(seconds=20)
    assert run.store.hold(row, ChainState.HELD, Blocker("source_unavailable", "HTTP 503", retry_at=retry_at))
    stream.refuse_after = None
    assert stream.poll() == []
    assert 0 < stream.due <= POLLING.longest
    while not stream.out:
        stream.wait().poll()
    assert bench.clock.now() >= retry_at
    assert bench.chain("a").state is ChainState.OPEN


def test_a_gap_is_never_read_and_never_given_up_on(bench):
    run = EmittingRun(bench, ScriptedSource({"a": growing(1)}))
    stream = run.stream("a")
    row = run.store.take(stream._task.chain, stream._task.fencing_token)
    assert run.store.hold(row, ChainState.GAP, Blocker("range_trimmed", "gone"))
    assert stream.poll() == []
    assert stream.due == POLLING.longest


def test_what_asking_again_hardly_helps_is_asked_again_rarely(bench):
    script = {**growing(2)}
    script["t1"] = InvalidPage("no such path")
    source = ScriptedSource({"a": script})
    stream = EmittingRun(bench, source).stream("a")
    (_, stop) = stream.poll()
    assert stop.stop.code == "source_unavailable"
    assert stream.due == 600.0


def test_a_dead_token_waits_for_the_pages_before_it_and_then_restarts(bench):
    script = {**growing(1), "t1": TokenExpired("HTTP 410")}
    script["since0"] = ScriptedPage([("e0", 0)], "t2", Bound.through(0), overlap=Bound.through(0))
    script["t2"] = idle("t2")
    source = ScriptedSource({"a": script}, restarts={Bound.through(0): "since0"})
    stream = EmittingRun(bench, source).stream("a")
    stream.poll()
    assert [page.stop for page in stream.wait().poll()] == []
    promote(bench.store, stream.out)
    while len(stream.out) == 1:
        assert [page.stop for page in stream.wait().poll() if page.stop] == []
    assert stream.out[1].start_token == "since0"
    assert stream.state.point.token == "t2"


def test_a_dead_token_without_a_restart_is_a_gap_once_everything_before_it_is_promoted(bench):
    script = {**growing(1), "t1": TokenExpired("HTTP 410")}
    stream = EmittingRun(bench, ScriptedSource({"a": script})).stream("a")
    stream.poll()
    promote(bench.store, stream.out)
    (stop,) = stream.wait().poll()
    assert (stop.stop.at_token, stop.stop.state) == ("t1", ChainState.GAP)


def test_a_split_before_pages_go_out_leaves_them_to_whoever_reads_on(bench):
    """A page belongs to whoever could claim what comes after it: here it goes out once, not twice and not never."""
    run = EmittingRun(bench, ScriptedSource({"a": {**growing(4), "t4": idle("t4")}}))
    for allowed in range(12):
        stream = run.stream("a")
        stream.refuse_after = allowed
        stream.poll()
        rest = run.stream("a")
        rest.state = stream.state
        rest.poll()
        assert ids(stream.out + rest.out) == ["e0", "e1", "e2", "e3"]


def test_pages_of_an_unproven_generation_do_not_wait_for_the_next_call(bench):
    listed = [ListedPartition(Partition("a", {}))]
    source = ScriptedSource(
        {"a": {**growing(2), "t2": idle("t2")}},
        assignments=[Assignment(listed, "g1"), Assignment(listed, "g1"), Assignment(listed, "g2")],
    )
    stream = EmittingRun(bench, source).stream("a")
    assert ids(stream.poll()) == ["e0", "e1"]
    assert {page.generation for page in stream.out} == {"g1"}


@pytest.mark.parametrize("change", ["generation", "token"])
def test_a_state_that_does_not_fit_the_row_any_more_is_begun_anew(bench, change):
    run = EmittingRun(bench, ScriptedSource({"a": {**growing(2), "t2": idle("t2")}}))
    stream = run.stream("a")
    stream.poll()
    row = run.store.chain(stream._task.chain)
    now = bench.clock.now()
    assert stream.state.met(row, now).open_pages == 2
    other = type(row)(
        **{**_fields(row), **({"generation": "g9"} if change == "generation" else {"page_token": "x"})}
    )
    anew = stream.state.met(other, now)
    assert (anew.open_pages, anew.point.token, anew.generation) == (0, other.page_token, other.generation)


def _fields(row):
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def test_nothing_is_open_at_the_start():
    assert StreamState().open_pages == 0
