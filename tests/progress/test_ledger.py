"""The ledger of one partition, by name: what is promoted, what is refused and why, and what is kept of it."""

import pytest

from gapless.progress import (
    Bound,
    Certificate,
    ChainState,
    Checkpoint,
    Ledger,
    Offer,
    Outcome,
    PageAttempt,
    PromotionCode,
    Recent,
)


def page(
    name: str,
    start: str | None,
    following: str | None,
    *events: tuple[str, int],
    certified: Bound | None = None,
    provisional: bool = False,
    generation: str = "",
) -> PageAttempt:
    certificate = None if certified is None else Certificate(certified, "page")
    return PageAttempt(name, start, following, events, certificate, provisional, generation)


def ledger_at(token: str | None, bound: Bound | None = None, **more: int) -> Ledger:
    return Ledger(Checkpoint(1, 0, token, bound), **more)  # type: ignore[arg-type]


def test_a_page_waits_for_each_of_its_events() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("g", "t0", "t1", ("a", 1), ("b", 2), certified=Bound.through(2)))
    assert ledger.promotable() is None
    assert ledger.unsettled() == (("a", 1), ("b", 2))
    ledger.settle(["b"], Outcome.DELIVERED)
    assert ledger.unsettled() == (("a", 1),)
    assert ledger.promote("g", token="t0").code is PromotionCode.NOT_TERMINAL
    ledger.settle(["a"], Outcome.DEAD_LETTERED)
    assert ledger.promote("g", token="t0").code is PromotionCode.OK
    assert ledger.checkpoint == Checkpoint(1, 1, "t1", Bound.through(2))
    assert (ledger.open_pages, ledger.receipts()) == (0, {})


def test_an_empty_page_is_settled_at_once_and_only_the_end_ends_the_chain() -> None:
    ledger = ledger_at(None)
    ledger.offer(page("1", None, "t1"))
    ledger.offer(page("2", "t1", None, certified=Bound.before(9)))
    run = ledger.promotable()
    assert run is not None
    assert run.names == ("1", "2")
    ledger.promoted(run)
    assert ledger.checkpoint == Checkpoint(1, 2, None, Bound.before(9), ChainState.ENDED)
    ledger.offer(page("again", None, "t1"))
    assert ledger.promote("again", token=None).code is PromotionCode.TOKEN_MISMATCH
    assert ledger.promotable() is None


def test_receipts_may_come_before_their_page_and_in_any_number() -> None:
    ledger = ledger_at("t0")
    assert ledger.settle(["a", "a"], Outcome.DEAD_LETTERED) == 1
    assert ledger.settle(["a"], Outcome.DELIVERED) == 0
    assert ledger.counts.repeated_receipts == 2
    ledger.offer(page("g", "t0", "t1", ("a", 1)))
    assert ledger.receipts() == {"a": Outcome.DEAD_LETTERED}
    assert ledger.promote("g", token="t0").code is PromotionCode.OK


def test_receipts_of_pages_that_have_not_come_are_bounded_and_refused_ones_counted() -> None:
    ledger = ledger_at("t0", early_limit=2)
    assert ledger.settle(["a", "b", "c"], Outcome.DELIVERED) == 2
    assert ledger.counts.refused_receipts == 1
    ledger.offer(page("g", "t0", "t1", ("a", 1), ("c", 2)))
    assert ledger.unsettled() == (("c", 2),)


def test_a_receipt_that_names_its_page_speaks_of_no_other_attempt() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("A", "t0", "t1", ("a", 1)))
    ledger.offer(page("B", "t0", "t2", ("a", 5)))
    assert ledger.settle(["a"], Outcome.DELIVERED, page="B") == 1
    assert ledger.promote("A", token="t0").code is PromotionCode.NOT_TERMINAL
    assert ledger.promote("B", token="t0").code is PromotionCode.OK


