"""A chain read for settling in the pipeline: what goes out, when, and where a reader stops."""

import pytest
from emission import EmittingRun, ids, promote

from gapless.errors import InvalidPage, RangeTrimmed, SourceUnavailable, TokenExpired
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, ChainState, Terminal
from gapless.settling.retrying import RetryPolicy
from gapless.store.records import Blocker
from gapless.testing import Crash, ScriptedPage, ScriptedSource, WorkerCrash


def pages_of(count: int, **last) -> dict:
    """`count` pages of one event each, certified, the last one the chain's end."""
    script = {}
    for n in range(count):
        following = None if n == count - 1 else f"t{n + 1}"
        script[None if n == 0 else f"t{n}"] = ScriptedPage(
            [(f"e{n}", n)], following, Bound.through(n), **(last if following is None else {})
        )
    return script


def test_pages_are_read_on_from_the_committed_token_and_numbered_from_its_sequence(bench):
    source = ScriptedSource({"a": pages_of(4)})
    first = EmittingRun(bench, source)
    promote(first.store, first.emit("a")[:2])
    again = EmittingRun(bench, source).emit("a")
    assert [(page.number, page.start_token, page.next_token) for page in again] == [
        (2, "t2", "t3"),
        (3, "t3", None),
    ]
    assert ids(again) == ["e2", "e3"]


def test_a_batch_reads_no_more_than_so_many_open_pages_and_says_nothing_of_it(bench):
    source = ScriptedSource({"a": pages_of(5)})
    out = EmittingRun(bench, source).emit("a", most=3)
    assert [page.is_page for page in out] == [True] * 3
    assert ("a", "t4") not in source.fetches


def test_a_batch_waits_for_no_promotion_of_what_it_has_emitted(bench):
    """A reader that did would wait for ever: its stage ends before the next one begins."""
    out = EmittingRun(bench, ScriptedSource({"a": pages_of(30)})).emit("a")
    assert len(out) == 30
    assert bench.clock.slept == []
    assert bench.chain("a").sequence == 0


def test_nothing_is_fetched_before_it_was_claimed(bench):
    source = ScriptedSource({"a": pages_of(5)})
    assert EmittingRun(bench, source).emit("a", claim=lambda: False) == []
    assert source.fetches == ()
    assert bench.chain("a").fencing_token == 0, "it is not even taken"


def test_a_claim_that_is_refused_ends_the_reading_after_the_page_before(bench):
    claims = iter([True, True, True, False])
    out = EmittingRun(bench, ScriptedSource({"a": pages_of(9)})).emit("a", claim=lambda: next(claims))
    assert ids(out) == ["e0", "e1"]


def test_a_chain_that_a_newer_run_has_is_not_read(bench):
    source = ScriptedSource({"a": pages_of(3)})
    old = EmittingRun(bench, source)
    EmittingRun(bench, source).emit("a")
    fetched = len(source.fetches)
    assert old.emit("a") == []
    assert len(source.fetches) == fetched


def test_events_that_have_a_receipt_are_told_and_are_not_to_be_applied_again(bench):
    source = ScriptedSource({"a": {None: ScriptedPage([("x", 1), ("y", 2), ("z", 3)])}})
    run = EmittingRun(bench, source)
    row = run.store.take(run.task("a").chain, run.task("a").fencing_token)
    assert run.store.record_receipts(row, {"y": "delivered", "z": "dead_lettered"})
    (page,) = run.emit("a")
    assert page.settled == {"y": Terminal.DELIVERED, "z": Terminal.DEAD_LETTERED}
    assert [event.id for event in page.events] == ["x"]


def test_a_source_that_fails_is_tried_again_where_it_stands_and_nothing_comes_twice(bench):
    script = pages_of(3)
    script["t1"] = [SourceUnavailable("HTTP 503", retry_after=7.0), script["t1"]]
    out = EmittingRun(bench, ScriptedSource({"a": script})).emit("a")
    assert ids(out) == ["e0", "e1", "e2"]
    assert bench.clock.slept == [7.0]


def test_after_its_attempts_the_reader_stops_behind_the_pages_that_went_out(bench):
    script = pages_of(3)
    script["t1"] = SourceUnavailable("HTTP 503", retry_after=1.0)
    source = ScriptedSource({"a": script})
    *pages, stop = EmittingRun(bench, source, retry=RetryPolicy(attempts=3)).emit("a")
    assert ids(pages) == ["e0"]
    assert (stop.stop.at_token, stop.stop.state, stop.stop.code) == (
        "t1",
        ChainState.HELD,
        "source_unavailable",
    )
    assert "503" in stop.stop.hint
    assert source.fetches.count(("a", "t1")) == 3


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (InvalidPage("no such path"), ChainState.HELD, "source_unavailable"),
        (RangeTrimmed("it is gone"), ChainState.GAP, "range_trimmed"),
        (TokenExpired("HTTP 410"), ChainState.GAP, "token_expired"),
    ],
)
def test_what_trying_again_does_not_help_stops_at_once(bench, error, state, code):
    script = pages_of(3)
    script["t1"] = error
    source = ScriptedSource({"a": script})
    *pages, stop = EmittingRun(bench, source).emit("a")
    assert ids(pages) == ["e0"]
    assert (stop.stop.at_token, stop.stop.state, stop.stop.code) == ("t1", state, code)
    assert source.fetches.count(("a", "t1")) == 1


