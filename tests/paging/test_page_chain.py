"""One chain's pages are linked, in order, each event once, and heading somewhere."""

import pickle
from collections.abc import Mapping
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_chains import P0, Events, chain_from, page

from gapless.errors import InvalidPage, RoutingChanged, TokenCycle
from gapless.paging.chain import PageChain
from gapless.paging.page import Page
from gapless.progress import Bound, IntegerDomain, ListDomain, TextDomain


def read(start: str, pages: Mapping[str, tuple[list[str], str | None]]) -> tuple[int, int, str]:
    """(fetches, distinct events, how it ended) over pages given as token -> (ids, next), positions by first
    appearance."""
    positions = {
        name: n for n, name in enumerate(dict.fromkeys(name for ids, _ in pages.values() for name in ids))
    }
    chain = chain_from(start)
    met: set[str] = set()
    for fetches in count(1):
        token = chain.next_token
        assert token is not None
        ids, following = pages[token]
        try:
            checked = chain.accept(page([(name, positions[name]) for name in ids], following, token))
        except TokenCycle:
            return fetches, len(met), "TOKEN_CYCLE"
        met |= set(checked.page.ids)
        if checked.done:
            return fetches, len(met), "END"
    raise AssertionError


# --- cycles ----------------------------------------------------------------------------------------------------------


def test_an_empty_page_that_leads_on_is_a_page_like_any_other() -> None:
    assert read("t0", {"t0": ([], "t1"), "t1": ([], "t2"), "t2": (["e1"], None)}) == (3, 1, "END")


def test_a_page_that_leads_to_itself_with_nothing_is_found_at_once() -> None:
    assert read("t5", {"t5": ([], "t5")}) == (1, 0, "TOKEN_CYCLE")


def test_two_pages_that_lead_to_each_other_are_found_after_both() -> None:
    assert read("t5", {"t5": ([], "t6"), "t6": ([], "t5")}) == (2, 0, "TOKEN_CYCLE")


def test_boundary_rows_returned_for_ever_are_given_once() -> None:
    assert read("s100", {"s100": (["x", "y"], "s100")}) == (2, 2, "TOKEN_CYCLE")


def test_a_tie_group_larger_than_its_page_is_read_by_its_tie_break() -> None:
    ids = [f"i{n:02d}" for n in range(25)]
    assert read("k0", {"k0": (ids[:10], "k10"), "k10": (ids[10:20], "k20"), "k20": (ids[20:], None)}) == (
        3,
        25,
        "END",
    )
    assert read("q100", {"q100": (ids[:10], "q100")}) == (2, 10, "TOKEN_CYCLE")


def test_an_event_twice_on_a_page_counts_once() -> None:
    assert read("d0", {"d0": ([], "n1"), "n1": (["a", "b", "a"], "n2"), "n2": (["c"], None)})[:2] == (3, 3)


def test_a_long_circle_full_of_events_is_found_in_its_second_round() -> None:
    pages = {f"t{n}": ([f"e{n}"], f"t{(n + 1) % 50}") for n in range(50)}
    fetches, events, ending = read("t0", pages)
    assert (events, ending) == (50, "TOKEN_CYCLE")
    assert fetches <= 101


def test_the_same_token_is_no_circle_as_long_as_something_new_comes() -> None:
    chain = chain_from("tail")
    for n in range(20):
        events = [(f"e{i}", i) for i in range(n + 1)]
        assert not chain.accept(page(events, "tail", "tail")).done
    with pytest.raises(TokenCycle):
        chain.accept(page([(f"e{i}", i) for i in range(20)], "tail", "tail"))


def test_a_token_is_not_shown_where_it_circles() -> None:
    with pytest.raises(TokenCycle) as cycle:
        chain_from("s3cr3t").accept(page([], "s3cr3t", "s3cr3t"))
    assert "s3cr3t" not in str(cycle.value)
    assert cycle.value.where.startswith("partition p0, page ")


