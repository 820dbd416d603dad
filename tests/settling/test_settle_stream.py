"""A chain settled in place as a stream: what a call settles, and when the next one is due."""

import pytest
from emission import POLLING
from streamed_script import growing, idle, pages_from

from gapless.errors import SourceUnavailable
from gapless.paging.source import Range
from gapless.progress import Bound, ChainState
from gapless.settling.retrying import RetryPolicy
from gapless.settling.settle_stream import settle_slice
from gapless.settling.stream_calls import slice_among
from gapless.store.records import DeadLetter
from gapless.testing import ScriptedSource


class Settling:
    """Chain `a` of a stream that is settled in place, call by call."""

    def __init__(self, bench, source, **options):
        self.run = bench.run(source, local=True, **options)
        self.clock = bench.clock
        self.task = self.run.plan.tasks[0]
        self.idle = 0
        self.due = 0.0

    def call(self, claim=lambda: True):
        calls = settle_slice(self.run.worker, self.task, self.idle, claim, POLLING, slice_among(1))
        out = []
        while True:
            try:
                out.append(next(calls))
            except StopIteration as end:
                self.due, self.idle = end.value
                return out

    def wait(self):
        self.clock.sleep(self.due)
        return self


def test_a_call_settles_what_is_there_and_the_next_ones_come_later_and_later(bench):
    script = {**growing(3), "t3": [idle("t3")] * 4 + list(growing(1, first=3).values()), "t4": idle("t4")}
    settling = Settling(bench, ScriptedSource({"a": script}))
    settling.call()
    assert bench.data() == {"a": ["e0", "e1", "e2"]}
    dues = [settling.due]
    for _ in range(5):
        settling.wait().call()
        dues.append(settling.due)
    assert dues == [1.0, 2.0, 4.0, 8.0, 1.0, 2.0]
    assert bench.data() == {"a": ["e0", "e1", "e2", "e3"]}
    assert bench.chain("a").bound == Bound.through(3)


def test_a_slice_with_more_behind_it_is_followed_at_once(bench):
    settling = Settling(bench, ScriptedSource({"a": {**growing(200), "t200": idle("t200")}}))
    settling.call()
    assert settling.due == 0.0
    assert 0 < bench.chain("a").sequence < 200
    while settling.due == 0.0:
        settling.call()
    assert bench.chain("a").sequence == 200


def test_nothing_is_fetched_before_it_was_claimed(bench):
    source = ScriptedSource({"a": growing(3)})
    settling = Settling(bench, source)
    assert settling.call(claim=lambda: False) == []
    assert source.fetches == ()


@pytest.mark.parametrize(("script", "stop"), [(pages_from(3), None), ({**growing(5), "t5": idle("t5")}, 2)])
def test_it_ends_where_the_chain_or_its_range_has_ended(bench, script, stop):
    settling = Settling(bench, ScriptedSource({"a": script}, range=Range(stop=stop)))
    while settling.due is not None:
        settling.wait().call()
    assert bench.data() == {"a": ["e0", "e1", "e2"]}


def test_it_ends_where_a_newer_run_has_the_chain(bench):
    source = ScriptedSource({"a": {**growing(1), "t1": idle("t1")}})
    settling = Settling(bench, source)
    settling.call()
    bench.run(source).settle("a")
    fetched = len(source.fetches)
    (told,) = settling.wait().call()
    assert (told.fencing_token, settling.due) == (2, None)
    assert len(source.fetches) == fetched


def test_an_event_that_fails_is_tried_again_at_its_time_and_held_meanwhile(bench):
    settling = Settling(bench, ScriptedSource({"a": {**growing(2), "t2": idle("t2")}}))
    bench.effect.failing["e1"] = 2
    settling.call()
    assert bench.chain("a").state is ChainState.HELD
    assert settling.due == 1.0
    held = [settling.due]
    while bench.chain("a").sequence < 2:
        settling.wait().call()
        held.append(settling.due)
    assert held[:2] == [1.0, 2.0]
    assert bench.data() == {"a": ["e0", "e1"]}


def test_after_the_attempts_of_a_batch_it_goes_on_trying(bench):
    script = {**growing(2), "t2": idle("t2")}
    script["t1"] = [SourceUnavailable("HTTP 503", retry_after=1.0)] * 6 + [script["t1"]]
    retry = RetryPolicy(attempts=2, maximum=60.0)
    settling = Settling(bench, ScriptedSource({"a": script}), retry=retry)
    dues = []
    while bench.chain("a").sequence < 2:
        settling.wait().call()
        dues.append(settling.due)
    assert POLLING.held in dues
    assert bench.data() == {"a": ["e0", "e1"]}


def test_dead_letters_are_told_as_in_a_batch(bench):
    settling = Settling(
        bench,
        ScriptedSource({"a": {**growing(2), "t2": idle("t2")}}),
        dead_letters=bench.letters,
        retry=RetryPolicy(attempts=1),
    )
    bench.effect.failing["e1"] = 9
    out = settling.call()
    assert [letter.event_id for letter in out if isinstance(letter, DeadLetter)] == ["e1"]
