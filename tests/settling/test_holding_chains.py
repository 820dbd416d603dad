"""A failing event holds its partition and only that one; dead letters and retry budgets."""

from datetime import timedelta

import pytest
from two_partitions import two_partitions

from gapless.errors import EffectError, SourceUnavailable
from gapless.progress import Bound, ChainState
from gapless.settling.retrying import RetryPolicy
from gapless.testing import ScriptedPage, ScriptedSource

THREE = RetryPolicy(attempts=3, backoff=1.0, maximum=60.0)
ALL = {"a": ["a1", "a2", "a3", "a4", "a5"], "b": ["b1"]}


@pytest.mark.parametrize("local", [False, True])
def test_a_failing_event_holds_its_partition_and_only_that_one(each_bench, local):
    each_bench.effect.failing["a4"] = None
    run = each_bench.run(two_partitions(), retry=RetryPolicy(attempts=1), local=local)
    run.settle_all()
    row = each_bench.chain("a")
    assert (row.state, row.sequence, row.bound) == (ChainState.HELD, 1, Bound.through(2))
    assert row.blocker is not None
    assert (row.blocker.code, row.blocker.event_id, row.blocker.position) == ("unsettled_event", "a4", 4)
    assert row.blocker.hint == "ValueError: a4"
    assert each_bench.chain("b").state is ChainState.ENDED
    assert each_bench.data() == {"a": ["a1", "a2"], "b": ["b1"]}
    assert each_bench.frontier() == Bound.through(2)


def test_within_one_call_a_failing_event_is_tried_as_often_as_the_policy_says_with_growing_waits(bench):
    bench.effect.failing["a4"] = 2
    bench.run(two_partitions(), retry=THREE).settle_all()
    assert bench.clock.slept == [1.0, 2.0]
    assert bench.data() == ALL
    bench.effect.failing["b1"] = 3


def test_within_one_call_the_budget_ends_and_the_chain_is_held_without_a_time(bench):
    bench.effect.failing["a4"] = 3
    bench.run(two_partitions(), retry=THREE).settle_all()
    assert bench.clock.slept == [1.0, 2.0]
    row = bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.blocker.retry_at) == (ChainState.HELD, None)
    assert bench.effect.failing["a4"] == 0, "tried three times"
    bench.run(two_partitions(), retry=THREE).settle_all()
    assert bench.data() == ALL, "the next run tries again"


def test_over_calls_a_failing_event_is_held_until_its_time_and_nobody_waits(bench):
    bench.effect.failing["a4"] = 2
    run = bench.run(two_partitions(), retry=THREE, local=True)
    for delay in (1.0, 2.0):
        run.settle("a")
        row = bench.chain("a")
        assert row.blocker is not None
        assert (row.state, row.blocker.retry_at) == (
            ChainState.HELD,
            bench.clock.now() + timedelta(seconds=delay),
        )
        bench.clock.advance(delay)
    run.settle("a")
    assert bench.clock.slept == []
    assert bench.data()["a"] == ALL["a"]


def test_over_calls_the_budget_ends_too(bench):
    bench.effect.failing["a4"] = None
    run = bench.run(two_partitions(), retry=THREE, local=True)
    times = []
    for _ in range(4):
        run.settle("a")
        row = bench.chain("a")
        assert row.blocker is not None
        times.append(row.blocker.retry_at is not None)
    assert times == [True, True, False, False]


def test_a_page_that_is_cut_elsewhere_at_each_fetch_gives_its_event_no_attempts_more(bench):
    """The event that fails moves from page to page as the pages before it are promoted; its budget goes with it."""
    source = ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1)], "t1", Bound.through(1)),
                "t1": [
                    ScriptedPage([("a2", 2), ("a3", 3), ("bad", 4)], None, Bound.through(4)),
                    ScriptedPage([("a2", 2)], "t2", Bound.through(2)),
                ],
                "t2": [
                    ScriptedPage([("a3", 3), ("bad", 4)], None, Bound.through(4)),
                    ScriptedPage([("a3", 3)], "t3", Bound.through(3)),
                ],
                "t3": ScriptedPage([("bad", 4)], None, Bound.through(4)),
            }
        }
    )
    bench.effect.failing["bad"] = 100
    run = bench.run(source, retry=THREE, local=True)
    for _ in range(3):
        run.settle("a")
    row = bench.chain("a")
    assert row.blocker is not None
    assert row.blocker.retry_at is None
    assert bench.effect.failing["bad"] == 97