def test_another_version_of_an_event_is_not_settled_by_the_receipt_of_an_open_one() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("A", "t0", "t1", ("row", 1)))
    ledger.settle(["row"], Outcome.DELIVERED)
    ledger.offer(page("B", "t1", "t2", ("row", 7)))
    assert ledger.promote("A", token="t0").code is PromotionCode.OK
    assert ledger.promote("B", token="t1").code is PromotionCode.NOT_TERMINAL


def test_two_attempts_of_one_token_coexist_and_the_loser_goes_with_what_only_it_led_to() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("A", "t0", "tA", ("a", 1)))
    ledger.offer(page("A2", "tA", "tA2", ("b", 2), ("x", 9)))
    ledger.offer(page("B", "t0", "tB", ("a", 1), ("b", 2)))
    ledger.offer(page("B2", "tB", "tA2", ("c", 3)))
    ledger.settle(["a", "b"], Outcome.DELIVERED)
    assert ledger.promote("B", token="t0").code is PromotionCode.OK
    assert ledger.counts.unreachable == 2
    assert ledger.open_pages == 1
    assert ledger.promote("A", token="t0").code is PromotionCode.TOKEN_MISMATCH
    assert ledger.promote("A", token="tB").code is PromotionCode.TOKEN_MISMATCH


def test_a_page_to_which_another_way_leads_outlives_the_losing_attempt_before_it() -> None:
    ledger = ledger_at("t0")
    for attempt in (page("A", "t0", "m"), page("B", "t0", "b"), page("C", "b", "m"), page("D", "m", "n")):
        ledger.offer(attempt)
    assert ledger.promote("B", token="t0").code is PromotionCode.OK
    assert ledger.open_pages == 2
    run = ledger.promotable()
    assert run is not None
    assert run.names == ("C", "D")


def test_a_promoter_that_expects_another_token_loses() -> None:
    ledger = ledger_at("t1")
    ledger.offer(page("g", "t1", "t2"))
    assert ledger.promote("g", token="t0").code is PromotionCode.TOKEN_MISMATCH
    assert ledger.promote([], token="t1").code is PromotionCode.TOKEN_MISMATCH
    assert ledger.promote("never offered", token="t1").code is PromotionCode.TOKEN_MISMATCH
    assert ledger.checkpoint.page_token == "t1"


def test_the_receipts_of_a_losing_attempt_serve_the_pages_to_come() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("A", "t0", "tA", ("a", 1), ("b", 2)))
    ledger.offer(page("B", "t0", "tB", ("a", 1)))
    ledger.settle(["a", "b"], Outcome.DELIVERED)
    assert ledger.promote("B", token="t0").code is PromotionCode.OK
    assert ledger.receipts() == {"b": Outcome.DELIVERED}
    ledger.offer(page("C", "tB", "tC", ("b", 2)))
    assert ledger.promote("C", token="tB").code is PromotionCode.OK


def test_a_page_that_leads_on_is_promoted_whichever_attempt_led_to_it() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("next", "t1", "t2", ("b", 2)))
    ledger.offer(page("open", "t0", "t1", ("a", 1), ("missing", 1)))
    ledger.offer(page("done", "t0", "t1", ("a", 1)))
    ledger.settle(["a", "b"], Outcome.DELIVERED)
    run = ledger.promotable()
    assert run is not None
    assert run.names == ("done", "next")


@pytest.mark.parametrize(
    ("fencing_token", "generation", "code"),
    [
        (4, "", PromotionCode.STALE_GENERATION),
        (6, "", PromotionCode.STALE_GENERATION),
        (5, "r2", PromotionCode.STALE_GENERATION),
        (5, "", PromotionCode.OK),
    ],
)
def test_a_promotion_is_fenced_by_token_and_routing_generation(
    fencing_token: int, generation: str, code: PromotionCode
) -> None:
    ledger = Ledger(Checkpoint(5, 3, "t9", Bound.before(100)))
    ledger.offer(page("g", "t9", "t10", certified=Bound.through(100)))
    before = ledger.checkpoint
    result = ledger.promote("g", token="t9", fencing_token=fencing_token, generation=generation)
    assert result.code is code
    assert (ledger.checkpoint == before) is not code.promoted


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (ChainState.HELD, PromotionCode.HELD),
        (ChainState.GAP, PromotionCode.GAP),
        (ChainState.SEALED, PromotionCode.SEALED),
        (ChainState.REPLACED, PromotionCode.SEALED),
        (ChainState.SUPERSEDED, PromotionCode.SEALED),
        (ChainState.ENDED, PromotionCode.TOKEN_MISMATCH),
        (ChainState.OPEN, PromotionCode.OK),
    ],
)
def test_only_an_open_chain_is_promoted(state: ChainState, code: PromotionCode) -> None:
    ledger = Ledger(Checkpoint(5, 3, "t9", None, state))
    ledger.offer(page("g", "t9", "t10"))
    assert (ledger.promotable() is not None) is (state is ChainState.OPEN)
    assert ledger.promote("g", token="t9").code is code


