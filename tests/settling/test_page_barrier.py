"""The page barrier: whatever dies, and wherever, each event is in the data set once, and the frontier never claims more."""

import pytest

from gapless.errors import StoreUnreadable
from gapless.progress import Bound, ChainState
from gapless.testing import ScriptedPage, ScriptedSource, WorkerCrash

STEPS = ("taken", "fetched", "applied", "durable", "committed", "published")


def three_pages() -> ScriptedSource:
    return ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1), ("a2", 2)], "t1", Bound.through(2)),
                "t1": ScriptedPage([("a3", 3)], "t2", Bound.before(5)),
                "t2": ScriptedPage([("a5", 5), ("a6", 6)], None, Bound.through(6)),
            }
        }
    )


class CrashAt:
    """Dies at the n-th time that `step` is reached."""

    def __init__(self, step: str, nth: int) -> None:
        self.step = step
        self.left = nth

    def __call__(self, name: str) -> None:
        if name == self.step:
            self.left -= 1
            if self.left == 0:
                raise WorkerCrash(f"at {name}")


def test_a_chain_is_read_to_its_end_and_each_run_of_pages_promoted(each_bench):
    run = each_bench.run(three_pages(), target_rows=2)
    run.settle("a")
    row = each_bench.chain("a")
    assert (row.state, row.sequence, row.bound, row.events) == (ChainState.ENDED, 3, Bound.through(6), 5)
    assert each_bench.data() == {"a": ["a1", "a2", "a3", "a5", "a6"]}
    assert [(p.sequence, p.pages, p.rows) for p in each_bench.store.promotions("scripted")] == [
        (0, 1, 2),
        (1, 2, 3),
    ]
    assert each_bench.frontier() == Bound.through(6)


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_after_a_crash_at_any_step_the_next_run_makes_it_exactly_once(bench, step, nth):
    source = three_pages()
    crash = CrashAt(step, nth)
    run = bench.run(source, target_rows=1, on_step=crash)
    if step == "taken" and nth > 1:
        run.settle("a")
        assert crash.left > 0
    else:
        with pytest.raises(WorkerCrash):
            run.settle("a")
    promoted = {event for events in bench.data().values() for event in events}
    positions = {"a1": 1, "a2": 2, "a3": 3, "a5": 5, "a6": 6}
    frontier = bench.frontier()
    assert all(event in promoted for event, at in positions.items() if frontier and frontier.covers(at))
    bench.run(source, target_rows=1).settle_all()
    assert bench.data() == {"a": ["a1", "a2", "a3", "a5", "a6"]}
    assert bench.frontier() == Bound.through(6)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_right_before_or_after_the_file_is_durable_repeats_nothing_in_the_data_set(each_bench, when):
    def crash(at):
        if at == when:
            raise WorkerCrash(at)

    source = three_pages()
    each_bench.effect.on_finish = crash
    with pytest.raises(WorkerCrash):
        each_bench.run(source, target_rows=3).settle("a")
    assert each_bench.data() == {}
    assert each_bench.frontier() is None
    assert len(each_bench.disk.durable) == (when == "after"), (
        "an unlisted file is on the disk, and counts for nothing"
    )
    each_bench.effect.on_finish = lambda at: None
    each_bench.run(source).settle_all()
    assert each_bench.data() == {"a": ["a1", "a2", "a3", "a5", "a6"]}


class LossyStore:
    """A store whose answer to the n-th call of `method` is lost: what was asked is done, and its caller never learns."""

    def __init__(self, store, method, nth=1):
        self._store = store
        self._method = method
        self._left = nth

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if name != self._method:
            return found

        def lossy(*args, **kwargs):
            answer = found(*args, **kwargs)
            self._left -= 1
            if self._left == 0:
                raise StoreUnreadable("the answer was lost")
            return answer

        return lossy


@pytest.mark.parametrize("nth", [1, 2])
def test_a_promotion_whose_answer_was_lost_counts_and_the_next_run_goes_on_behind_it(each_bench, nth):
    source = three_pages()
    run = each_bench.run(source, target_rows=2)
    run.worker.store = LossyStore(run.store, "promote", nth)
    with pytest.raises(StoreUnreadable):
        run.settle("a")
    assert each_bench.chain("a").sequence == (1, 3)[nth - 1]
    each_bench.run(source, target_rows=2).settle_all()
    assert each_bench.data() == {"a": ["a1", "a2", "a3", "a5", "a6"]}
    assert each_bench.chain("a").events == 5


