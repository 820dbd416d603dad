"""A source that has nothing further at present: its last page is asked for again, later, and is neither an end nor a circle."""

import threading

import pytest
from page_chains import P0, chain_from, kinds, page

from gapless.errors import InvalidPage, TokenCycle
from gapless.paging.page import Page, Partition
from gapless.paging.readahead import PageFeed
from gapless.progress import Bound
from gapless.testing import ScriptedPage, ScriptedSource

SOON = 20.0


def test_the_same_token_again_and_again_is_no_circle_where_the_source_has_nothing_further() -> None:
    chain = chain_from("t1")
    for _ in range(5):
        assert chain.accept(page(token="t1", next="t1", caught_up=True)).idle
    assert chain.next_token == "t1"


def test_the_same_token_again_is_a_circle_where_it_does_not_say_so() -> None:
    with pytest.raises(TokenCycle):
        chain_from("t1").accept(page(token="t1", next="t1"))


def test_the_start_of_a_chain_that_holds_nothing_yet_is_idle() -> None:
    chain = chain_from()
    nothing = page(caught_up=True)
    assert (nothing.next_token, nothing.end) == (None, False)
    assert chain.accept(nothing).idle
    assert not chain.accept(page([("a", 1)], "t1")).idle


def test_a_start_that_is_proved_needs_a_token_of_its_own() -> None:
    """It would be promoted, and a promoted page without a next token is the end of its chain."""
    with pytest.raises(InvalidPage, match="neither a next token nor an end"):
        chain_from().accept(page(caught_up=True, certificate=Bound.through(3)))


def test_a_higher_certificate_makes_a_quiet_page_worth_promoting() -> None:
    chain = chain_from("t1", bound=Bound.through(3))
    quiet = {"token": "t1", "next": "t1", "caught_up": True}
    assert chain.accept(page(certificate=Bound.through(3), **quiet)).idle
    assert not chain.accept(page(certificate=Bound.through(4), **quiet)).idle
    assert chain.accept(page(certificate=Bound.through(4), **quiet)).idle


def test_a_broken_promise_is_not_passed_over_because_nothing_else_came() -> None:
    chain = chain_from("t1", bound=Bound.through(3))
    checked = chain.accept(page(token="t1", next="t1", caught_up=True, certificate=Bound.through(2)))
    assert kinds(checked) == ["certificate_went_back"]
    assert not checked.idle


def test_another_token_is_worth_promoting_even_if_it_brings_nothing() -> None:
    assert not chain_from("t1").accept(page(token="t1", next="t2", caught_up=True)).idle


def test_events_that_would_be_given_again_at_every_poll_are_refused() -> None:
    with pytest.raises(InvalidPage, match="would give the page's events again"):
        chain_from("t1").accept(page([("a", 1)], token="t1", next="t1", caught_up=True))


def test_an_event_behind_the_bound_is_a_violation_also_at_a_token_that_was_asked_before() -> None:
    """Only a page that goes on may be one that is repeated: where the source had nothing further, what comes later is new."""
    chain = chain_from("t0")
    chain.accept(page([("a", 5)], token="t0", next="t1", certificate=Bound.through(5)))
    chain.accept(page(token="t1", next="t1", caught_up=True, certificate=Bound.through(7)))
    late = chain.accept(page([("late", 4), ("b", 8)], token="t1", next="t2", certificate=Bound.through(8)))
    assert kinds(late) == ["event_behind_bound"]


def test_a_circle_that_begins_after_a_quiet_time_is_found() -> None:
    chain = chain_from("t1")
    chain.accept(page(token="t1", next="t1", caught_up=True))
    chain.accept(page(token="t1", next="t2"))
    with pytest.raises(TokenCycle):
        chain.accept(page(token="t2", next="t1"))


def test_what_is_remembered_of_tokens_does_not_grow_with_the_polls() -> None:
    chain = chain_from("t0", token_limit=4)
    for n in range(100):
        chain.accept(page(token=f"t{n}", next=f"t{n + 1}", caught_up=True))
    assert len(chain._asked) == 0


def test_nothing_is_fetched_ahead_of_a_page_after_which_there_is_nothing_further() -> None:
    source = ScriptedSource(
        {
            "p0": {
                None: ScriptedPage([("a", 1)], "t1"),
                "t1": [ScriptedPage((), "t1", caught_up=True), ScriptedPage([("b", 2)], "t2")],
                "t2": ScriptedPage((), "t2", caught_up=True),
            }
        }
    )
    asked = threading.Semaphore(0)
    session = source.open()

    class Telling:
        def fetch(self, partition: Partition, token: str | None) -> Page:
            fetched = session.fetch(partition, token)
            asked.release()
            return fetched

    feed = PageFeed(Telling(), P0, None, room=1000)  # type: ignore[arg-type]
    try:
        assert [feed.next(SOON).caught_up for _ in range(2)] == [False, True]
        assert feed.stands_at("t1"), "a later call takes it up"
        assert asked.acquire(timeout=SOON)
        assert asked.acquire(timeout=SOON)
        assert not asked.acquire(timeout=0.1), "the same token was asked for again before anybody wanted it"
        assert feed.next(SOON).ids == ["b"]
        assert feed.next(SOON).caught_up
    finally:
        feed.stop()
