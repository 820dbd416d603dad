"""Pages of another routing generation are dropped; dead tokens restart at the certified bound, and not for ever."""

import pytest

from gapless.errors import InvalidPage, RangeTrimmed, SourceUnavailable, TokenExpired
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.plan import plan_run
from gapless.progress import BLOCKER_CODES, Bound, ChainState
from gapless.settling.chain_access import MAX_RESTARTS
from gapless.settling.retrying import RetryPolicy
from gapless.settling.worker import Slice
from gapless.store.records import MembershipPolicy
from gapless.testing import ScriptedPage, ScriptedSource


def listed(generation: str, *names: str) -> Assignment:
    return Assignment([ListedPartition(Partition(name, {})) for name in names], generation)


def routed(*generations: str, pages: str | None = None) -> ScriptedSource:
    """The list under each of `generations` in turn; the pages name `pages` themselves."""
    return ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1)], "t1", Bound.through(1), generation=pages),
                "t1": ScriptedPage([("a2", 2)], None, Bound.through(2), generation=pages),
            }
        },
        assignments=[listed(generation, "a") for generation in generations],
    )


def test_under_one_generation_all_is_promoted(bench):
    bench.run(routed("r1"), target_rows=1).settle_all()
    assert bench.data() == {"a": ["a1", "a2"]}
    assert bench.chain("a").generation == "r1"


def test_a_routing_change_between_page_and_promotion_drops_the_run(each_bench):
    """The pages name no generation: the list is read again after the run's last page, and says another one."""
    each_bench.run(routed("r1", "r2"), target_rows=1).settle("a")
    row = each_bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.sequence, row.bound, row.blocker.code) == (
        ChainState.HELD,
        0,
        None,
        "membership_changed",
    )
    assert each_bench.data() == {}
    assert each_bench.frontier() is None


def test_a_routing_change_in_the_middle_keeps_the_runs_before_it_and_drops_the_one_after(bench):
    bench.run(routed("r1", "r1", "r2"), target_rows=1).settle("a")
    assert bench.data() == {"a": ["a1"]}
    assert (bench.chain("a").state, bench.chain("a").bound) == (ChainState.HELD, Bound.through(1))


def test_a_page_that_names_another_generation_is_dropped_with_its_run_kept(bench):
    source = ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1)], "t1", Bound.through(1), generation="r1"),
                "t1": ScriptedPage([("a2", 2)], None, Bound.through(2), generation="r2"),
            }
        },
        generation="r1",
    )
    bench.run(source).settle("a")
    assert bench.data() == {"a": ["a1"]}
    assert bench.chain("a").state is ChainState.HELD


def test_where_the_pages_name_their_generation_the_list_is_not_asked_again(bench):
    bench.run(routed("r1", "r2", pages="r1")).settle("a")
    assert bench.data() == {"a": ["a1", "a2"]}


@pytest.mark.parametrize("pages", [None, "r1"])
def test_a_page_without_a_generation_is_proved_by_the_list_also_beside_pages_that_name_one(bench, pages):
    source = ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1)], "t1", Bound.through(1), generation=pages),
                "t1": ScriptedPage([("a2", 2)], None, Bound.through(2)),
            }
        },
        assignments=[listed("r1", "a"), listed("r2", "a")],
    )
    bench.run(source).settle("a")
    assert bench.data() == {}


def test_a_list_that_cannot_be_read_before_the_promotion_drops_the_run_and_holds(bench):
    source = ScriptedSource(
        {"a": {None: ScriptedPage([("a1", 1)], None, Bound.through(1))}},
        assignments=[listed("r1", "a"), SourceUnavailable("HTTP 503"), listed("r1", "a")],
    )
    run = bench.run(source)
    run.settle("a")
    row = bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.sequence, row.blocker.code) == (ChainState.HELD, 0, "source_unavailable")
    assert bench.disk.begun == bench.disk.ended
    run.settle("a", Slice(patience=20.0))
    assert bench.data() == {"a": ["a1"]}, "the very page is asked for again"


