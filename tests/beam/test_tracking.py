"""What becomes of pages and outcomes, one by one, on the driver that stands for an engine."""

from dataclasses import replace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.pipeline import PipelineVisitor
from scripted_universe import SCOPE, end_of, universe
from tracked_chains import TrackedChains

from gapless.audit.auditing import audit
from gapless.emitted_page import EmittedPage, Outcome, ReaderStop
from gapless.outcomes import dead_lettered, delivered, left_out, part
from gapless.paging.chain import PageViolation
from gapless.progress import Assertion, Bound, ChainState
from gapless.testing import ScriptedPage, ScriptedSource
from gapless.testing.keyed_driver import BundleLost
from gapless.track_open_pages import LOOK_SECONDS, TrackInBatch
from gapless.track_partitions import TrackPartitions


def stop_at(page: EmittedPage, state: ChainState, code: str = "source_unavailable") -> EmittedPage:
    """As a reader says that it could not read what follows the page."""
    return EmittedPage(
        page.task,
        "",
        page.number + 1,
        page.next_token,
        page.next_token,
        stop=ReaderStop(page.next_token, state, code, "503 for long"),
    )


def test_a_page_is_promoted_when_all_of_its_events_are_settled(chains: Any) -> None:
    page = chains.read("p0", "r")[0]
    chains.bundle(page, delivered(page, page.ids[:2]))
    assert chains.row("p0").sequence == 0
    (progress,) = chains.bundle(delivered(page, page.ids[2:]))
    row = chains.row("p0")
    assert (row.sequence, row.page_token, row.events) == (1, page.next_token, 3)
    assert (progress.sequence, progress.bound) == (1, page.certificate.bound)
    assert row.read_to == Bound.through(page.positions[-1])
    assert chains.driver.state_entries() == 0


@pytest.mark.parametrize("stream", [False, True])
def test_where_bundles_are_split_at_slow_elements_nothing_is_promoted_before_their_end(
    tracked: Any, stream: bool
) -> None:
    chains = tracked(stream=stream, only_at_the_end=True)
    page = chains.read("p0", "r")[0]
    with pytest.raises(BundleLost):
        chains.bundle(page, delivered(page), crash_after=2)
    assert chains.row("p0").sequence == 0
    chains.bundle(page, delivered(page))
    assert chains.row("p0").sequence == 1
    chains.driver.clock.advance(LOOK_SECONDS)
    chains.driver.fire(end_of_window=True)
    assert chains.driver.state_entries() == 0


@pytest.mark.parametrize(
    ("runner", "splits"), [("PrismRunner", True), ("DirectRunner", True), ("FnApiRunner", False)]
)
def test_what_splits_bundles_is_known_where_the_pipeline_is_built(runner: str, splits: bool) -> None:
    pipeline = beam.Pipeline(runner=runner)
    pages = pipeline | beam.Create([]).with_output_types(EmittedPage)
    outcomes = pipeline | "Outcomes" >> beam.Create([]).with_output_types(Outcome)
    _ = (pages, outcomes) | TrackPartitions("sqlite:///progress.db")
    found: list[Any] = []

    class Visitor(PipelineVisitor):
        def visit_transform(self, transform_node: Any) -> None:
            fn = getattr(transform_node.transform, "fn", None)
            if isinstance(fn, TrackInBatch):
                found.append(fn)

    pipeline.visit(Visitor())
    assert [fn.only_at_the_end for fn in found] == [splits]


def test_outcomes_may_come_before_their_page(chains: Any) -> None:
    page = chains.read("p0", "r")[0]
    chains.bundle(delivered(page))
    chains.driver.lose_worker()
    chains.bundle(page)
    assert chains.row("p0").sequence == 1
    assert chains.driver.state_entries() == 0


def test_pages_are_promoted_in_the_order_of_their_tokens_however_they_come(chains: Any) -> None:
    pages = chains.read("p0", "r")
    chains.bundle(*pages[1:], *map(delivered, pages[1:]))
    assert chains.row("p0").sequence == 0
    chains.bundle(pages[0], delivered(pages[0]))
    row = chains.row("p0")
    assert (row.state, row.sequence, row.bound) == (
        ChainState.ENDED,
        4,
        end_of(universe(partitions=1, pages=4, events=3)),
    )
    assert chains.driver.state_entries() == 0
    assert audit(chains.store, SCOPE).clean


def test_what_comes_again_after_its_promotion_changes_nothing_and_is_not_kept(chains: Any) -> None:
    pages = chains.read("p0", "r")
    chains.bundle(pages[0], delivered(pages[0]))
    before = chains.row("p0")
    for _ in range(2):
        assert (
            chains.bundle(delivered(pages[0]), pages[0], delivered(pages[0]), delivered(pages[0], ["p0-0"]))
            == []
        )
        chains.driver.lose_worker()
    assert chains.row("p0") == before
    assert chains.driver.state_entries() == 0


