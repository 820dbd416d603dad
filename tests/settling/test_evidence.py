"""What raises a bound and what does not: certificates, empty ranges, ties, mixed endpoints, and chains without any of it."""

import pytest

from gapless.errors import SourceUnavailable
from gapless.explain import explain
from gapless.paging.source import Range
from gapless.progress import Assertion, Bound, ChainState, IntegerDomain, ListDomain, TextDomain
from gapless.settling.worker import Slice
from gapless.testing import ScriptedPage, ScriptedSource


def one(*pages: ScriptedPage, **options) -> ScriptedSource:
    """A source of one partition `a`; each page leads to the next by t1, t2, ..."""
    return ScriptedSource({"a": chained(*pages)}, **options)


def chained(*pages: ScriptedPage):
    tokens = [None, *(f"t{n}" for n in range(1, len(pages)))]
    return {
        token: ScriptedPage(page.events, following, page.certificate, page.generation, page.overlap)
        for token, following, page in zip(tokens, [*tokens[1:], None], pages, strict=True)
    }


def test_an_empty_page_with_a_certificate_raises_the_bound_and_makes_no_file(each_bench):
    each_bench.run(one(ScriptedPage([], certificate=Bound.through(50)))).settle_all()
    row = each_bench.chain("a")
    assert (row.bound, row.sequence, row.state) == (Bound.through(50), 1, ChainState.ENDED)
    assert each_bench.frontier() == Bound.through(50)
    (listed,) = each_bench.store.promotions("scripted", every=True)
    assert (listed.path, listed.rows, listed.bound) == (None, 0, Bound.through(50))
    assert each_bench.disk.begun == 0


def test_an_empty_page_without_a_certificate_moves_the_token_and_no_bound(each_bench):
    run = each_bench.run(one(ScriptedPage([]), ScriptedPage([("a1", 1)], certificate=Bound.through(1))))
    chain = run.stepping("a", Slice(pages=1))
    list(chain)
    row = each_bench.chain("a")
    assert (row.page_token, row.sequence, row.bound) == ("t1", 1, None)
    assert each_bench.frontier() is None
    run.settle_all()
    assert each_bench.frontier() == Bound.through(1)


def test_neither_events_nor_the_end_of_the_pages_is_evidence(bench):
    bench.run(
        one(ScriptedPage([("a1", 1)], certificate=Bound.before(1)), ScriptedPage([("a9", 9)]))
    ).settle_all()
    row = bench.chain("a")
    assert (row.state, row.bound, row.read_to) == (ChainState.ENDED, Bound.before(1), Bound.through(9))
    assert bench.frontier() == Bound.before(1)
    why = explain(bench.snapshot())
    assert why.withheld is not None
    assert why.withheld.code == "no_certificate"


def test_events_at_a_tied_position_on_both_sides_of_a_page_are_all_there_before_it_is_claimed(bench):
    """Position 5 stands on three pages; the source certifies it only with the last one."""
    source = one(
        ScriptedPage([("a1", 1), ("a5", 5)], certificate=Bound.before(5)),
        ScriptedPage([("b5", 5)]),
        ScriptedPage([("c5", 5)], certificate=Bound.through(5)),
    )
    run = bench.run(source, target_rows=1)
    seen = []
    for _ in run.stepping("a"):
        seen.append((bench.frontier(), sum(map(len, bench.data().values()))))
    assert seen == [(None, 0), (Bound.before(5), 2), (Bound.before(5), 3), (Bound.through(5), 4)]
    assert list(bench.store.violations("scripted")) == []


def test_a_new_event_at_a_position_that_was_certified_inclusive_is_a_violation_and_is_delivered(bench):
    source = one(
        ScriptedPage([("a5", 5)], certificate=Bound.through(5)),
        ScriptedPage([("b5", 5), ("a6", 6)], certificate=Bound.through(6)),
    )
    bench.run(source, target_rows=1).settle_all()
    (found,) = bench.store.violations("scripted")
    assert (found.kind, found.event_id, found.bound) == ("event_behind_bound", "b5", Bound.through(5))
    assert bench.data() == {"a": ["a5", "b5", "a6"]}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Bound.through(10), Bound.before(10), Bound.before(10)),
        (Bound.before(10), Bound.before(10), Bound.before(10)),
        (Bound.through(9), Bound.before(10), Bound.through(9)),
        (Bound.through(10), Bound.before(11), Bound.through(10)),
    ],
)
def test_of_inclusive_and_exclusive_proofs_the_lower_cut_is_published_as_it_was_certified(
    each_bench, a, b, expected
):
    source = ScriptedSource(
        {"a": {None: ScriptedPage([], certificate=a)}, "b": {None: ScriptedPage([], certificate=b)}}
    )
    each_bench.run(source).settle_all()
    assert each_bench.frontier() == expected