def test_chains_of_an_older_generation_are_not_read_any_more_and_the_new_ones_are_candidates(each_bench):
    source = routed("r1", "r1", "r2")
    each_bench.run(source, target_rows=1).settle("a")
    before = each_bench.frontier()
    hold = MembershipPolicy(on_change="hold")
    second = plan_run(source, each_bench.store, each_bench.request(source), policy=hold)
    assert [(task.partition, task.member) for task in second.tasks] == [("a", False)]
    later = plan_run(
        source,
        each_bench.store,
        type(each_bench.request(source))(source.scope, "pass", "test", observe=False),
    )
    assert [(task.partition, task.member) for task in later.tasks] == [("a", False)]
    run = each_bench.run(source, policy=hold)
    run.settle_all()
    assert each_bench.frontier() == before == Bound.through(1), "a candidate raises nothing"
    old, new = each_bench.snapshot().chains
    assert (old.generation, old.bound, new.generation, new.bound) == (
        "r1",
        Bound.through(1),
        "r2",
        Bound.through(2),
    )


def test_a_member_that_is_no_longer_listed_is_read_on_under_the_same_generation(bench):
    """Who leaves has to be drained first."""
    script = {None: ScriptedPage([("x", 1)], None, Bound.through(9))}
    source = ScriptedSource(
        {"a": script, "b": script}, assignments=[listed("r1", "a", "b"), listed("r1", "b")]
    )
    plan_run(source, bench.store, bench.request(source))
    assert sorted(task.partition for task in bench.run(source).plan.tasks) == ["a", "b"]


# --- dead tokens ---


def expiring(times: int, restart: ScriptedPage | object, **options) -> ScriptedSource:
    """`t1` is dead the first `times` times; a restart at through(2) asks for `since2`."""
    return ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1), ("a2", 2)], "t1", Bound.through(2)),
                "t1": [
                    *[TokenExpired("HTTP 410")] * times,
                    ScriptedPage([("a3", 3)], None, Bound.through(3)),
                ],
                "since2": restart,
            }
        },
        restarts={Bound.through(2): "since2"},
        **options,
    )


def test_a_dead_token_restarts_at_the_certified_bound_and_is_written_down(each_bench):
    again = ScriptedPage([("a2", 2), ("a3", 3)], None, Bound.through(3), overlap=Bound.through(2))
    source = expiring(9, again)
    each_bench.run(source).settle_all()
    assert each_bench.chain("a").state is ChainState.ENDED
    assert each_bench.frontier() == Bound.through(3)
    assert each_bench.data() == {"a": ["a1", "a2", "a2", "a3"]}, "what a restart covers may be there again"
    assert list(each_bench.store.violations("scripted")) == []


def test_what_was_settled_before_the_token_died_is_promoted_first(bench):
    source = expiring(9, TokenExpired("HTTP 410"))
    bench.run(source).settle_all()
    row = bench.chain("a")
    assert (row.sequence, row.bound, row.events) == (1, Bound.through(2), 2)


def test_after_so_many_restarts_without_a_promotion_the_chain_is_left_as_a_gap(each_bench):
    source = expiring(9, TokenExpired("HTTP 410"))
    each_bench.run(source).settle_all()
    row = each_bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.blocker.code, row.bound) == (ChainState.GAP, "token_expired", Bound.through(2))
    assert source.fetches.count(("a", "since2")) == MAX_RESTARTS
    each_bench.run(source).settle_all()
    assert each_bench.chain("a") == row, "a gap is left by an explicit decision alone"
    (release, *_) = BLOCKER_CODES["token_expired"][1].split(";")
    assert release == "read everything again: `gapless epoch rebuild JOB --reason ...`"


def two_claims():
    """Enough to take the chain and to ask for one page."""
    claims = iter([True, True])
    return lambda: next(claims, False)


def test_restarts_are_counted_over_the_calls_of_a_run_too(bench):
    """A slow source: each call ends before the answer to its restart is there."""
    source = expiring(99, TokenExpired("HTTP 410"))
    run = bench.run(source, local=True)
    run.settle("a", Slice(pages=1))
    for _ in range(MAX_RESTARTS + 1):
        assert bench.chain("a").state is ChainState.OPEN
        list(run.stepping("a", claim=two_claims()))
    assert bench.chain("a").state is ChainState.GAP