def test_deciding_changes_nothing() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("g", "t0", "t1", certified=Bound.through(5)))
    decided = ledger.decide("g", token="t0")
    assert decided.code is PromotionCode.OK
    assert ledger.checkpoint == Checkpoint(1, 0, "t0", None)
    assert ledger.decide("g", token="t0") == decided
    assert decided.run is not None
    ledger.promoted(decided.run)
    with pytest.raises(ValueError, match="another checkpoint"):
        ledger.promoted(decided.run)
    assert ledger.decide("g", token="t0").code is PromotionCode.REPLAYED


def test_bounds_120_and_90_and_a_late_retry_that_loses_then_110_gives_110() -> None:
    first, second = ledger_at("a0", Bound.through(120)), ledger_at("b0", Bound.through(90))
    second.offer(page("retry", "b0", "b1", certified=Bound.through(95)))
    second.offer(page("new", "b0", "b2", certified=Bound.through(110)))
    assert second.promote("new", token="b0").code is PromotionCode.OK
    assert second.promote("retry", token="b0").code is PromotionCode.TOKEN_MISMATCH
    bounds = (first.checkpoint.bound, second.checkpoint.bound)
    assert min(bound for bound in bounds if bound is not None) == Bound.through(110)


def test_a_lower_certificate_promotes_the_page_and_is_a_counted_no_op() -> None:
    ledger = ledger_at("50", Bound.before(50))
    ledger.offer(page("g", "50", "45x", certified=Bound.through(45)))
    assert ledger.promote("g", token="50").code is PromotionCode.OK
    assert ledger.checkpoint.bound == Bound.before(50)
    assert ledger.counts.lower_certificates == 1


def test_an_event_behind_the_bound_that_was_never_seen_is_late_once() -> None:
    ledger = ledger_at("w0", Bound.through(14))
    ledger.offer(page("1", "w0", "w1", ("k", 14), ("m", 15), certified=Bound.through(20)))
    ledger.offer(page("2", "w1", "w2", ("k", 14), ("m", 15), ("n", 20), ("n", 20)))
    ledger.settle(["k", "m", "n"], Outcome.DELIVERED)
    first = ledger.promote("1", token="w0")
    assert first.code is PromotionCode.OK_LATE
    assert first.run is not None
    assert first.run.late == (("k", 14),)
    second = ledger.promote("2", token="w1")
    assert second.run is not None
    assert second.run.late == (("n", 20),)
    assert ledger.checkpoint.bound == Bound.through(20)


def test_a_run_is_judged_page_by_page_and_a_loop_as_one() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("1", "t0", "t1", certified=Bound.through(10)))
    ledger.offer(page("2", "t1", "t2", ("late", 9)))
    ledger.offer(page("3", "t2", "t3", ("early", 30), certified=Bound.through(40), provisional=True))
    ledger.offer(page("4", "t3", "t4", ("in the loop", 20), certified=Bound.through(35)))
    ledger.offer(page("5", "t4", "t5", ("early", 30), ("late", 9)))
    ledger.settle(["late", "early", "in the loop"], Outcome.DELIVERED)
    run = ledger.promotable()
    assert run is not None
    assert run.late == (("late", 9),)
    assert run.after.bound == Bound.through(40)
    assert run.lower_certificates == 1