def test_the_proofs_of_one_chain_may_mix_endpoints_and_the_higher_cut_counts(bench):
    source = one(
        ScriptedPage([("a1", 1)], certificate=Bound.before(10)),
        ScriptedPage([], certificate=Bound.through(10)),
        ScriptedPage([("a11", 11)], certificate=Bound.before(12)),
    )
    bounds = [told.bound for told in bench.run(source, target_rows=1).stepping("a", Slice(pages=9))]
    assert bounds[-1] == bench.frontier() == Bound.before(12)
    assert list(bench.store.violations("scripted")) == []


def test_a_certificate_that_goes_back_is_a_violation_and_lowers_nothing(bench):
    source = one(
        ScriptedPage([], certificate=Bound.through(10)), ScriptedPage([], certificate=Bound.through(7))
    )
    bench.run(source).settle_all()
    assert bench.chain("a").bound == bench.frontier() == Bound.through(10)
    assert [found.kind for found in bench.store.violations("scripted")] == ["certificate_went_back"]


def test_an_assertion_labels_the_frontier_for_good(bench):
    source = one(
        ScriptedPage([("a1", 1)], certificate=Assertion(Bound.before(5), "2013 is over")),
        ScriptedPage([("a6", 6)], certificate=Assertion(Bound.before(10), "2013 is over")),
    )
    bench.run(source).settle_all()
    assert (bench.frontier(), bench.store.scope("scripted").basis) == (Bound.before(10), "asserted")
    (listed,) = bench.store.promotions("scripted")
    assert listed.evidence is not None
    assert listed.evidence["reason"] == "2013 is over"


def test_one_stalled_partition_holds_the_frontier_and_nobody_else(each_bench):
    source = ScriptedSource(
        {
            "a": chained(
                ScriptedPage([("a1", 1)], certificate=Bound.through(1)),
                ScriptedPage([("a9", 9)], certificate=Bound.through(90)),
            ),
            "b": {
                None: ScriptedPage([("b1", 1)], "t1", Bound.through(3)),
                "t1": SourceUnavailable("HTTP 503"),
            },
            "c": {None: ScriptedPage([("c7", 7)], certificate=Bound.through(70))},
        }
    )
    each_bench.run(source).settle_all()
    assert {row.partition: (row.state, row.bound) for row in each_bench.snapshot().chains} == {
        "a": (ChainState.ENDED, Bound.through(90)),
        "b": (ChainState.HELD, Bound.through(3)),
        "c": (ChainState.ENDED, Bound.through(70)),
    }
    assert each_bench.frontier() == Bound.through(3)
    why = explain(each_bench.snapshot())
    assert why.withheld is not None
    assert why.withheld.code == "source_unavailable"
    assert [held.row.partition for held in why.holding] == ["b"]


def test_a_partition_that_has_certified_nothing_withholds_the_frontier_of_all(bench):
    source = ScriptedSource(
        {
            "a": {None: ScriptedPage([("a1", 1)], certificate=Bound.through(90))},
            "b": {None: SourceUnavailable("HTTP 503")},
        }
    )
    bench.run(source).settle_all()
    assert bench.frontier() is None
    why = explain(bench.snapshot())
    assert why.withheld is not None
    assert (why.withheld.code, [row.row.partition for row in why.holding]) == ("source_unavailable", ["b"])


def test_without_a_comparable_coordinate_there_is_the_vector_and_never_a_scalar(each_bench):
    """Tokens and positions alone: each partition tells how far it is, and no number is published over all of them."""
    source = ScriptedSource(
        {
            "a": chained(ScriptedPage([("a1", 1)]), ScriptedPage([("a2", 2)])),
            "b": chained(ScriptedPage([("b7", 7)])),
        },
        basis="none",
    )
    each_bench.run(source).settle_all()
    snapshot = each_bench.snapshot()
    assert snapshot.scope.frontier is None
    assert {row.partition: (row.sequence, row.read_to) for row in snapshot.chains} == {
        "a": (2, Bound.through(2)),
        "b": (1, Bound.through(7)),
    }
    why = explain(snapshot)
    assert why.withheld is not None
    assert {blocker.code for _, blocker in why.blockers} == {"no_certificate"}
    assert each_bench.data() == {"a": ["a1", "a2"], "b": ["b7"]}


def test_a_source_whose_positions_are_all_of_another_domain_is_held_by_name(bench):
    """They would compare with each other well enough: only the scope's domain knows that they are none of its own."""
    source = ScriptedSource(
        {
            "a": {None: ScriptedPage([("a1", "x"), ("a2", "y")], certificate=Bound.through("y"))},
            "b": {None: ScriptedPage([], certificate=Bound.through("y"))},
            "c": {None: ScriptedPage([("c1", True)])},
            "d": {None: ScriptedPage([("d1", 1)], certificate=Bound.through(1))},
        }
    )
    bench.run(source).settle_all()
    rows = {row.partition: row for row in bench.snapshot().chains}
    assert [rows[name].state for name in "abcd"] == [*[ChainState.HELD] * 3, ChainState.ENDED]
    assert all("domain" in rows[name].blocker.hint for name in "abc")
    assert bench.data() == {"d": ["d1"]}


