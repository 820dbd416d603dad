"""A bundle that runs twice at once, under one fencing token: both go on, and the data set is that of one."""

import random
import threading

import pytest

from gapless.errors import EffectError
from gapless.progress import Bound, ChainState
from gapless.settling.retrying import RetryPolicy
from gapless.testing import ScriptedPage, ScriptedSource

PAGES = 8


def long_chain() -> ScriptedSource:
    tokens = [None, *(f"t{n}" for n in range(1, PAGES)), None]
    return ScriptedSource(
        {
            "a": {
                tokens[n]: ScriptedPage([(f"a{n}", n)], tokens[n + 1], Bound.through(n)) for n in range(PAGES)
            }
        }
    )


WHOLE = {"a": [f"a{n}" for n in range(PAGES)]}


@pytest.mark.parametrize("seed", range(4))
def test_two_generators_stepped_in_turn_make_the_chain_once(each_bench, seed):
    draw = random.Random(seed)
    source = long_chain()
    first = each_bench.run(source, target_rows=draw.randint(1, 3))
    twin = each_bench.run(source, target_rows=draw.randint(1, 3), twin_of=first)
    going = [first.stepping("a"), twin.stepping("a")]
    while going:
        one = draw.choice(going)
        told = next(one, None)
        if told is None:
            going.remove(one)
            continue
        events = [event for events in each_bench.data().values() for event in events]
        assert events == WHOLE["a"][: len(events)], "always a prefix, each once"
        frontier = each_bench.frontier()
        assert frontier is None or len(events) > frontier.position
    assert each_bench.data() == WHOLE
    assert each_bench.chain("a").state is ChainState.ENDED


class Lockstep:
    """Lets one of its threads run at a time, and changes between them at every step of the page barrier, by the seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._changed = threading.Condition()
        self._going: list[int] = []
        self._turn = -1

    def run(self, works) -> None:
        errors = []
        self._going = list(range(len(works)))
        self._turn = self._draw.choice(self._going)

        def one(number, work):
            try:
                with self._changed:
                    assert self._changed.wait_for(lambda: self._turn == number, 30)
                work(lambda name: self._pass_on(number))
            except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
                errors.append(error)
            finally:
                with self._changed:
                    self._going.remove(number)
                    if self._going:
                        self._turn = self._draw.choice(self._going)
                    self._changed.notify_all()

        threads = [threading.Thread(target=one, args=pair) for pair in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        if errors:
            raise errors[0]

    def _pass_on(self, number: int) -> None:
        with self._changed:
            self._turn = self._draw.choice(self._going)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._turn == number, 30)


@pytest.mark.parametrize("seed", range(8))
def test_twins_that_change_at_every_step_of_the_barrier_make_the_chain_once(bench, seed):
    source = long_chain()
    draw = random.Random(seed)
    first = bench.run(source, target_rows=draw.randint(1, 3))
    twins = [first, bench.run(source, target_rows=draw.randint(1, 3), twin_of=first)]

    def settle(run):
        def work(on_step):
            run.worker.on_step = on_step
            run.settle("a")

        return work

    Lockstep(seed).run([settle(run) for run in twins])
    assert bench.data() == WHOLE
    assert (bench.chain("a").state, bench.frontier()) == (ChainState.ENDED, Bound.through(PAGES - 1))


def test_a_twin_goes_on_where_the_other_one_has_held_the_chain(each_bench):
    """What fails for one may succeed for the other: the chain is not read in vain for ever, and not given up either."""
    source = long_chain()
    first = each_bench.run(source, target_rows=1)
    held = []

    def other_holds(step):
        if step == "applied" and not held:
            other = each_bench.run(source, target_rows=1, twin_of=first, retry=RetryPolicy(attempts=1))
            other.worker.effect = FailsAlways(each_bench.effect)
            other.settle("a")
            held.append(each_bench.chain("a").state)

    first.worker.on_step = other_holds
    chain = first.stepping("a")
    told = [next(chain, None) for _ in range(3 * PAGES)]
    assert held == [ChainState.HELD]
    assert told[-1] is None, "the call came to an end"
    assert each_bench.data() == WHOLE


class FailsAlways:
    def __init__(self, effect):
        self._effect = effect

    def begin(self, start):
        raise EffectError("no room")

    def close(self):
        self._effect.close()


def test_who_loses_its_last_run_to_a_twin_goes_on_if_that_twin_did_not_come_to_the_end(bench):
    """The chain's end was in the run that lost: the twin, which saw other page boundaries, promoted only a part and died."""
    source = ScriptedSource(
        {
            "a": {
                None: [
                    ScriptedPage([("a0", 0), ("a1", 1)], None, Bound.through(1)),
                    ScriptedPage([("a0", 0)], "t1", Bound.through(0)),
                ],
                "t1": ScriptedPage([("a1", 1)], None, Bound.through(1)),
            }
        }
    )
    first = bench.run(source)

    def other_promotes_a_part(step):
        if step == "durable" and bench.chain("a").sequence == 0:
            first.worker.on_step = lambda step: None
            part = bench.run(source, twin_of=first, target_rows=1).stepping("a")
            next(part), next(part)
            part.close()

    first.worker.on_step = other_promotes_a_part
    first.settle("a")
    assert bench.chain("a").state is ChainState.ENDED
    assert bench.data() == {"a": ["a0", "a1"]}


def test_twins_of_a_failing_event_both_end_and_leave_it_held(each_bench):
    source = long_chain()
    each_bench.effect.failing["a3"] = None
    once = RetryPolicy(attempts=1)
    first = each_bench.run(source, target_rows=1, retry=once)
    twin = each_bench.run(source, target_rows=1, retry=once, twin_of=first)
    going = [first.stepping("a"), twin.stepping("a")]
    for _ in range(4 * PAGES):
        going = [one for one in going if next(one, None) is not None]
    assert going == []
    row = each_bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.sequence, row.blocker.event_id) == (ChainState.HELD, 3, "a3")