def test_a_promotion_makes_the_restarts_count_anew(bench):
    """A token that dies after every page is a source with short-lived tokens, and no reason to give up."""
    pages = {None: ScriptedPage([("a0", 0)], "t0", Bound.through(0))}
    for n in range(MAX_RESTARTS + 3):
        pages[f"t{n}"] = TokenExpired("HTTP 410")
        pages[f"since{n}"] = ScriptedPage([(f"a{n + 1}", n + 1)], f"t{n + 1}", Bound.through(n + 1))
    last = f"t{MAX_RESTARTS + 3}"
    pages[last] = ScriptedPage([], None)
    source = ScriptedSource(
        {"a": pages}, restarts={Bound.through(n): f"since{n}" for n in range(MAX_RESTARTS + 3)}
    )
    bench.run(source).settle_all()
    assert bench.chain("a").state is ChainState.ENDED
    assert bench.data() == {"a": [f"a{n}" for n in range(MAX_RESTARTS + 4)]}


def test_without_a_bound_or_a_way_to_restart_a_dead_token_is_a_gap_at_once(bench):
    source = ScriptedSource(
        {
            "a": {None: ScriptedPage([("a1", 1)], "t1"), "t1": TokenExpired("HTTP 410")},
            "b": {None: ScriptedPage([("b1", 1)], "t1", Bound.through(1)), "t1": TokenExpired("HTTP 410")},
        }
    )
    bench.run(source).settle_all()
    assert {row.state for row in bench.snapshot().chains} == {ChainState.GAP}
    assert bench.data() == {"a": ["a1"], "b": ["b1"]}


def test_a_trimmed_range_is_a_gap_and_nothing_is_claimed_over_it(bench):
    source = ScriptedSource(
        {"a": {None: ScriptedPage([("a1", 1)], "t1", Bound.through(1)), "t1": RangeTrimmed("retention")}}
    )
    bench.run(source, retry=RetryPolicy(attempts=9)).settle_all()
    row = bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.blocker.code) == (ChainState.GAP, "range_trimmed")
    assert bench.frontier() == Bound.through(1)
    assert bench.clock.slept == []


def test_tokens_that_run_in_a_circle_hold_the_chain(bench):
    source = ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1)], "t1", Bound.through(1)),
                "t1": ScriptedPage([], "t2"),
                "t2": ScriptedPage([], "t1"),
            }
        }
    )
    bench.run(source).settle_all()
    row = bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.blocker.code) == (ChainState.HELD, "token_cycle")


def test_a_circle_ends_every_run_and_every_call_and_not_only_the_first(bench):
    """However the circle is cut into calls, runs of pages and restarts of the process: it is found each time."""
    source = ScriptedSource(
        {
            "a": {
                None: ScriptedPage([], "t1"),
                "t1": ScriptedPage([], "t2"),
                "t2": ScriptedPage([], "t3"),
                "t3": ScriptedPage([], "t1"),
            }
        }
    )
    for _ in range(3):
        run = bench.run(source, max_run_seconds=0.0)
        run.settle("a", Slice(pages=50))
        row = bench.chain("a")
        assert row.blocker is not None
        assert row.blocker.code == "token_cycle"


def test_a_circle_longer_than_a_slice_is_found_too(bench):
    """What a call has seen of the tokens, the next one knows."""
    tokens = [None, *(f"t{n}" for n in range(1, 12))]
    following = [*tokens[1:], "t1"]
    source = ScriptedSource(
        {"a": {token: ScriptedPage([], then) for token, then in zip(tokens, following, strict=True)}}
    )
    run = bench.run(source)
    for _ in range(12):
        run.settle("a", Slice(pages=2))
    row = bench.chain("a")
    assert row.blocker is not None
    assert row.blocker.code == "token_cycle"


def test_an_invalid_page_holds_without_another_attempt(bench):
    source = ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1)], "t1", Bound.through(1)),
                "t1": InvalidPage("`events` is absent", where="partition a"),
            }
        }
    )
    bench.run(source, retry=RetryPolicy(attempts=9)).settle_all()
    row = bench.chain("a")
    assert row.blocker is not None
    assert (row.state, row.blocker.hint) == (ChainState.HELD, "`events` is absent; partition a")
    assert source.fetches.count(("a", "t1")) == 1