def test_a_bundle_that_is_lost_leaves_nothing_and_may_come_again(chains: Any) -> None:
    page = chains.read("p0", "r")[0]
    with pytest.raises(BundleLost):
        chains.bundle(page, delivered(page, page.ids[:1]), crash_after=2)
    assert chains.driver.state_entries() == 0
    chains.bundle(delivered(page, page.ids[1:]))
    chains.bundle(page)
    assert chains.row("p0").sequence == 0
    chains.bundle(delivered(page, page.ids[:1]))
    assert chains.row("p0").sequence == 1


def test_a_promotion_whose_bundle_is_lost_stands(chains: Any) -> None:
    pages = chains.read("p0", "r")
    with pytest.raises(BundleLost):
        chains.bundle(pages[0], delivered(pages[0]), pages[1], crash_after=3)
    assert chains.row("p0").sequence == 1
    chains.bundle(pages[0], delivered(pages[0]), pages[1])
    assert chains.row("p0").sequence == 1
    chains.bundle(delivered(pages[1]))
    assert chains.row("p0").sequence == 2
    assert chains.driver.state_entries() == 0


def test_dead_letters_are_recorded_with_their_data(chains: Any) -> None:
    page = chains.read("p0", "r")[0]
    chains.bundle(page, dead_lettered(page, {"p0-1": "no such account"}), delivered(page, ["p0-0", "p0-2"]))
    (letter,) = chains.store.dead_letters(SCOPE)
    assert (letter.event_id, letter.reason, letter.sequence) == ("p0-1", "no such account", 0)
    assert letter.payload == '{"id":"p0-1","position":10,"text":"ü1"}'
    assert chains.row("p0").dead_letters == 1


def test_the_first_outcome_of_an_event_stands(chains: Any) -> None:
    page = chains.read("p0", "r")[0]
    chains.bundle(page, delivered(page, ["p0-1"]))
    chains.bundle(delivered(page, but={"p0-1": "too late"}))
    assert chains.row("p0").sequence == 1
    assert list(chains.store.dead_letters(SCOPE)) == []


def test_fan_out_is_settled_when_all_parts_have_come(chains: Any) -> None:
    page = chains.read("p0", "r")[0]
    first, second = part(delivered(page), 0, of=2), part(delivered(page, ["p0-0", "p0-2"]), 1, of=2)
    chains.bundle(page, second, second, first)
    chains.driver.lose_worker()
    assert chains.row("p0").sequence == 0
    chains.bundle(part(dead_lettered(page, {"p0-1": "no"}), 1, of=2))
    assert chains.row("p0").sequence == 1
    assert [letter.event_id for letter in chains.store.dead_letters(SCOPE)] == ["p0-1"]


def test_what_is_left_out_is_said_so(chains: Any) -> None:
    page = chains.read("p0", "r")[0]
    chains.bundle(page, delivered(page, ["p0-0"]))
    assert chains.row("p0").sequence == 0
    chains.bundle(left_out(page, ["p0-1", "p0-2"]))
    assert chains.row("p0").sequence == 1


@pytest.mark.parametrize("state", [ChainState.HELD, ChainState.GAP, ChainState.OPEN])
def test_a_readers_stop_holds_once_everything_before_it_is_promoted(chains: Any, state: ChainState) -> None:
    first, second = chains.read("p0", "r")[:2]
    chains.bundle(stop_at(second, state), first, delivered(first), second)
    row = chains.row("p0")
    assert (row.state, row.blocker) == (ChainState.OPEN, None)
    chains.bundle(delivered(second))
    row = chains.row("p0")
    assert (row.state, row.blocker.code, row.blocker.hint) == (state, "source_unavailable", "503 for long")
    assert chains.driver.state_entries() == 0


def test_a_stop_that_was_read_past_holds_nobody(chains: Any) -> None:
    first, second, third = chains.read("p0", "r")[:3]
    chains.bundle(first, delivered(first), second, delivered(second), third, delivered(third))
    chains.bundle(stop_at(first, ChainState.HELD))
    assert chains.row("p0").state is ChainState.OPEN
    assert chains.driver.state_entries() == 0


def test_settled_pages_that_lead_on_open_what_a_twin_has_held(chains: Any) -> None:
    first, second = chains.read("p0", "r")[:2]
    chains.bundle(first, delivered(first), stop_at(first, ChainState.HELD))
    assert chains.row("p0").state is ChainState.HELD
    chains.bundle(second, delivered(second))
    row = chains.row("p0")
    assert (row.state, row.sequence, row.blocker) == (ChainState.OPEN, 2, None)