@pytest.mark.parametrize("local", [False, True])
def test_a_dead_letter_is_terminal_counted_listed_and_kept(each_bench, local):
    each_bench.effect.failing["a4"] = None
    run = each_bench.run(two_partitions(), retry=THREE, dead_letters=each_bench.letters, local=local)
    for _ in range(3):
        run.settle_all()
    row = each_bench.chain("a")
    assert (row.state, row.dead_letters, row.events) == (ChainState.ENDED, 1, 5)
    assert each_bench.frontier() == Bound.through(9), "a dead letter is a terminal outcome"
    assert each_bench.data() == {"a": ["a1", "a2", "a3", "a5"], "b": ["b1"]}
    (letter,) = each_bench.store.dead_letters("scripted")
    assert (letter.partition, letter.sequence, letter.event_id, letter.position) == ("a", 1, "a4", 4)
    assert (letter.reason, letter.payload) == ("ValueError: a4", '{"id":"a4"}')
    assert letter.path is not None
    (record,) = each_bench.disk.dead[letter.path]
    assert dict(record.row) == {"id": "a4", "position": 4}
    assert each_bench.snapshot().totals.dead_letters == 1


def test_each_event_of_a_page_has_a_budget_of_its_own(bench):
    """An event that fails for the first time is not given up on because another one on its page was."""
    failures = {"a3": None, "a4": 0}
    bench.effect.failing.update(failures)

    def fail_a4_once_a3_is_out(page):
        if (
            "a4" in page.ids
            and bench.effect.failing["a4"] == 0
            and bench.clock.monotonic() >= 3.0
            and not begun
        ):
            begun.append(True)
            bench.effect.failing["a4"] = 1

    begun = []
    bench.effect.on_add = fail_a4_once_a3_is_out
    bench.run(two_partitions(), retry=THREE, dead_letters=bench.letters).settle_all()
    assert begun
    assert bench.dead() == ["a3"]
    assert bench.data()["a"] == ["a1", "a2", "a4", "a5"]


def test_drift_is_not_tried_again_but_held_or_dead_lettered_at_once(bench):
    bench.effect.code = "schema_drift"
    bench.effect.failing["a4"] = None
    bench.run(two_partitions(), retry=THREE).settle_all()
    row = bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.blocker.code) == (ChainState.HELD, "schema_drift")
    bench.run(two_partitions(), retry=THREE, dead_letters=bench.letters).settle_all()
    assert bench.dead() == ["a4"]
    assert bench.clock.slept == []


class Raises:
    """Raises `error` the first `times` times it is called, and does nothing afterwards (None: for ever)."""

    def __init__(self, error, times=None):
        self.error = error
        self.left = times

    def __call__(self, *_):
        if self.left is None:
            raise self.error
        if self.left > 0:
            self.left -= 1
            raise self.error


FOREIGN = [EffectError("no room"), ValueError("no room"), OSError(28, "no room"), KeyError("no room")]


@pytest.mark.parametrize("error", FOREIGN, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["on_add", "on_finish"])
def test_whatever_an_effect_raises_becomes_its_partitions_state_and_leaves_the_others_alone(
    bench, error, where
):
    """No error of an effect ends the job: the other partitions go on."""
    fail = Raises(error)
    if where == "on_add":
        bench.effect.on_add = lambda page: fail() if "a3" in page.ids else None
    else:
        bench.effect.on_finish = lambda when: (
            fail() if when == "before" and bench.chain("b").sequence == 0 else None
        )
    run = bench.run(two_partitions(), retry=THREE, target_rows=1)
    run.settle("a")
    row = bench.chain("a")
    assert row.state is ChainState.HELD
    assert row.blocker is not None
    assert row.blocker.code == "unsettled_event"
    assert "no room" in row.blocker.hint
    assert row.sequence == (1 if where == "on_add" else 0)
    bench.effect.on_finish = lambda when: None
    run.settle("b")
    assert bench.chain("b").state is ChainState.ENDED
    assert bench.disk.begun == bench.disk.ended


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("where", ["on_add", "on_finish"])
def test_an_effect_that_heals_within_the_budget_is_waited_for(bench, where, local):
    fail = Raises(OSError(28, "no space left"), times=2)
    setattr(bench.effect, where, lambda *_: fail())
    run = bench.run(two_partitions(), retry=THREE, local=local)
    for _ in range(3):
        run.settle("a")
    assert bench.data()["a"] == ALL["a"]
    assert bench.chain("a").events == 5


@pytest.mark.parametrize("local", [False, True])
def test_an_effect_that_does_not_heal_is_given_up_within_the_budget(bench, local):
    fail = Raises(OSError(28, "no space left"))
    bench.effect.on_finish = lambda *_: fail()
    run = bench.run(two_partitions(), retry=THREE, local=local)
    for _ in range(3):
        run.settle("a")
    row = bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.blocker.retry_at) == (ChainState.HELD, None)
    assert sum(bench.clock.slept) <= 3.0