@pytest.mark.parametrize(
    ("domain", "wrong"),
    [
        (IntegerDomain(), "seven"),
        (TextDomain(), 7),
        (ListDomain((IntegerDomain(), TextDomain())), (7, 7)),
    ],
)
def test_positions_that_share_no_order_never_meet_in_one_frontier(bench, domain, wrong):
    """A source that gives positions of another domain than it declares holds that partition, and claims nothing by it."""
    right = {IntegerDomain: 5, TextDomain: "m", ListDomain: (5, "m")}[type(domain)]
    source = ScriptedSource(
        {
            "a": {None: ScriptedPage([("a1", right)], certificate=Bound.through(right))},
            "b": {None: ScriptedPage([("b1", right), ("b2", wrong)], certificate=Bound.through(right))},
        },
        domain=domain,
    )
    bench.run(source).settle_all()
    assert bench.chain("a").bound == Bound.through(right)
    assert (bench.chain("b").state, bench.chain("b").bound) == (ChainState.HELD, None)
    assert bench.frontier() is None


def test_bounds_120_and_100_with_a_failing_110_stay_at_100_and_then_130_gives_120(each_bench):
    source = ScriptedSource(
        {
            "a": {None: ScriptedPage([("a120", 120)], certificate=Bound.through(120))},
            "b": chained(
                ScriptedPage([("b100", 100)], certificate=Bound.through(100)),
                ScriptedPage([("b110", 110), ("b130", 130)], certificate=Bound.through(130)),
            ),
        }
    )
    each_bench.effect.failing["b110"] = None
    each_bench.run(source).settle_all()
    assert {row.partition: row.bound for row in each_bench.snapshot().chains} == {
        "a": Bound.through(120),
        "b": Bound.through(100),
    }
    assert each_bench.frontier() == Bound.through(100)
    why = explain(each_bench.snapshot())
    assert why.withheld is not None
    assert (why.withheld.code, why.withheld.event_id, why.withheld.position) == (
        "unsettled_event",
        "b110",
        110,
    )
    each_bench.effect.failing.clear()
    each_bench.run(source).settle_all()
    assert each_bench.chain("b").bound == Bound.through(130)
    assert each_bench.frontier() == Bound.through(120)
    assert explain(each_bench.snapshot()).withheld is None


def test_bounds_120_and_90_a_late_retry_of_an_older_page_that_loses_and_then_110_gives_110(each_bench):
    source = ScriptedSource(
        {
            "a": {None: ScriptedPage([("a120", 120)], certificate=Bound.through(120))},
            "b": chained(
                ScriptedPage([("b80", 80)], certificate=Bound.through(80)),
                ScriptedPage([("b90", 90)], certificate=Bound.through(90)),
                ScriptedPage([("b110", 110)], certificate=Bound.through(110)),
            ),
        }
    )
    first = each_bench.run(source, target_rows=1)
    first.settle("a")

    def others_read_on(step):
        """While the twin has the older page in hand, the first reads past it, through 90."""
        if step == "durable" and each_bench.frontier() is None:
            first.settle("b", Slice(pages=2))

    late = each_bench.run(source, target_rows=1, twin_of=first, on_step=others_read_on)
    told = late.stepping("b", Slice(pages=1))
    next(told)
    lost = next(told)
    assert (lost.sequence, lost.bound) == (2, Bound.through(90))
    assert each_bench.frontier() == Bound.through(90)
    told.close()
    first.settle("b")
    assert each_bench.frontier() == Bound.through(110)
    assert each_bench.data() == {"a": ["a120"], "b": ["b80", "b90", "b110"]}
    history = [p.bound for p in each_bench.store.promotions("scripted") if p.partition == "b"]
    assert history == [Bound.through(80), Bound.through(90), Bound.through(110)]


def test_what_was_read_covers_the_highest_position_also_behind_a_late_event(bench):
    """A late event at the end of a page is a violation; how far the chain was read does not go back with it."""
    source = one(
        ScriptedPage([("a100", 100)], certificate=Bound.through(100)),
        ScriptedPage([("a130", 130), ("late", 90)], certificate=Bound.through(130)),
        ScriptedPage([("later", 91)]),
    )
    bench.run(source).settle_all()
    assert bench.chain("a").read_to == Bound.through(130)
    assert [found.event_id for found in bench.store.violations("scripted")] == ["late", "later"]
    assert bench.data() == {"a": ["a100", "a130", "late", "later"]}


@pytest.mark.parametrize("basis", ["certified", "none"])
def test_reading_stops_at_the_end_of_the_range(bench, basis):
    """Certified, where the range's end is proved; without certificates, with the first event at or beyond it."""
    proof = Bound.through if basis == "certified" else lambda position: None
    source = one(
        ScriptedPage([("a1", 1)], certificate=proof(1)),
        ScriptedPage([("a9", 9), ("a10", 10)], certificate=proof(10)),
        ScriptedPage([("a11", 11)], certificate=proof(11)),
        ScriptedPage([("a12", 12)], certificate=proof(12)),
        range=Range(stop=10),
        basis=basis,
    )
    for _ in range(3):
        bench.run(source, target_rows=1).settle_all()
    assert bench.chain("a").sequence == 2
    assert bench.data() == {"a": ["a1", "a9", "a10"]}