class TestFences:
    def test_pages_of_an_older_run_are_not_promoted(self, chains: Any) -> None:
        pages = chains.read("p0", "old")
        chains.bundle(pages[0], delivered(pages[0], ["p0-0"]), *map(delivered, pages[1:]))
        chains.new_run()
        chains.bundle(delivered(pages[0]), pages[1])
        assert chains.row("p0").sequence == 0
        mine = chains.read("p0", "new")
        chains.bundle(*mine, *map(delivered, mine))
        row = chains.row("p0")
        assert (row.state, row.fencing_token) == (ChainState.ENDED, 2)
        assert chains.driver.state_entries() == 0

    def test_a_rival_that_was_first_wins_and_the_rest_goes_on_from_there(self, chains: Any) -> None:
        pages = chains.read("p0", "r")
        chains.bundle(*pages[:3])
        other = TrackedChains.beside(chains)
        twin = chains.read("p0", "twin")
        other.bundle(*twin[:2], *map(delivered, twin[:2]))
        assert chains.row("p0").sequence == 2
        chains.bundle(*map(delivered, pages[:3]))
        row = chains.row("p0")
        assert (row.sequence, row.events) == (3, 9)
        assert chains.driver.state_entries() == 0
        other.close()


class TestEvidence:
    def test_the_highest_certificate_counts_and_an_assertion_taints(self, chains: Any) -> None:
        first, second = chains.read("p0", "r")[:2]
        second = replace(second, certificate=Assertion(Bound.through(50), "2013 is over"))
        chains.bundle(first, delivered(first), second, delivered(second))
        row = chains.row("p0")
        assert (row.bound, row.basis) == (Bound.through(50), "asserted")
        assert audit(chains.store, SCOPE).clean

    def test_violations_of_a_page_are_recorded_with_its_promotion(self, chains: Any) -> None:
        page = chains.read("p0", "r")[0]
        broken = PageViolation("event_behind_bound", "came late", "p0-1", 10, Bound.through(15))
        page = replace(page, violations=[broken])
        chains.bundle(page)
        assert list(chains.store.violations(SCOPE)) == []
        chains.bundle(delivered(page))
        (found,) = chains.store.violations(SCOPE)
        assert (found.event_id, found.sequence, found.bound) == ("p0-1", 0, Bound.through(15))

    def test_a_page_of_another_routing_generation_is_dropped(self, chains: Any) -> None:
        page = chains.read("p0", "r")[0]
        chains.bundle(replace(page, generation="g2"), delivered(page))
        assert chains.row("p0").sequence == 0
        mine = chains.read("p0", "again")[0]
        chains.bundle(mine, delivered(mine))
        assert chains.row("p0").sequence == 1


def test_a_chain_that_was_restarted_goes_on_from_its_new_token(chains: Any) -> None:
    first = chains.read("p0", "r")[0]
    chains.bundle(first, delivered(first))
    row = chains.row("p0")
    chains.store.restart(row, "since 1", "410")
    page = replace(
        chains.read_at("p0", row.page_token, row.sequence), start_token="since 1", attempt="restarted"
    )
    chains.bundle(page)
    chains.bundle(delivered(page))
    assert chains.row("p0").sequence == 2


def test_pages_that_lead_back_to_their_own_start_are_each_promoted_once(chains: Any) -> None:
    """As the tail of a stream may be: the same token, asked again, brings more."""
    first = chains.read("p0", "r")[0]
    chains.bundle(first, delivered(first))
    tail = [
        replace(
            first,
            attempt=f"tail {number}",
            number=number,
            start_token=first.next_token,
            next_token=first.next_token,
            ids=[f"n{number}"],
            positions=[100 + number],
            rows=[{}],
            certificate=None,
        )
        for number in (1, 2, 3)
    ]
    for page in tail:
        chains.bundle(page, page, delivered(page))
        chains.driver.lose_worker()
        chains.bundle(delivered(page), page)
    row = chains.row("p0")
    assert (row.sequence, row.page_token, row.events) == (4, first.next_token, 6)
    assert chains.driver.state_entries() == 0


def test_an_outcome_of_what_is_no_page_says_nothing(chains: Any) -> None:
    stop = stop_at(chains.read("p0", "r")[0], ChainState.HELD)
    chains.bundle(delivered(stop))
    assert chains.driver.state_entries() == 0


@pytest.mark.parametrize("said", ["number", "all by number", "read through"])
def test_an_outcome_built_by_hand_may_come_before_its_page(chains: Any, said: str) -> None:
    page = chains.read("p0", "r")[0]
    least = Outcome(SCOPE, page.task.chain, page.attempt, tuple(page.ids), number=page.number)
    outcome = {
        "number": least,
        "all by number": replace(least, event_ids=None),
        "read through": replace(least, number=None, read_through=page.positions[-1]),
    }[said]
    chains.bundle(outcome)
    chains.bundle(page)
    assert chains.row("p0").sequence == 1


def test_the_outcome_of_a_page_without_events_leaves_nothing_behind(sqlite_url: str) -> None:
    pages = {None: ScriptedPage([], next="t1", certificate=Bound.through(3)), "t1": ScriptedPage([("a", 4)])}
    chains = TrackedChains(sqlite_url, ScriptedSource({"p0": pages}, scope=SCOPE))
    empty, page = chains.read("p0", "r")
    chains.bundle(delivered(empty))
    chains.bundle(empty, delivered(empty))
    chains.bundle(delivered(empty))
    assert chains.row("p0").sequence == 1
    chains.bundle(page, delivered(page))
    assert chains.row("p0").state is ChainState.ENDED
    assert chains.driver.state_entries() == 0
    chains.close()