def test_one_partitions_failure_leaves_the_others_to_be_read(bench):
    """An error that left the call would take the whole bundle with it, and everybody in it."""
    broken = {None: [RuntimeError("nobody knows what")]}
    source = ScriptedSource({"a": broken, "b": pages_of(2)})
    source.next_step = _raising(source.next_step)
    run = EmittingRun(bench, source)
    (stop,) = run.emit("a")
    assert stop.stop.state is ChainState.HELD
    assert ids(run.emit("b")) == ["e0", "e1"]


def _raising(next_step):
    def step(partition, token):
        found = next_step(partition, token)
        if isinstance(found, RuntimeError):
            raise found
        return found

    return step


def test_a_dead_token_at_the_committed_one_restarts_the_chain_at_its_bound(bench):
    script = pages_of(3)
    script["t1"] = TokenExpired("HTTP 410")
    script["since0"] = ScriptedPage([("e0", 0), ("e1", 1)], "t2", Bound.through(1), overlap=Bound.through(0))
    source = ScriptedSource({"a": script}, restarts={Bound.through(0): "since0"})
    first = EmittingRun(bench, source)
    *pages, stop = first.emit("a")
    assert stop.stop.state is ChainState.OPEN, "no gap: the next run restarts there"
    promote(first.store, pages)
    out = EmittingRun(bench, source).emit("a")
    assert [page.start_token for page in out] == ["since0", "t2"]
    assert bench.chain("a").page_token == "since0"


def test_a_worker_that_dies_has_promoted_nothing_and_the_next_one_reads_the_same(bench):
    script = pages_of(3)
    script["t1"] = [Crash(), script["t1"]]
    source = ScriptedSource({"a": script})
    with pytest.raises(WorkerCrash):
        EmittingRun(bench, source).emit("a")
    assert bench.chain("a").sequence == 0
    assert ids(EmittingRun(bench, source).emit("a")) == ["e0", "e1", "e2"]


def test_two_attempts_of_one_page_have_two_names(bench):
    source = ScriptedSource({"a": pages_of(3)})
    run = EmittingRun(bench, source)
    twice = [page.attempt for page in run.emit("a") + run.emit("a")]
    assert len(set(twice)) == 6


# --- routing generations ---


def assignments(*generations: str) -> list[Assignment]:
    listed = [ListedPartition(Partition("a", {}))]
    return [Assignment(listed, generation) for generation in generations]


def test_pages_that_name_no_generation_go_out_once_the_list_read_after_them_proves_it(bench):
    source = ScriptedSource({"a": pages_of(3)}, assignments=assignments("g1"))
    out = EmittingRun(bench, source).emit("a")
    assert [page.generation for page in out] == ["g1"] * 3
    assert ids(out) == ["e0", "e1", "e2"]


def test_pages_before_a_change_of_routing_that_they_do_not_name_never_go_out(bench):
    source = ScriptedSource({"a": pages_of(3)}, assignments=assignments("g1", "g2"))
    (stop,) = EmittingRun(bench, source).emit("a")
    assert (stop.stop.at_token, stop.stop.code) == (None, "membership_changed")


def test_pages_that_name_their_generation_go_out_at_once_and_another_one_stops(bench):
    script = pages_of(3)
    script = {
        token: ScriptedPage(page.events, page.next, page.certificate, generation="g1")
        for token, page in script.items()
    }
    script["t2"] = ScriptedPage([("e2", 2)], None, Bound.through(2), generation="g2")
    source = ScriptedSource({"a": script}, assignments=assignments("g1", "g2"))
    *pages, stop = EmittingRun(bench, source).emit("a")
    assert ids(pages) == ["e0", "e1"]
    assert (stop.stop.at_token, stop.stop.code) == ("t2", "membership_changed")


def test_a_held_chain_is_taken_up_again(bench):
    source = ScriptedSource({"a": pages_of(1)})
    run = EmittingRun(bench, source)
    row = run.store.take(run.task("a").chain, run.task("a").fencing_token)
    assert run.store.hold(row, ChainState.HELD, Blocker("source_unavailable", "HTTP 503"))
    assert ids(EmittingRun(bench, source).emit("a")) == ["e0"]