def test_a_loop_that_has_not_ended_is_not_promotable() -> None:
    ledger = ledger_at("l0")
    ledger.offer(page("1", "l0", "l1", provisional=True))
    ledger.offer(page("2", "l1", "l2", provisional=True))
    assert ledger.promotable() is None
    assert ledger.promote("1", token="l0").code is PromotionCode.PROVISIONAL
    assert ledger.promote(["1", "2"], token="l0").code is PromotionCode.PROVISIONAL
    ledger.offer(page("3", "l2", "w", certified=Bound.through(7)))
    assert ledger.promote("3", token="l2").code is PromotionCode.TOKEN_MISMATCH
    assert ledger.promote(["1", "3"], token="l0").code is PromotionCode.TOKEN_MISMATCH
    assert ledger.promote(["1", "2", "3"], token="l0").code is PromotionCode.OK
    assert ledger.checkpoint == Checkpoint(1, 3, "w", Bound.through(7))


def test_a_loop_goes_on_by_the_attempt_that_is_settled() -> None:
    ledger = ledger_at("l0")
    ledger.offer(page("open", "l0", "l1", ("a", 1), ("b", 1), provisional=True))
    ledger.offer(page("blind", "l0", "nowhere", provisional=True))
    ledger.offer(page("done", "l0", "l1", ("a", 1), provisional=True))
    ledger.offer(page("end", "l1", "w"))
    ledger.settle(["a"], Outcome.DELIVERED)
    run = ledger.promotable()
    assert run is not None
    assert run.names == ("done", "end")


def test_a_token_kept_at_the_tail_is_promoted_again_and_again() -> None:
    ledger = ledger_at("t9")
    for bound in range(3):
        ledger.offer(page(f"poll {bound}", "t9", "t9", certified=Bound.through(bound)))
    assert ledger.promote("poll 0", token="t9").code is PromotionCode.OK
    assert ledger.open_pages == 2
    run = ledger.promotable()
    assert run is not None
    assert len(run.pages) == 2
    ledger.promoted(run)
    assert ledger.checkpoint == Checkpoint(1, 3, "t9", Bound.through(2))
    ledger.offer(page("moved on", "t9", "t10"))
    assert ledger.promote("moved on", token="t9").code is PromotionCode.OK


def test_at_the_limit_pages_are_refused_but_for_the_one_that_everything_waits_for() -> None:
    ledger = ledger_at("t0", limit=2)
    assert ledger.offer(page("2", "t1", "t2")) is Offer.TAKEN
    assert ledger.offer(page("3", "t2", "t3")) is Offer.TAKEN
    assert ledger.offer(page("4", "t3", "t4")) is Offer.FULL
    assert ledger.counts.full == 1
    assert ledger.open_pages == 2
    assert ledger.offer(page("1", "t0", "t1")) is Offer.TAKEN
    run = ledger.promotable()
    assert run is not None
    ledger.promoted(run)
    assert ledger.checkpoint.page_token == "t3"
    assert ledger.offer(page("4", "t3", "t4")) is Offer.TAKEN


def test_an_attempt_comes_once() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("g", "t0", "t1", ("a", 1)))
    assert ledger.offer(page("g", "t0", "t1", ("a", 1))) is Offer.DUPLICATE
    with pytest.raises(ValueError, match="two attempts are named 'g'"):
        ledger.offer(page("g", "t0", "t1", ("a", 2)))
    ledger.settle(["a"], Outcome.DELIVERED)
    ledger.promote("g", token="t0")
    assert ledger.offer(page("g", "t0", "t1", ("a", 1))) is Offer.REPLAYED
    assert (ledger.counts.duplicates, ledger.counts.replayed) == (1, 1)