@given(
    st.integers(1, 25).flatmap(
        lambda size: st.tuples(
            st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, 2)), min_size=size, max_size=size),
            st.sampled_from([2, 100_000]),
        )
    )
)
def test_every_endless_chain_ends_as_a_cycle_and_gives_each_event(
    given_graph: tuple[list[tuple[int, int]], int],
) -> None:
    """Random functional graphs of pages against a walk that remembers everything."""
    graph, limit = given_graph
    pages: dict[str, tuple[Events, str]] = {}
    order: list[int] = []
    node = 0
    while node not in order:
        order.append(node)
        node = graph[node][0]
    position = count()
    for n in order:
        pages[f"t{n}"] = ([(f"e{n}.{i}", next(position)) for i in range(graph[n][1])], f"t{graph[n][0]}")
    met, error = read_until_error(chain_from("t0", token_limit=limit), pages, at_most=12 * len(order) + 12)
    # With almost no memory of its tokens a repeated page may look out of order, which ends the reading as
    # well.
    assert isinstance(error, TokenCycle) or (limit == 2 and isinstance(error, InvalidPage))
    assert set(met) == {event_id for events, _ in pages.values() for event_id, _ in events}


def read_until_error(
    chain: PageChain, pages: Mapping[str, tuple[Events, str]], at_most: int
) -> tuple[list[str], Exception]:
    met: list[str] = []
    for _ in range(at_most):
        token = chain.next_token or ""
        events, following = pages[token]
        try:
            met += chain.accept(page(events, following, token)).page.ids
        except (TokenCycle, InvalidPage) as error:
            return met, error
    raise AssertionError(f"still reading after {at_most} pages")


# --- links -----------------------------------------------------------------------------------------------------------


def test_a_page_is_taken_only_where_the_one_before_it_led() -> None:
    chain = chain_from(None)
    chain.accept(page([("a", 1)], "t1"))
    with pytest.raises(InvalidPage, match="fetched with another token"):
        chain.accept(page([("b", 2)], None, "t2"))


def test_nothing_follows_the_end() -> None:
    chain = chain_from("t0")
    assert chain.accept(page([], None, "t0")).done
    assert chain.next_token == "t0"
    with pytest.raises(InvalidPage):
        chain.accept(page([], None, "t0"))


@pytest.mark.parametrize(("following", "end"), [(None, False), ("t1", True)])
def test_a_page_without_a_next_token_is_an_end_and_no_other_is(following: str | None, end: bool) -> None:
    with pytest.raises(InvalidPage, match="neither a next token nor an end"):
        chain_from().accept(Page(None, following, end, [], [], []))


def test_a_page_of_another_routing_generation_is_refused() -> None:
    chain = chain_from(generation="r1")
    assert chain.accept(page([], "t1", generation="r1")).page.generation == "r1"
    assert not chain.accept(page([], "t2", "t1")).done
    with pytest.raises(RoutingChanged, match="'r2'"):
        chain.accept(page([], "t3", "t2", generation="r2"))


# --- order -----------------------------------------------------------------------------------------------------------


def sorted_between(pages: list[list[int]]) -> bool:
    flat = [position for positions in pages for position in positions]
    return flat == sorted(flat)


@given(st.lists(st.lists(st.integers(0, 8), max_size=4), max_size=6))
def test_exactly_what_does_not_decrease_is_taken(pages: list[list[int]]) -> None:
    chain = chain_from(None)
    taken: list[list[int]] = []
    for n, positions in enumerate(pages):
        token = None if n == 0 else f"t{n}"
        events = [(f"e{n}.{i}", position) for i, position in enumerate(positions)]
        if sorted_between([*taken, positions]):
            assert chain.accept(page(events, f"t{n + 1}", token)).page.positions == positions
            taken.append(positions)
        else:
            with pytest.raises(InvalidPage, match="positions have to ascend"):
                chain.accept(page(events, f"t{n + 1}", token))
            return


def test_what_is_out_of_order_is_named_with_both_positions() -> None:
    chain = chain_from(None)
    chain.accept(page([("a", 5)], "t1"))
    with pytest.raises(InvalidPage, match="event 'b' at 3 comes after the last event before it at 5"):
        chain.accept(page([("b", 3)], "t2", "t1"))
    with pytest.raises(InvalidPage, match="event 'b' at 3 comes after 'a' at 5"):
        chain_from(None).accept(page([("a", 5), ("b", 3)], "t1"))


def test_order_is_kept_from_the_last_promoted_position_on() -> None:
    resumed = chain_from("t7", read_to=Bound.through(50))
    with pytest.raises(InvalidPage, match="at 49 comes after the last event before it at 50"):
        resumed.accept(page([("a", 49)], "t8", "t7"))
    assert chain_from("t7", read_to=Bound.through(50)).accept(page([("a", 50)], "t8", "t7")).page.ids == ["a"]


