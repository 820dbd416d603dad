"""What the ledger promotes, what it refuses and why, and what a promotion proves."""

import pytest
from ledger_pages import ledger_at, page

from gapless.progress import (
    Bound,
    ChainState,
    Checkpoint,
    Ledger,
    PromotionCode,
    Terminal,
)


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
    ledger.settle(["k", "m", "n"], Terminal.DELIVERED)
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
    ledger.settle(["late", "early", "in the loop"], Terminal.DELIVERED)
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
    ledger.settle(["a"], Terminal.DELIVERED)
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
