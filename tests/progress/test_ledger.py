"""The ledger of one partition, by name: pages and receipts in any order, limits, rereading, and what is kept."""

import pytest
from ledger_pages import ledger_at, page

from gapless.progress import (
    Bound,
    ChainState,
    Checkpoint,
    Ledger,
    Offer,
    PromotionCode,
    Recent,
    Terminal,
)


def test_a_page_waits_for_each_of_its_events() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("g", "t0", "t1", ("a", 1), ("b", 2), certified=Bound.through(2)))
    assert ledger.promotable() is None
    assert ledger.unsettled() == (("a", 1), ("b", 2))
    ledger.settle(["b"], Terminal.DELIVERED)
    assert ledger.unsettled() == (("a", 1),)
    assert ledger.promote("g", token="t0").code is PromotionCode.NOT_TERMINAL
    ledger.settle(["a"], Terminal.DEAD_LETTERED)
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
    assert ledger.settle(["a", "a"], Terminal.DEAD_LETTERED) == 1
    assert ledger.settle(["a"], Terminal.DELIVERED) == 0
    assert ledger.counts.repeated_receipts == 2
    ledger.offer(page("g", "t0", "t1", ("a", 1)))
    assert ledger.receipts() == {"a": Terminal.DEAD_LETTERED}
    assert ledger.promote("g", token="t0").code is PromotionCode.OK


def test_receipts_of_pages_that_have_not_come_are_bounded_and_refused_ones_counted() -> None:
    ledger = ledger_at("t0", early_limit=2)
    assert ledger.settle(["a", "b", "c"], Terminal.DELIVERED) == 2
    assert ledger.counts.refused_receipts == 1
    ledger.offer(page("g", "t0", "t1", ("a", 1), ("c", 2)))
    assert ledger.unsettled() == (("c", 2),)


def test_a_receipt_that_names_its_page_speaks_of_no_other_attempt() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("A", "t0", "t1", ("a", 1)))
    ledger.offer(page("B", "t0", "t2", ("a", 5)))
    assert ledger.settle(["a"], Terminal.DELIVERED, page="B") == 1
    assert ledger.promote("A", token="t0").code is PromotionCode.NOT_TERMINAL
    assert ledger.promote("B", token="t0").code is PromotionCode.OK


def test_another_version_of_an_event_is_not_settled_by_the_receipt_of_an_open_one() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("A", "t0", "t1", ("row", 1)))
    ledger.settle(["row"], Terminal.DELIVERED)
    ledger.offer(page("B", "t1", "t2", ("row", 7)))
    assert ledger.promote("A", token="t0").code is PromotionCode.OK
    assert ledger.promote("B", token="t1").code is PromotionCode.NOT_TERMINAL


def test_two_attempts_of_one_token_coexist_and_the_loser_goes_with_what_only_it_led_to() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("A", "t0", "tA", ("a", 1)))
    ledger.offer(page("A2", "tA", "tA2", ("b", 2), ("x", 9)))
    ledger.offer(page("B", "t0", "tB", ("a", 1), ("b", 2)))
    ledger.offer(page("B2", "tB", "tA2", ("c", 3)))
    ledger.settle(["a", "b"], Terminal.DELIVERED)
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
    ledger.settle(["a", "b"], Terminal.DELIVERED)
    assert ledger.promote("B", token="t0").code is PromotionCode.OK
    assert ledger.receipts() == {"b": Terminal.DELIVERED}
    ledger.offer(page("C", "tB", "tC", ("b", 2)))
    assert ledger.promote("C", token="tB").code is PromotionCode.OK


def test_a_page_that_leads_on_is_promoted_whichever_attempt_led_to_it() -> None:
    ledger = ledger_at("t0")
    ledger.offer(page("next", "t1", "t2", ("b", 2)))
    ledger.offer(page("open", "t0", "t1", ("a", 1), ("missing", 1)))
    ledger.offer(page("done", "t0", "t1", ("a", 1)))
    ledger.settle(["a", "b"], Terminal.DELIVERED)
    run = ledger.promotable()
    assert run is not None
    assert run.names == ("done", "next")


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
    ledger.settle(["a"], Terminal.DELIVERED)
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
    ledger.settle(["a", "b", "c"], Terminal.DELIVERED)
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
    ledger.settle(["a", "early"], Terminal.DELIVERED)
    ledger.forget()
    assert (ledger.open_pages, ledger.receipts(), ledger.holds("a")) == (0, {}, False)
    assert ledger.offer(page("again", "t0", "t1", ("a", 1))) is Offer.TAKEN
    assert ledger.unsettled() == (("a", 1),)


def test_what_was_promoted_is_recognised_when_it_comes_again() -> None:
    shared: Recent[tuple[str, object]] = Recent(10)
    first = Ledger(Checkpoint(1, 0, "t0", None), seen=shared)  # type: ignore[arg-type]
    first.offer(page("g", "t0", "t1", ("moved", 80)))
    first.settle(["moved"], Terminal.DELIVERED)
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