def test_a_twin_that_retries_a_promotion_which_did_commit_goes_on_behind_it(each_bench):
    """The bundle is run again under the same fencing token, as an engine does after it has lost an answer."""
    source = three_pages()
    first = each_bench.run(source, target_rows=2)
    first.worker.store = LossyStore(first.store, "promote")
    with pytest.raises(StoreUnreadable):
        first.settle("a")
    again = each_bench.run(source, target_rows=2, twin_of=first)
    again.settle("a")
    assert each_bench.data() == {"a": ["a1", "a2", "a3", "a5", "a6"]}
    assert again.store.chain(each_bench.chain("a").chain).fencing_token == first.plan.number


def test_a_run_that_was_fenced_between_reading_and_promoting_promotes_nothing_and_stops(each_bench):
    """A retry that loses its generation check: the older worker wakes up with pages in hand that are no longer its own."""
    source = three_pages()

    def newer_run_takes_over(step):
        if step == "durable" and newer == []:
            newer.append(each_bench.run(source, target_rows=1))
            newer[0].settle("a")

    newer = []
    older = each_bench.run(source, target_rows=2, on_step=newer_run_takes_over)
    emitted = older.settle("a")
    assert emitted[-1].fencing_token == newer[0].plan.number
    assert each_bench.data() == {"a": ["a1", "a2", "a3", "a5", "a6"]}
    assert {p.fencing_token for p in each_bench.store.promotions("scripted")} == {newer[0].plan.number}


@pytest.mark.parametrize("step", ["taken", "fetched", "applied", "durable"])
def test_a_process_that_wakes_up_after_it_was_fenced_changes_nothing(each_bench, step):
    """It sleeps at `step`, with its page, file or nothing in hand, while a newer run reads only a part of the chain."""
    source = three_pages()
    state = []

    def sleep_here(name):
        if name == step and not state:
            newer = each_bench.run(source, target_rows=1)
            chain = newer.stepping("a")
            next(chain), next(chain)
            chain.close()
            state.append(each_bench.chain("a"))

    older = each_bench.run(source, target_rows=1, on_step=sleep_here)
    emitted = older.settle("a")
    assert state[0].sequence == 1
    assert each_bench.chain("a") == state[0]
    assert emitted[-1].fencing_token == state[0].fencing_token > older.plan.number
    each_bench.run(source).settle_all()
    assert each_bench.data() == {"a": ["a1", "a2", "a3", "a5", "a6"]}


def test_a_fenced_run_cannot_hold_what_is_no_longer_its_own(bench):
    source = three_pages()
    bench.effect.failing["a3"] = 1
    newer = []

    def fence_before_holding(step):
        if step == "fetched" and len(newer) < 1 and bench.chain("a").sequence == 1:
            newer.append(bench.run(source))
            newer[0].store.take(bench.chain("a").chain, newer[0].plan.number)

    older = bench.run(source, target_rows=2, on_step=fence_before_holding, local=True)
    older.settle("a")
    assert newer
    row = bench.chain("a")
    assert (row.state, row.blocker, row.fencing_token) == (ChainState.OPEN, None, newer[0].plan.number)


def test_who_is_fenced_before_it_takes_the_chain_reads_nothing(bench):
    source = three_pages()
    older = bench.run(source)
    bench.run(source).store.take(bench.chain("a").chain, 2)
    fetched = source.fetches
    (told,) = older.settle("a")
    assert told.fencing_token == 2
    assert source.fetches == fetched


def test_nothing_is_read_where_the_first_claim_is_refused(bench):
    source = three_pages()
    run = bench.run(source)
    assert list(run.stepping("a", claim=lambda: False)) == []
    assert bench.chain("a").fencing_token == 0
    assert source.fetches == ()


def test_a_claim_refused_later_promotes_what_is_settled_and_ends_the_call(bench):
    source = three_pages()
    claims = iter([True, True, True, False])
    run = bench.run(source)
    list(run.stepping("a", claim=lambda: next(claims)))
    assert bench.chain("a").sequence == 2
    assert bench.data() == {"a": ["a1", "a2", "a3"]}


def test_a_call_that_is_closed_in_the_middle_leaves_what_was_promoted_and_nothing_else(bench):
    source = three_pages()
    run = bench.run(source, target_rows=2)
    chain = run.stepping("a")
    next(chain), next(chain)
    chain.close()
    assert bench.data() == {"a": ["a1", "a2"]}
    assert bench.disk.begun == bench.disk.ended