def test_a_page_of_another_routing_generation_is_not_taken_and_not_kept() -> None:
    ledger = Ledger(Checkpoint(1, 0, "t0", None, generation="r1"))
    assert ledger.offer(page("new", "t0", "t1", generation="r2")) is Offer.STALE_GENERATION
    assert ledger.offer(page("old", "t0", "t1", generation="r1")) is Offer.TAKEN
    assert ledger.adopt(Checkpoint(1, 0, "t0", None, generation="r2"))
    assert ledger.open_pages == 0
    assert ledger.counts.stale == 2


def test_the_durable_row_is_adopted_where_it_is_newer_and_open_pages_go_on_from_it() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("1", "t0", "t1", ("a", 1)))
    ledger.offer(page("2", "t1", "t2", ("b", 2)))
    ledger.offer(page("3", "t2", "t3", ("c", 3)))
    ledger.settle(["a", "b", "c"], Outcome.DELIVERED)
    assert ledger.adopt(Checkpoint(1, 2, "t2", Bound.through(2)))
    assert not ledger.adopt(Checkpoint(1, 1, "t1", Bound.through(1)))
    assert ledger.open_pages == 1
    run = ledger.promotable()
    assert run is not None
    assert run.names == ("3",)
    assert ledger.adopt(Checkpoint(2, 1, "elsewhere", None))
    assert ledger.promotable() is None


def test_a_taken_chain_leaves_its_former_holder_behind() -> None:
    ledger = Ledger(Checkpoint(4, 9, "t9", None, ChainState.HELD))
    taken = ledger.checkpoint.taken_by(5)
    assert taken == Checkpoint(5, 9, "t9", None, ChainState.OPEN)
    assert ledger.adopt(taken)
    assert ledger.checkpoint.taken_by(5) is None
    assert Checkpoint(4, 9, "t9", None, ChainState.GAP).taken_by(5) == Checkpoint(
        5, 9, "t9", None, ChainState.GAP
    )


@pytest.mark.parametrize("state", list(ChainState))
def test_forgetting_keeps_the_fencing_token_and_what_is_closed(state: ChainState) -> None:
    kept = Checkpoint(5, 9, "t12", Bound.before(7), state, "r1").forgotten()
    closed = state in (ChainState.SEALED, ChainState.REPLACED, ChainState.SUPERSEDED)
    assert kept == Checkpoint(5, 0, None, None, state if closed else ChainState.OPEN, "r1")
    assert not kept.started


def test_only_what_was_committed_may_be_acknowledged_to_the_source() -> None:
    ledger = ledger_at("t6")
    ledger.offer(page("g", "t6", "t9"))
    assert ledger.acknowledgeable("t6")
    assert not ledger.acknowledgeable("t9")
    ledger.promote("g", token="t6")
    assert ledger.acknowledgeable("t9")
    assert not ledger.acknowledgeable("t10")


def test_forgetting_open_pages_leaves_the_committed_token_to_read_from() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("g", "t0", "t1", ("a", 1)))
    ledger.settle(["a", "early"], Outcome.DELIVERED)
    ledger.forget()
    assert (ledger.open_pages, ledger.receipts(), ledger.holds("a")) == (0, {}, False)
    assert ledger.offer(page("again", "t0", "t1", ("a", 1))) is Offer.TAKEN
    assert ledger.unsettled() == (("a", 1),)


def test_what_was_promoted_is_recognised_when_it_comes_again() -> None:
    shared: Recent[tuple[str, object]] = Recent(10)
    first = Ledger(Checkpoint(1, 0, "t0", None), seen=shared)  # type: ignore[arg-type]
    first.offer(page("g", "t0", "t1", ("moved", 80)))
    first.settle(["moved"], Outcome.DELIVERED)
    first.promote("g", token="t0")
    second = Ledger(Checkpoint(1, 0, "u0", Bound.through(90)), seen=shared)  # type: ignore[arg-type]
    second.offer(page("h", "u0", "u1", ("moved", 80)))
    assert second.promote("h", token="u0").code is PromotionCode.OK


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"remember": 0}])
def test_limits_are_positive(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="positive number"):
        ledger_at("t0", None, **wrong)


def test_an_outcome_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="retry"):
        ledger_at("t0").settle(["a"], "retry")  # type: ignore[arg-type]