def test_after_a_restart_everything_above_the_bound_may_come_again() -> None:
    restarted = chain_from("s40", bound=Bound.through(40), read_to=Bound.through(90))
    checked = restarted.accept(page([("a", 40), ("b", 41)], "t1", "s40", overlap=Bound.through(40)))
    assert checked.violations == []
    assert restarted.accept(page([("c", 41), ("d", 60)], "t2", "t1", overlap=Bound.through(40))).done is False
    with pytest.raises(InvalidPage, match="event 'e' at 59 comes after the last event before it at 60"):
        restarted.accept(page([("e", 59)], "t3", "t2", overlap=Bound.through(40)))


def test_a_page_asked_for_again_may_repeat_what_came_before() -> None:
    chain = chain_from("tail")
    chain.accept(page([("a", 1), ("b", 2)], "tail", "tail"))
    checked = chain.accept(page([("a", 1), ("b", 2), ("c", 3)], "tail", "tail"))
    assert checked.page.ids == ["a", "b", "c"]


def test_positions_of_lists_and_text_are_ordered_by_their_domain() -> None:
    domain = ListDomain((IntegerDomain(), TextDomain()))
    chain = PageChain(P0, domain, None)
    fine = Page(None, "t1", False, ["a", "b"], [(1, "z"), (2, "a")], [{}, {}])
    assert chain.accept(fine).page is fine
    with pytest.raises(InvalidPage, match=r"\[\"2\",\"A\"\]"):
        chain.accept(Page("t1", "t2", False, ["c"], [(2, "A")], [{}]))


# --- one event, one content ------------------------------------------------------------------------------------------


def test_an_event_alike_in_every_way_is_kept_once() -> None:
    twice = Page(
        None,
        "t1",
        False,
        ["a", "b", "a"],
        [1, 1, 1],
        [{"x": 1, "y": None}, {"x": 2}, {"y": None, "x": 1}],
        overlap=None,
    )
    kept = chain_from().accept(twice).page
    assert (kept.ids, kept.positions, kept.rows) == (["a", "b"], [1, 1], [{"x": 1, "y": None}, {"x": 2}])
    assert kept.next_token == "t1"


@pytest.mark.parametrize("other", [{"x": 2}, {"x": True}, {"x": 1.0}, {"x": "1"}, {"x": 1, "y": None}, {}])
def test_one_id_with_two_contents_is_an_error(other: dict[str, object]) -> None:
    with pytest.raises(InvalidPage, match="event 'a' stands twice on the page, with different content"):
        chain_from().accept(Page(None, "t1", False, ["a", "a"], [1, 1], [{"x": 1}, other]))
    with pytest.raises(InvalidPage, match="stands twice"):
        chain_from().accept(Page(None, "t1", False, ["a", "a"], [1, 2], [{"x": 1}, {"x": 1}]))


@pytest.mark.parametrize("other", [{"x": 2}, {"x": True}, {}])
def test_one_id_with_two_contents_on_two_pages_is_an_error(other: dict[str, object]) -> None:
    """At the edge, where an event may stand on both pages; a group of ties may reach over several."""
    chain = chain_from()
    chain.accept(Page(None, "t1", False, ["z", "a"], [0, 1], [{"x": 0}, {"x": 1}]))
    chain.accept(Page("t1", "t2", False, ["a", "b"], [1, 1], [{"x": 1}, {"x": 2}]))
    with pytest.raises(InvalidPage, match="event 'a' comes again with different content"):
        chain.accept(Page("t2", "t3", False, ["b", "a", "c"], [1, 1, 2], [{"x": 2}, other, {"x": 3}]))


def test_an_event_that_comes_again_unchanged_at_the_edge_is_no_error() -> None:
    chain = chain_from()
    chain.accept(Page(None, "t1", False, ["a"], [1], [{"x": 1, "y": 2}]))
    chain.accept(Page("t1", "t2", False, ["a", "b"], [1, 2], [{"y": 2, "x": 1}, {"x": 9}]))
    assert not chain.accept(Page("t2", "t3", False, ["b", "c"], [2, 3], [{"x": 9}, {"x": 9}])).done


def test_a_page_survives_pickling_with_its_overlap() -> None:
    one = page([("a", 1)], "t1", overlap=Bound.through(3))
    assert pickle.loads(pickle.dumps(one)) == one
