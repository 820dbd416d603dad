"""What is said of pages that wait: for outcomes, for parts of them, for the pages before."""

from dataclasses import replace
from typing import Any

from scripted_universe import SCOPE

from gapless.audit.auditing import audit
from gapless.outcomes import dead_lettered, delivered, part
from gapless.progress import ChainState, Terminal
from gapless.track_open_pages import LOOK_SECONDS


class TestWaiting:
    def test_what_a_batch_waits_for_at_its_end_is_said_and_nothing_is_repeated(self, chains: Any) -> None:
        page, following = chains.read("p0", "r")[:2]
        chains.bundle(
            page,
            dead_lettered(page, {"p0-0": "no"}),
            delivered(page, ["p0-2"]),
            following,
            delivered(following),
        )
        (progress,) = chains.driver.fire(end_of_window=True)
        row = chains.row("p0")
        assert (row.state, row.blocker.code, row.blocker.event_id) == (
            ChainState.OPEN,
            "unsettled_event",
            "p0-1",
        )
        assert (row.blocker.position, progress.blocker) == (10, "unsettled_event")
        receipts = chains.store.receipts(row.chain)
        assert receipts == {
            "p0-0": "dead_lettered",
            "p0-2": "delivered",
            **dict.fromkeys(following.ids, "delivered"),
        }
        assert [letter.event_id for letter in chains.store.dead_letters(SCOPE)] == ["p0-0"]

        chains.new_run()
        chains.driver.lose_worker()
        again = [
            replace(each, settled={e: Terminal(receipts[e]) for e in each.ids if e in receipts})
            for each in chains.read("p0", "next")[:2]
        ]
        assert [event.id for each in again for event in each.events] == ["p0-1"]
        chains.bundle(*again, delivered(again[0], ["p0-1"]))
        row = chains.row("p0")
        assert (row.sequence, row.blocker, row.dead_letters) == (2, None, 1)
        assert chains.store.receipts(row.chain) == {}
        assert audit(chains.store, SCOPE).clean

    def test_an_event_that_is_settled_on_one_page_alone_has_no_receipt(self, chains: Any) -> None:
        """A receipt goes by name, and would settle the other one."""
        page, following = chains.read("p0", "r")[:2]
        following = replace(following, ids=["p0-1", "n1", "n2"])
        chains.bundle(page, delivered(page, ["p0-0"]), following, delivered(following))
        chains.driver.fire(end_of_window=True)
        assert chains.store.receipts(chains.row("p0").chain) == dict.fromkeys(
            ["p0-0", "n1", "n2"], "delivered"
        )
        assert chains.row("p0").sequence == 0

    def test_no_event_is_named_of_a_page_that_waits_for_one_before_it(self, chains: Any) -> None:
        pages = chains.read("p0", "r")
        chains.bundle(pages[1])
        (progress,) = chains.driver.fire(end_of_window=True)
        assert progress.blocker == "unsettled_event"
        assert chains.row("p0").blocker.event_id is None

    def test_a_stream_says_it_after_a_while_and_takes_it_back(self, tracked: Any) -> None:
        chains = tracked(stream=True)
        page = chains.read("p0", "r")[0]
        chains.bundle(page)
        assert chains.driver.fire() == []
        chains.driver.clock.advance(LOOK_SECONDS)
        chains.driver.fire()
        assert chains.row("p0").blocker.event_id == "p0-0"
        assert chains.driver.timers == 1
        chains.driver.clock.advance(LOOK_SECONDS)
        assert chains.driver.fire() == []
        chains.bundle(delivered(page))
        row = chains.row("p0")
        assert (row.sequence, row.blocker) == (1, None)
        chains.driver.clock.advance(LOOK_SECONDS)
        chains.driver.fire()
        assert (chains.driver.timers, chains.driver.state_entries()) == (0, 0)

    def test_an_operators_skip_settles_an_open_page(self, tracked: Any) -> None:
        chains = tracked(stream=True)
        page = chains.read("p0", "r")[0]
        chains.bundle(page, delivered(page, ["p0-1", "p0-2"]))
        chains.driver.clock.advance(LOOK_SECONDS)
        chains.driver.fire()
        chains.store.skip(SCOPE, "p0", "p0-0", "it never comes", "operator")
        chains.driver.clock.advance(LOOK_SECONDS)
        chains.driver.fire()
        row = chains.row("p0")
        assert (row.sequence, row.dead_letters, row.blocker) == (1, 1, None)
        assert chains.driver.state_entries() == 0

    def test_what_was_skipped_before_its_data_was_there_is_given_it(self, chains: Any) -> None:
        page = chains.read("p0", "r")[0]
        chains.bundle(page)
        chains.driver.fire(end_of_window=True)
        chains.store.skip(SCOPE, "p0", "p0-0", "it never comes", "operator")
        chains.new_run()
        again = replace(chains.read("p0", "next")[0], settled={"p0-0": Terminal.DEAD_LETTERED})
        chains.bundle(again, delivered(again, ["p0-1", "p0-2"]))
        (letter,) = chains.store.dead_letters(SCOPE)
        assert (letter.reason, letter.operator) == ("it never comes", "operator")
        assert letter.payload.startswith('{"id":"p0-0"')
        assert chains.row("p0").dead_letters == 1


def test_whoever_waits_for_parts_of_an_outcome_says_which_have_come(chains: Any) -> None:
    page = chains.read("p0", "r")[0]
    chains.bundle(page, part(delivered(page), 0, of=2), part(delivered(page), 1, of=3))
    chains.driver.fire(end_of_window=True)
    blocker = chains.row("p0").blocker
    assert (blocker.event_id, blocker.hint) == (
        page.ids[0],
        "of its outcome the pipeline has only said part 0 of 2, 1 of 3 (and 2 more events of its page)",
    )


def test_a_page_that_the_pipeline_has_kept_from_the_tracker_is_missed_by_name(chains: Any) -> None:
    first, second, *_ = chains.read("p0", "r")
    chains.bundle(second, delivered(first), delivered(second))
    (progress,) = chains.driver.fire(end_of_window=True)
    row = chains.row("p0")
    assert (row.state, row.sequence, progress.blocker) == (ChainState.OPEN, 0, "unsettled_event")
    assert "TrackPartitions needs all of ReadPages' pages" in row.blocker.hint
    chains.bundle(first)
    assert (chains.row("p0").sequence, chains.row("p0").blocker) == (2, None)
