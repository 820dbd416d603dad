"""A ledger whose attempts stand apart: outcomes settle their own attempt, whatever comes in which order."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from ledger_pages import page

from gapless.progress import Checkpoint, Ledger, Offer, Terminal


def apart() -> Ledger:
    return Ledger(Checkpoint(1, 0, "t0", None), apart=True)


def test_an_outcome_settles_no_other_attempt_that_has_the_event() -> None:
    ledger = apart()
    ledger.offer(page("g", "t0", "t1", ("a", 1)))
    ledger.offer(page("h", "t0", "t2", ("a", 1), ("b", 2)))
    assert ledger.settle_page("g", ["a"]) == 1
    assert ledger.receipt("g", "a") is Terminal.DEAD_LETTERED
    assert ledger.receipt("h", "a") is None
    assert ledger.settle(["b", "z"], Terminal.DELIVERED, "h") == 1
    assert ledger.counts.refused_receipts == 1
    run = ledger.promotable()
    assert run is not None
    assert run.names == ("g",)


def test_an_event_that_was_promoted_is_not_settled_when_it_comes_again() -> None:
    ledger = apart()
    ledger.offer(page("g", "t0", "t1", ("a", 1)))
    ledger.settle_page("g")
    run = ledger.promotable()
    assert run is not None
    ledger.promoted(run)
    ledger.offer(page("h", "t1", "t2", ("a", 1)))
    assert ledger.promotable() is None


def test_what_a_lost_attempt_leads_to_stays_for_others_that_lead_there() -> None:
    ledger = apart()
    ledger.offer(page("lost", "t0", "t5"))
    ledger.offer(page("later", "t5", "t6", ("e", 6)))
    ledger.offer(page("won", "t0", "t2"))
    ledger.promoted(ledger.decide("won", token="t0").run)
    assert (ledger.has("lost"), ledger.beside_the_path()) == (False, ("later",))
    ledger.offer(page("between", "t2", "t5"))
    assert ledger.leads_to("t5")
    ledger.settle_page("later")
    run = ledger.promotable()
    assert run is not None
    assert run.names == ("between", "later")


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6), st.randoms(use_true_random=False), st.integers(0, 8)
)
def test_what_is_promoted_does_not_depend_on_the_order_of_pages_and_of_their_outcomes(
    sizes: list[int], random: Random, lost: int
) -> None:
    pages, begun = [], 0
    for number, size in enumerate(sizes):
        events = [(f"e{position}", position) for position in range(begun, begun + size)]
        pages.append(page(f"g{number}", f"t{number}", f"t{number + 1}", *events))
        begun += size
    stuck = next((n for n, each in enumerate(pages) if any(at == lost for _, at in each.events)), len(pages))
    ends = []
    for _ in range(2):
        ledger = apart()
        order = random.sample(pages, len(pages))
        for each in order:
            assert ledger.offer(each) is Offer.TAKEN
            ids = [event for event, at in each.events if at != lost]
            if len(ids) == len(each.events) and random.random() < 0.5:
                ledger.settle_page(each.name)
            else:
                ledger.settle(random.sample(ids, len(ids)), Terminal.DELIVERED, each.name)
            run = ledger.promotable() if random.random() < 0.5 else None
            if run is not None:
                ledger.promoted(run)
        run = ledger.promotable()
        if run is not None:
            ledger.promoted(run)
        ends.append((ledger.checkpoint, ledger.open_pages))
    assert ends[0] == ends[1]
    assert ends[0][0].sequence == stuck
