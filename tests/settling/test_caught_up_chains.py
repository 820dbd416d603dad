"""Chains whose source has nothing further at present: what a call promotes, publishes and leaves to the next one."""

from typing import Any

from gapless.errors import SourceUnavailable
from gapless.progress import Bound, ChainState
from gapless.settling.publisher import Publisher
from gapless.settling.retrying import RetryPolicy
from gapless.testing import ScriptedPage, ScriptedSource

QUIET = ScriptedPage((), "t1", caught_up=True)


def growing(*later: ScriptedPage | SourceUnavailable) -> ScriptedSource:
    """One event, then whatever the polls of `t1` meet in turn."""
    return ScriptedSource({"a": {None: ScriptedPage([("a1", 1)], "t1", Bound.through(1)), "t1": list(later)}})


def test_a_call_ends_where_the_source_has_nothing_further_and_says_so(bench: Any) -> None:
    run = bench.run(growing(QUIET))
    run.settle("a")
    assert run.tally.caught_up == {bench.chain("a").chain}
    assert run.tally.pages == 1, "the page that brought nothing does not count"
    assert bench.data() == {"a": ["a1"]}
    assert (bench.chain("a").state, bench.chain("a").page_token) == (ChainState.OPEN, "t1")


def test_a_poll_that_brings_nothing_promotes_nothing(bench: Any) -> None:
    source = growing(QUIET)
    run = bench.run(source)
    for _ in range(5):
        run.settle("a")
    assert bench.chain("a").sequence == 1
    assert len(bench.snapshot().chains) == 1
    assert len(source.fetches) == 6, "one for the first page, one a poll"


def test_what_comes_after_a_quiet_time_is_read_where_it_was_left(bench: Any) -> None:
    source = ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1)], "t1", Bound.through(1)),
                "t1": [QUIET, QUIET, ScriptedPage([("a2", 2)], "t2", Bound.through(2), caught_up=True)],
            }
        }
    )
    run = bench.run(source)
    for _ in range(3):
        run.settle("a")
    assert bench.data() == {"a": ["a1", "a2"]}
    assert bench.frontier() == Bound.through(2)


def test_a_quiet_chain_moves_by_certificate(bench: Any) -> None:
    certified = [ScriptedPage((), "t1", Bound.through(n), caught_up=True) for n in (3, 3, 7)]
    run = bench.run(growing(*certified))
    run.settle("a")
    assert bench.frontier() == Bound.through(3)
    run.settle("a")
    assert bench.chain("a").sequence == 2, "a certificate that says nothing new is not promoted"
    run.settle("a")
    assert bench.frontier() == Bound.through(7)
    assert bench.data() == {"a": ["a1"]}


def test_what_the_throttle_kept_back_is_published_when_a_call_leaves_a_quiet_chain(bench: Any) -> None:
    run = bench.run(growing(ScriptedPage((), "t1", Bound.through(5), caught_up=True)), target_rows=1)
    run.worker.publisher = Publisher(run.store, "scripted", clock=bench.clock, every=3600.0)
    run.settle("a")
    assert bench.chain("a").sequence == 2
    assert bench.frontier() == Bound.through(5)
    assert run.worker.publisher.flush() is None, "nothing is left to publish"


def test_what_the_throttle_kept_back_is_published_when_a_chain_is_held(bench: Any) -> None:
    run = bench.run(growing(SourceUnavailable("HTTP 503")), target_rows=1, retry=RetryPolicy(attempts=1))
    run.worker.publisher = Publisher(run.store, "scripted", clock=bench.clock, every=3600.0)
    run.worker.publisher.tick()
    run.settle("a")
    assert bench.chain("a").state is ChainState.HELD
    assert bench.frontier() == Bound.through(1)


def test_failures_of_days_apart_do_not_add_up(bench: Any) -> None:
    """A source that answers with nothing has answered."""
    down = SourceUnavailable("HTTP 503")
    run = bench.run(growing(*[step for _ in range(5) for step in (down, QUIET)]), local=True)
    for _ in range(12):
        run.settle("a")
    assert bench.chain("a").state is ChainState.OPEN


def test_a_chain_that_a_twin_has_promoted_meanwhile_is_read_on_and_not_taken_for_caught_up(
    bench: Any,
) -> None:
    pages = {
        None: ScriptedPage([("a1", 1)], "t1", Bound.through(1), caught_up=True),
        "t1": ScriptedPage([("a2", 2)], "t2", Bound.through(2)),
        "t2": ScriptedPage((), None, Bound.through(3)),
    }
    source = ScriptedSource({"a": pages})
    run = bench.run(source)
    twin = bench.run(source, twin_of=run)
    settled: list[bool] = []

    def twin_is_first(step: str) -> None:
        if step == "durable" and not settled:
            settled.append(True)
            twin.settle("a")

    run.worker.on_step = twin_is_first
    run.settle("a")
    assert settled
    assert run.tally.caught_up == set()
    assert bench.chain("a").state is ChainState.ENDED
    assert bench.data() == {"a": ["a1", "a2"]}
