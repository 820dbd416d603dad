"""Certificate, assertion and estimate cannot stand for each other. The type checker
reads this file too: an `ignore` that were not needed would be an error."""

import pytest

from gapless.progress import Assertion, Bound, Certificate, Checkpoint, Estimate, Ledger, PageAttempt

BOUND = Bound.through(7)


@pytest.mark.parametrize("claim", [Assertion(BOUND, "the vendor says so"), Estimate(BOUND), BOUND, 7])
def test_only_a_certificate_is_taken_for_one(claim: object) -> None:
    with pytest.raises(TypeError, match="is no certificate"):
        PageAttempt("g", "t0", "t1", certificate=claim)  # type: ignore[arg-type]


def test_neither_an_assertion_nor_an_estimate_passes_for_a_certificate_with_the_type_checker() -> None:
    with pytest.raises(TypeError):
        PageAttempt("g", "t0", "t1", certificate=Assertion(BOUND, "the vendor says so"))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        PageAttempt("g", "t0", "t1", certificate=Estimate(BOUND))  # type: ignore[arg-type]


def test_a_certificate_is_taken_for_nothing_else() -> None:
    with pytest.raises(TypeError, match="is no assertion"):
        PageAttempt("g", "t0", "t1", assertion=Certificate(BOUND, "page"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is no estimate"):
        PageAttempt("g", "t0", "t1", estimate=Certificate(BOUND, "page"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make", [lambda it: Certificate(it, "page"), lambda it: Assertion(it, "why"), Estimate]
)
def test_each_of_them_carries_a_bound(make: object) -> None:
    with pytest.raises(TypeError, match="is no Bound"):
        make(7)  # type: ignore[operator]


def test_an_assertion_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Assertion(BOUND, "")


def test_alike_in_bound_they_are_not_equal() -> None:
    assert len({Certificate(BOUND, "x"), Assertion(BOUND, "x"), Estimate(BOUND)}) == 3


@pytest.mark.parametrize("accepted", [False, True])
def test_an_assertion_raises_the_bound_only_where_that_is_configured_and_is_labelled(accepted: bool) -> None:
    ledger = Ledger(Checkpoint(1, 0, "t0", Bound.before(3)), accept_assertions=accepted)
    ledger.offer(
        PageAttempt(
            "g", "t0", "t1", assertion=Assertion(BOUND, "2013 is over"), estimate=Estimate(Bound.before(99))
        )
    )
    assert ledger.promote("g", token="t0").code.promoted
    assert ledger.checkpoint.bound == (BOUND if accepted else Bound.before(3))
    assert ledger.checkpoint.asserted is accepted


def test_an_assertion_below_what_is_certified_labels_nothing() -> None:
    ledger = Ledger(Checkpoint(1, 0, "t0", Bound.before(9)), accept_assertions=True)
    ledger.offer(PageAttempt("g", "t0", "t1", assertion=Assertion(BOUND, "2013 is over")))
    ledger.promote("g", token="t0")
    assert (ledger.checkpoint.bound, ledger.checkpoint.asserted) == (Bound.before(9), False)
