"""An operator's way past an event: it becomes a dead letter, and its partition goes on."""

import pytest
from two_partitions import two_partitions

from gapless.explain import explain
from gapless.progress import Bound, ChainState
from gapless.settling.retrying import RetryPolicy
from gapless.settling.worker import Slice
from gapless.testing import ScriptedPage, ScriptedSource


def skip(bench, event, partition="a"):
    return bench.store.skip("scripted", partition, event, "known bad", "ops")


def test_a_skipped_event_releases_its_partition_with_the_next_run(each_bench):
    each_bench.effect.failing["a4"] = None
    once = RetryPolicy(attempts=1)
    each_bench.run(two_partitions(), retry=once).settle_all()
    skip(each_bench, "a4")
    assert each_bench.frontier() == Bound.through(2)
    each_bench.run(two_partitions(), retry=once).settle_all()
    row = each_bench.chain("a")
    assert (row.state, row.blocker, row.dead_letters) == (ChainState.ENDED, None, 1)
    assert each_bench.frontier() == Bound.through(9)
    assert each_bench.data() == {"a": ["a1", "a2", "a3", "a5"], "b": ["b1"]}
    assert explain(each_bench.snapshot()).settled


@pytest.mark.parametrize("keeps", [True, False])
def test_a_skipped_events_payload_is_kept_with_the_operators_word(bench, keeps):
    """The store knows the event only by name when it is skipped; its data arrive with the page, and are not lost."""
    bench.effect.failing["a4"] = None
    once = RetryPolicy(attempts=1)
    bench.run(two_partitions(), retry=once).settle_all()
    skip(bench, "a4")
    bench.run(two_partitions(), retry=once, dead_letters=bench.letters if keeps else None).settle_all()
    (letter,) = bench.store.dead_letters("scripted")
    assert (letter.operator, letter.reason) == ("ops", "known bad")
    assert '"a4"' in letter.payload
    if keeps:
        assert letter.path is not None
        assert [record.event_id for record in bench.disk.dead[letter.path]] == ["a4"]


def test_a_skipped_event_stays_skipped_when_pages_before_it_are_promoted_alone(bench):
    """Other page boundaries: the held page comes again in two, and the first of them is promoted by itself."""
    source = ScriptedSource(
        {
            "a": {
                None: [
                    ScriptedPage([("a1", 1), ("bad", 2)], None, Bound.through(2)),
                    ScriptedPage([("a1", 1)], "t1", Bound.through(1)),
                ],
                "t1": ScriptedPage([("bad", 2)], None, Bound.through(2)),
            }
        }
    )
    bench.effect.failing["bad"] = None
    once = RetryPolicy(attempts=1)
    bench.run(source, retry=once).settle_all()
    skip(bench, "bad")
    run = bench.run(source, retry=once)
    run.settle("a", Slice(pages=1))
    assert bench.chain("a").sequence == 1
    run.settle("a", Slice(pages=1))
    row = bench.chain("a")
    assert (row.state, row.blocker) == (ChainState.ENDED, None)
    assert bench.data() == {"a": ["a1"]}
    assert bench.store.receipts(row.chain) == {}


def test_a_skipped_event_stays_skipped_over_the_runs_of_one_call(bench):
    """As before, but the promotion of the first page and the reading of the second happen in one call."""
    source = ScriptedSource(
        {
            "a": {
                None: [
                    ScriptedPage([("a1", 1), ("bad", 2)], None, Bound.through(2)),
                    ScriptedPage([("a1", 1)], "t1", Bound.through(1)),
                ],
                "t1": ScriptedPage([("bad", 2), ("a3", 3)], None, Bound.through(3)),
            }
        }
    )
    bench.effect.failing["bad"] = None
    once = RetryPolicy(attempts=1)
    bench.run(source, retry=once).settle_all()
    skip(bench, "bad")
    bench.run(source, retry=once, target_rows=1).settle_all()
    assert bench.chain("a").state is ChainState.ENDED
    assert bench.data() == {"a": ["a1", "a3"]}


def test_skipping_again_after_a_crash_of_the_releasing_run_is_not_needed(bench):
    bench.effect.failing["a4"] = None
    once = RetryPolicy(attempts=1)
    bench.run(two_partitions(), retry=once).settle_all()
    skip(bench, "a4")

    def die(when):
        raise KeyboardInterrupt

    bench.effect.on_finish = die
    with pytest.raises(KeyboardInterrupt):
        bench.run(two_partitions(), retry=once).settle("a")
    bench.effect.on_finish = lambda when: None
    bench.run(two_partitions(), retry=once).settle_all()
    assert bench.chain("a").state is ChainState.ENDED
    assert bench.snapshot().totals.dead_letters == 1


@pytest.mark.parametrize("step", ["taken", "fetched", "applied", "durable"])
def test_an_event_that_is_skipped_while_it_is_being_tried_again_has_one_outcome(each_bench, step):
    """It heals at last, and is in hand already when the operator gives up on it: whoever is first is right, and the other one
    is not."""
    each_bench.effect.failing["a4"] = 1
    once = RetryPolicy(attempts=1)
    each_bench.run(two_partitions(), retry=once).settle_all()
    skipped = []

    def skip_now(name):
        if name == step and not skipped:
            skipped.append(skip(each_bench, "a4"))

    each_bench.run(two_partitions(), retry=once, on_step=skip_now).settle_all()
    assert skipped
    assert each_bench.chain("a").state is ChainState.ENDED
    assert each_bench.data()["a"] == ["a1", "a2", "a3", "a5"]
    assert each_bench.dead() == ["a4"]


def test_an_event_that_is_skipped_while_it_fails_again_is_not_held_again(each_bench):
    each_bench.effect.failing["a4"] = None
    once = RetryPolicy(attempts=1)
    each_bench.run(two_partitions(), retry=once).settle_all()
    skipped = []

    def skip_now(name):
        if name == "fetched" and not skipped:
            skipped.append(skip(each_bench, "a4"))

    each_bench.run(two_partitions(), retry=once, on_step=skip_now).settle_all()
    assert each_bench.chain("a").state is ChainState.ENDED
    assert each_bench.dead() == ["a4"]
