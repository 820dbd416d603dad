"""What the steps of a user's pipeline say of a page: of which events, and that wrong ones are refused where they are said."""

from dataclasses import replace

import pytest

import gapless
from gapless.emitted_page import EmittedPage, LetterOf, Outcome
from gapless.outcomes import dead_lettered, delivered, example_page, left_out, part
from gapless.progress import Terminal
from gapless.tracking.log_entry import LogEntry, entries_of

PAGE = example_page()


def test_an_outcome_says_of_which_attempt_and_how_far_its_page_went() -> None:
    outcome = delivered(PAGE)
    assert (outcome.scope, outcome.chain, outcome.attempt) == ("example", 1, "attempt")
    assert (outcome.event_ids, outcome.read_through, outcome.number) == (None, 2, 0)


def test_an_event_is_named_once() -> None:
    assert delivered(PAGE, ["b", "a", "b"]).event_ids == ("b", "a")


@pytest.mark.parametrize(
    "say",
    [
        lambda page: delivered(page, ["a", "z"]),
        lambda page: delivered(page, but={"z": "no"}),
        lambda page: dead_lettered(page, {"z": "no"}),
        lambda page: left_out(page, iter("z")),
    ],
)
def test_an_event_that_the_page_does_not_have_is_refused(say) -> None:
    with pytest.raises(ValueError, match="no event 'z'"):
        say(PAGE)


def test_the_same_holds_for_the_page_looked_at_next() -> None:
    other = replace(PAGE, ids=("z",), positions=(9,), rows=({},))
    delivered(PAGE, ["a"])
    assert delivered(other, ["z"]).read_through == 9
    with pytest.raises(ValueError, match="no event 'a'"):
        delivered(other, ["a"])


def test_dead_letters_keep_the_data_exactly() -> None:
    page = replace(PAGE, rows=({"n": 2**70, "x": None}, {}))
    (letter,) = dead_lettered(page, {"a": "no"}).letters
    assert letter == LetterOf("a", 1, "no", '{"n":1180591620717411303424,"x":null}')


@pytest.mark.parametrize("reason", [None, ValueError("no such account"), 3])
def test_a_reason_is_a_text(reason) -> None:
    with pytest.raises(TypeError, match="the reason why event 'a' is given up on is a text"):
        delivered(PAGE, but={"a": reason})


def test_one_text_is_not_taken_for_many_ids() -> None:
    with pytest.raises(TypeError, match="event ids are a tuple"):
        Outcome("s", 1, "a", "e-1", number=0)
    for say in (lambda: delivered(PAGE, "ab"), lambda: left_out(PAGE, "ab")):
        with pytest.raises(TypeError, match="event ids are several"):
            say()


@pytest.mark.parametrize(("number", "of"), [(2, 2), (-1, 2), (0, 0)])
def test_a_part_is_one_of_so_many(number: int, of: int) -> None:
    with pytest.raises(ValueError, match="a part is one of"):
        part(delivered(PAGE), number, of)
    with pytest.raises(ValueError, match="a part is one of"):
        Outcome("s", 1, "a", None, part=(number, of))


def test_an_outcome_of_an_element_that_is_no_page_says_nothing() -> None:
    from gapless.emitted_page import ReaderStop
    from gapless.progress import ChainState

    stop = EmittedPage(PAGE.task, "x", 3, stop=ReaderStop("t", ChainState.HELD, "source_unavailable", "503"))
    assert delivered(stop).attempt == ""


def test_events_with_a_receipt_are_not_given_again() -> None:
    page = replace(PAGE, settled={"a": Terminal.DELIVERED})
    assert [event.id for event in page.events] == ["b"]


def test_rows_do_not_travel_to_the_tracker_but_what_an_operator_gave_up_on() -> None:
    page = replace(PAGE, settled={"a": Terminal.DEAD_LETTERED, "b": Terminal.DELIVERED})
    slim, skipped = entries_of(page)
    assert slim == LogEntry(replace(page, rows=()))
    assert isinstance(skipped.said, Outcome)
    assert skipped.said.event_ids == ("a",)
    assert skipped.said.letters == (LetterOf("a", 1, "skipped by an operator", '{"amount":3}'),)


def test_what_is_needed_is_public() -> None:
    for name in (
        "EmittedPage",
        "Event",
        "LetterOf",
        "Outcome",
        "dead_lettered",
        "delivered",
        "left_out",
        "part",
    ):
        assert name in gapless.__all__
        assert getattr(gapless, name) is not None