def test_a_dead_letter_that_cannot_be_kept_drops_its_page_whole(bench):
    """The page is in the run already when its dead letter fails: nothing of it may be promoted with the pages before."""
    bench.letters.refuses = {"a4"}
    bench.letters.error = EffectError
    bench.effect.failing["a4"] = None
    bench.run(two_partitions(), retry=RetryPolicy(attempts=1), dead_letters=bench.letters).settle_all()
    assert bench.chain("a").sequence <= 1
    assert bench.chain("a").state is ChainState.HELD
    assert "a3" not in bench.data().get("a", [])
    bench.letters.refuses = set()
    bench.run(two_partitions(), retry=RetryPolicy(attempts=1), dead_letters=bench.letters).settle_all()
    assert bench.data() == {"a": ["a1", "a2", "a3", "a5"], "b": ["b1"]}
    assert bench.dead() == ["a4"]


@pytest.mark.parametrize("error", FOREIGN, ids=lambda error: type(error).__name__)
def test_whatever_a_dead_letter_writer_raises_becomes_the_partitions_state(bench, error):
    bench.letters.refuses = {"a4"}
    bench.letters.error = lambda event: error
    bench.effect.failing["a4"] = None
    bench.run(two_partitions(), retry=RetryPolicy(attempts=1), dead_letters=bench.letters).settle_all()
    assert bench.chain("a").state is ChainState.HELD
    assert bench.chain("b").state is ChainState.ENDED


def test_a_source_that_says_when_is_asked_again_then(bench):
    source = ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1)], "t1", Bound.through(1)),
                "t1": [
                    SourceUnavailable("HTTP 429", retry_after=90.0),
                    ScriptedPage([("a2", 2)], None, Bound.through(2)),
                ],
            }
        }
    )
    bench.run(source, retry=THREE).settle("a")
    assert bench.clock.slept == [90.0]
    assert bench.data() == {"a": ["a1", "a2"]}


def test_over_calls_a_source_that_says_when_holds_its_partition_until_then(bench):
    source = ScriptedSource({"a": {None: SourceUnavailable("HTTP 429", retry_after=90.0)}})
    run = bench.run(source, retry=THREE, local=True)
    seen = []
    for _ in range(3):
        run.settle("a")
        row = bench.chain("a")
        assert row.blocker is not None
        seen.append(row.blocker.retry_at)
    now = bench.clock.now()
    assert seen == [now + timedelta(seconds=90), now + timedelta(seconds=90), None]


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("seconds", [3600.5, 86_400.0, 1e20, float("inf")])
def test_a_source_that_wants_to_be_left_alone_for_long_is_left_to_a_later_run(bench, local, seconds):
    source = ScriptedSource(
        {
            "a": {None: SourceUnavailable("HTTP 429", retry_after=seconds)},
            "b": {None: ScriptedPage([("b1", 1)], None, Bound.through(9))},
        }
    )
    bench.run(source, retry=THREE, local=local).settle_all()
    row = bench.chain("a")
    assert (row.state, row.blocker and row.blocker.retry_at) == (ChainState.HELD, None)
    assert bench.clock.slept == []
    assert bench.chain("b").state is ChainState.ENDED


@pytest.mark.parametrize("error", [RuntimeError("odd"), KeyError("odd"), OSError(5, "odd")], ids=repr)
def test_whatever_a_source_raises_becomes_its_partitions_state(bench, error):
    class Odd(ScriptedSource):
        def next_step(self, partition, token):
            step = super().next_step(partition, token)
            if (partition, token) == ("a", "t1"):
                raise error
            return step

    source = Odd(
        {
            "a": {None: ScriptedPage([("a1", 1)], "t1", Bound.through(1)), "t1": ScriptedPage()},
            "b": two_partitions()._partitions["b"],
        }
    )
    bench.run(source).settle_all()
    row = bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.sequence, row.blocker.code) == (ChainState.HELD, 1, "source_unavailable")
    assert "odd" in row.blocker.hint
    assert bench.chain("b").state is ChainState.ENDED


def test_the_effect_leaves_nothing_open_however_often_an_event_is_tried(bench):
    bench.effect.failing["a4"] = None
    run = bench.run(two_partitions(), retry=RetryPolicy(attempts=50, backoff=0.1), local=True)
    for _ in range(5):
        run.settle("a")
    assert bench.disk.begun == bench.disk.ended
