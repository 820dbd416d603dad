"""What a chain's pages certify: promises that are broken, and where a range ends."""

import pytest
from page_chains import chain_from, kinds, page

from gapless.errors import InvalidPage
from gapless.paging.chain import CheckedPage
from gapless.paging.source import Range
from gapless.progress import Assertion, Bound

# --- violations ------------------------------------------------------------------------------------------------------


def test_an_event_behind_a_certified_bound_is_kept_and_recorded() -> None:
    chain = chain_from("w0")
    chain.accept(page([], "w1", "w0", certificate=Bound.through(14)))
    checked = chain.accept(page([("k", 14), ("m", 15)], "w2", "w1"))
    assert checked.page.ids == ["k", "m"]
    (late,) = checked.violations
    assert (late.kind, late.event_id, late.position, late.bound) == (
        "event_behind_bound",
        "k",
        14,
        Bound.through(14),
    )
    assert late.detail == "event 'k' at 14 came after through 14 had been certified"


def test_an_event_behind_the_durable_bound_is_recorded_whatever_its_place_in_the_order() -> None:
    chain = chain_from("t3", bound=Bound.through(20), read_to=Bound.through(20))
    checked = chain.accept(page([("late", 15), ("new", 30), ("later", 7)], "t4", "t3"))
    assert [violation.event_id for violation in checked.violations] == ["late", "later"]
    with pytest.raises(InvalidPage, match="positions have to ascend"):
        chain.accept(page([("low", 25)], "t5", "t4"))


def test_a_bound_that_excludes_the_position_is_not_broken_by_it() -> None:
    chain = chain_from("t1", bound=Bound.before(16))
    assert kinds(chain.accept(page([("c", 16), ("d", 17)], "t2", "t1", certificate=Bound.before(17)))) == []
    assert kinds(chain.accept(page([("e", 17)], "t3", "t2"))) == []


def test_the_event_at_a_pages_edge_may_stand_on_the_next_page_too() -> None:
    chain = chain_from(None)
    chain.accept(page([("a", 1), ("b", 2)], "t1", certificate=Bound.through(2)))
    assert kinds(chain.accept(page([("b", 2), ("c", 3)], "t2", "t1"))) == []
    assert (
        kinds(
            chain_from("t1", bound=Bound.through(2), read_to=Bound.through(2)).accept(
                page([("b", 2)], "t2", "t1")
            )
        )
        == []
    )
    other = chain_from(None)
    other.accept(page([("a", 1), ("b", 2)], "t1", certificate=Bound.through(2)))
    assert kinds(other.accept(page([("x", 2), ("c", 3)], "t2", "t1"))) == ["event_behind_bound"]


def test_after_a_restart_events_up_to_it_are_no_violation_until_it_is_passed() -> None:
    overlap = Bound.through(40)
    chain = chain_from("s40", bound=Bound.through(45), read_to=Bound.through(60))
    assert kinds(chain.accept(page([("a", 38), ("b", 40)], "t1", "s40", overlap=overlap))) == []
    assert kinds(chain.accept(page([("c", 40), ("d", 50)], "t2", "t1", overlap=overlap))) == []
    assert kinds(chain.accept(page([("e", 40)], "t3", "t2", overlap=overlap))) == ["event_behind_bound"]


def test_above_where_it_restarted_an_event_behind_the_bound_is_a_violation() -> None:
    chain = chain_from("s40", bound=Bound.through(45))
    checked = chain.accept(page([("a", 44)], "t1", "s40", overlap=Bound.through(40)))
    assert kinds(checked) == ["event_behind_bound"]


def test_a_read_that_begins_behind_a_restart_knows_a_repeated_edge_from_a_late_event() -> None:
    """Before the restart the chain had been read further than it has come since, so that `read_to` is not the page before."""
    overlap = Bound.through(30)
    restarted = {"bound": Bound.before(50), "read_to": Bound.through(90)}
    edge = page([("a", 44), ("b", 44), ("c", 60)], "t2", "t1", overlap=overlap)
    assert kinds(chain_from("t1", **restarted).accept(edge)) == []
    late = page([("a", 44), ("x", 47), ("c", 60)], "t2", "t1", overlap=overlap)
    checked = chain_from("t1", **restarted).accept(late)
    assert [violation.event_id for violation in checked.violations] == ["x"]


def test_a_repeated_page_breaks_no_promise_but_something_new_behind_the_bound_does() -> None:
    chain = chain_from("tail")
    chain.accept(page([("a", 1), ("b", 2)], "tail", "tail", certificate=Bound.through(9)))
    checked = chain.accept(page([("a", 1), ("b", 2), ("c", 5)], "tail", "tail", certificate=Bound.through(9)))
    assert [violation.event_id for violation in checked.violations] == ["c"]


def test_a_certificate_below_the_one_before_is_recorded_once_and_moves_nothing_back() -> None:
    chain = chain_from(None, range=Range(0, 100))
    chain.accept(page([], "t1", certificate=Bound.through(50)))
    checked = chain.accept(page([], "t2", "t1", certificate=Bound.before(50)))
    (fault,) = checked.violations
    assert (fault.kind, fault.bound) == ("certificate_went_back", Bound.through(50))
    assert fault.detail == "certified before 50 after through 50"
    assert kinds(chain.accept(page([], "t3", "t2", certificate=Bound.before(50)))) == []
    assert kinds(chain.accept(page([("a", 50)], "t4", "t3"))) == ["event_behind_bound"]


def test_a_certificate_below_the_durable_bound_went_back_but_not_after_a_restart() -> None:
    low = Bound.through(30)
    assert kinds(chain_from("t", bound=Bound.through(40)).accept(page([], "u", "t", certificate=low))) == [
        "certificate_went_back"
    ]
    restarted = chain_from("t", bound=Bound.through(40)).accept(
        page([], "u", "t", certificate=low, overlap=Bound.through(40))
    )
    assert kinds(restarted) == []


def test_behind_a_restart_the_first_certificate_may_be_lower_on_whatever_page_it_comes() -> None:
    overlap, low = Bound.through(40), Bound.through(30)
    chain = chain_from("t", bound=Bound.through(40))
    assert kinds(chain.accept(page([], "u", "t", overlap=overlap))) == []
    assert kinds(chain.accept(page([], "v", "u", certificate=low, overlap=overlap))) == []
    lower = page([], "w", "v", certificate=Bound.through(29), overlap=overlap)
    assert kinds(chain.accept(lower)) == ["certificate_went_back"]


@pytest.mark.parametrize(
    ("certificate", "expected"),
    [
        (Bound.through(12), []),
        (Bound.before(12), []),
        (Bound.through(11), ["certificate_behind_events"]),
        (Bound.before(5), ["certificate_behind_events"]),
        (None, []),
        (Assertion(Bound.before(5), "assumed"), []),
    ],
)
def test_a_certificate_must_not_lie_behind_its_own_events(certificate: object, expected: list[str]) -> None:
    assert kinds(chain_from().accept(page([("a", 5), ("b", 12)], "t1", certificate=certificate))) == expected


# --- ends ------------------------------------------------------------------------------------------------------------


def ends(checked: CheckedPage) -> str | None:
    return None if checked.ends is None else checked.ends.reason


def test_a_bounded_range_is_done_where_it_is_proved_and_not_where_it_is_passed() -> None:
    chain = chain_from(None, range=Range(0, 100))
    assert ends(chain.accept(page([("a", 99)], "t1", certificate=Bound.through(98)))) is None
    assert ends(chain.accept(page([("b", 100)], "t2", "t1"))) is None
    assert ends(chain.accept(page([], "t3", "t2", certificate=Bound.before(100)))) == "stop"


def test_through_the_position_before_the_stop_is_not_before_the_stop() -> None:
    chain = chain_from(None, range=Range(0, 100))
    assert ends(chain.accept(page([], "t1", certificate=Bound.through(99)))) is None


def test_an_assertion_proves_the_range_as_far_as_reading_goes() -> None:
    chain = chain_from(None, range=Range(0, 100))
    asserted = Assertion(Bound.before(100), "over")
    assert ends(chain.accept(page([("a", 120)], "t1", certificate=asserted))) == "stop"


def test_a_bound_that_was_durable_before_counts() -> None:
    chain = chain_from("t9", range=Range(0, 100), bound=Bound.through(200))
    assert ends(chain.accept(page([], "t10", "t9"))) == "stop"


def test_a_source_that_certifies_nothing_is_done_past_the_stop() -> None:
    chain = chain_from(None, range=Range(0, 100), certifies=False)
    assert ends(chain.accept(page([("a", 99)], "t1"))) is None
    assert ends(chain.accept(page([("b", 100)], "t2", "t1"))) == "stop"


def test_the_sources_own_end_ends_the_chain_proved_or_not() -> None:
    assert ends(chain_from(range=Range(0, 100)).accept(page([("a", 1)]))) == "end"
    assert ends(chain_from().accept(page([("a", 1)]))) == "end"
