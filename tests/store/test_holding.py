"""What stops a chain becomes its durable state: held, a gap, or a new start; and an operator's way past an event."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gapless.errors import ConfigurationError
from gapless.progress import Bound, ChainState
from gapless.store.records import Blocker

EVENT = Blocker("unsettled_event", "ValueError: no", "e110", 110)


def test_a_held_chain_tells_what_holds_it_since_when_and_until_when(scene):
    (row,) = scene.members("a")
    retry_at = scene.clock.now() + timedelta(seconds=30)
    assert scene.store.hold(row, ChainState.HELD, replace(EVENT, retry_at=retry_at))
    held = scene.store.chain(row.chain)
    assert held.state is ChainState.HELD
    assert held.blocker == replace(EVENT, since=scene.clock.now(), retry_at=retry_at)
    assert (held.sequence, held.page_token, held.bound) == (row.sequence, row.page_token, row.bound)


def test_since_stays_while_the_same_event_holds_and_starts_anew_with_another(scene):
    (row,) = scene.members("a")
    began = scene.clock.now()
    scene.store.hold(row, ChainState.HELD, EVENT)
    scene.clock.sleep(60)
    row = scene.store.take(row.chain, 2)
    scene.store.hold(row, ChainState.HELD, replace(EVENT, hint="another hint"))
    blocker = scene.store.chain(row.chain).blocker
    assert (blocker.since, blocker.hint) == (began, "another hint")
    row = scene.store.take(row.chain, 3)
    scene.store.hold(row, ChainState.HELD, replace(EVENT, event_id="e111"))
    assert scene.store.chain(row.chain).blocker.since == scene.clock.now()
    row = scene.store.take(row.chain, 4)
    scene.clock.sleep(60)
    scene.store.hold(row, ChainState.HELD, replace(EVENT, code="schema_drift", event_id="e111"))
    assert scene.store.chain(row.chain).blocker.since == scene.clock.now()


def test_a_blocker_without_an_event_keeps_its_since_too(scene):
    (row,) = scene.members("a")
    began = scene.clock.now()
    scene.store.hold(row, ChainState.HELD, Blocker("source_unavailable", "503"))
    scene.clock.sleep(60)
    scene.store.hold(
        scene.store.take(row.chain, 2), ChainState.HELD, Blocker("source_unavailable", "timeout")
    )
    assert scene.store.chain(row.chain).blocker == Blocker("source_unavailable", "timeout", since=began)


@pytest.mark.parametrize(
    "other", [{"fencing_token": 0}, {"sequence": 7}, {"page_token": "x"}, {"generation": "r2"}]
)
def test_who_has_lost_the_chain_cannot_hold_it(scene, other):
    (row,) = scene.members("a")
    row = scene.advance(row, 10)
    before = scene.contents()
    assert not scene.store.hold(replace(row, **other), ChainState.HELD, EVENT)
    assert scene.contents() == before


def test_a_zombie_cannot_hold_what_a_newer_run_has_taken(scene):
    (row,) = scene.members("a")
    scene.store.take(row.chain, 2)
    assert not scene.store.hold(row, ChainState.GAP, Blocker("range_trimmed", "410"))
    assert scene.store.chain(row.chain).state is ChainState.OPEN


def test_a_gap_is_not_turned_into_a_hold(scene, kit):
    (row,) = scene.members("a")
    assert scene.store.hold(row, ChainState.GAP, Blocker("range_trimmed", "410"))
    assert not scene.store.hold(row, ChainState.HELD, EVENT)
    gap = scene.store.take(row.chain, 2)
    assert (gap.state, gap.blocker.code) == (ChainState.GAP, "range_trimmed")
    assert scene.store.promote(kit.promotion(gap, 10)) is None


def test_an_open_chain_says_what_it_waits_for_and_goes_on(scene, kit):
    (row,) = scene.members("a")
    assert scene.store.hold(row, ChainState.OPEN, EVENT)
    waiting = scene.store.chain(row.chain)
    assert (waiting.state, waiting.blocker.event_id) == (ChainState.OPEN, "e110")
    promoted = scene.store.promote(kit.promotion(waiting, 10))
    assert promoted.blocker is None


def test_an_explanation_does_not_open_what_is_held(scene):
    (row,) = scene.members("a")
    scene.store.hold(row, ChainState.HELD, EVENT)
    assert not scene.store.hold(row, ChainState.OPEN, EVENT)
    assert scene.store.chain(row.chain).state is ChainState.HELD


def test_a_hold_needs_one_of_its_states_and_an_event_its_position(scene):
    (row,) = scene.members("a")
    with pytest.raises(ValueError, match="held or gap, not ended"):
        scene.store.hold(row, ChainState.ENDED, EVENT)
    with pytest.raises(ValueError, match="position of event 'e110'"):
        scene.store.hold(row, ChainState.HELD, replace(EVENT, position=None))


def test_a_failing_event_holds_the_frontier_below_it(scene):
    """Bounds 120 and 100 with a failing 110 stay at 100; when it is settled, 130 gives 120."""
    a, b = scene.members("a", "b")
    scene.advance(a, 120)
    b = scene.advance(b, 100)
    scene.store.hold(b, ChainState.HELD, EVENT)
    assert scene.publish().frontier == Bound.through(100)
    b = scene.store.take(b.chain, 2)
    scene.advance(b, 130)
    assert scene.publish().frontier == Bound.through(120)


class TestRestart:
    """A new token after the source has forgotten the old one."""

    def test_the_token_alone_is_replaced_and_the_journal_tells(self, scene):
        (row,) = scene.members("a")
        row = scene.advance(row, 10)
        restarted = scene.store.restart(row, "since=10", "410 Gone")
        assert restarted == replace(row, page_token="since=10")
        ((_, scope, _, chain, _, action, detail, reason, operator, _),) = scene.contents()["journal"]
        assert (scope, chain, action, reason, operator) == ("orders", row.chain, "restart", "410 Gone", None)
        assert detail == '{"from":"t1","sequence":1,"to":"since=10"}'

    def test_of_two_restarts_one_wins(self, scene):
        (row,) = scene.members("a")
        assert scene.store.restart(row, "x", "410") is not None
        assert scene.another().restart(row, "y", "410") is None
        assert scene.store.chain(row.chain).page_token == "x"
        assert len(scene.contents()["journal"]) == 1

    def test_many_restarts_at_once_have_one_winner(self, scene, kit):
        (row,) = scene.members("a")
        stores = [scene.another() for _ in range(6)]
        results = kit.at_once(
            [lambda s=s, n=n: s.restart(row, f"token {n}", "410") for n, s in enumerate(stores)]
        )
        (winner,) = [each for each in results if each is not None]
        assert scene.store.chain(row.chain) == winner

    def test_a_promotion_and_a_restart_exclude_each_other(self, scene, kit):
        (row,) = scene.members("a")
        scene.advance(row, 10)
        assert scene.store.restart(row, "x", "410") is None


class TestReceipts:
    """Outcomes of events of an open page."""

    def test_they_are_there_for_the_replay(self, scene):
        (row,) = scene.members("a")
        assert scene.store.record_receipts(
            row, {"e1": "delivered", "e2": "dead_lettered", "nul\x00": "delivered"}
        )
        assert scene.store.receipts(row.chain) == {
            "e1": "delivered",
            "e2": "dead_lettered",
            "nul\x00": "delivered",
        }

    def test_the_first_outcome_of_an_event_stays(self, scene):
        (row,) = scene.members("a")
        scene.store.record_receipts(row, {"e1": "dead_lettered"})
        assert scene.store.record_receipts(row, {"e1": "delivered", "e2": "delivered"})
        assert scene.store.receipts(row.chain) == {"e1": "dead_lettered", "e2": "delivered"}

    def test_dead_letters_come_with_them_and_are_counted(self, scene, kit):
        (row,) = scene.members("a")
        for _ in range(2):
            assert scene.store.record_receipts(row, {"e1": "dead_lettered"}, [kit.letter("e1")])
        assert scene.store.chain(row.chain).dead_letters == 1
        assert [letter.event_id for letter in scene.store.dead_letters("orders")] == ["e1"]

    @pytest.mark.parametrize("other", [{"fencing_token": 0}, {"sequence": 7}, {"page_token": "x"}])
    def test_who_has_lost_the_chain_records_nothing(self, scene, kit, other):
        (row,) = scene.members("a")
        before = scene.contents()
        assert not scene.store.record_receipts(replace(row, **other), {"e1": "delivered"}, [kit.letter("e1")])
        assert scene.contents() == before

    def test_twins_may_record_at_once(self, scene, kit):
        (row,) = scene.members("a")
        stores = [scene.another() for _ in range(6)]
        outcomes = {f"e{n}": "delivered" for n in range(50)}
        letters = [kit.letter("e1")]
        assert all(kit.at_once([lambda s=s: s.record_receipts(row, outcomes, letters) for s in stores]))
        assert scene.store.receipts(row.chain) == outcomes
        assert scene.store.chain(row.chain).dead_letters == 1

    def test_no_receipt_appears_on_a_chain_that_is_promoted_meanwhile(self, scene, kit):
        (row,) = scene.members("a")
        other = scene.another()
        promoted, recorded = kit.at_once(
            [
                lambda: scene.store.promote(kit.promotion(row, 10)),
                lambda: other.record_receipts(row, {"e1": "delivered"}),
            ]
        )
        assert promoted is not None
        assert recorded in (True, False)
        assert scene.store.receipts(row.chain) == {}

    def test_an_unknown_outcome_is_a_mistake_of_the_caller(self, scene):
        (row,) = scene.members("a")
        with pytest.raises(ValueError, match="no such outcome: lost"):
            scene.store.record_receipts(row, {"e1": "lost"})


class TestSkip:
    """An operator's way past an event that cannot be applied."""

    def held(self, scene):
        (row,) = scene.members("a")
        scene.store.hold(row, ChainState.HELD, EVENT)
        return row

    def test_the_event_becomes_a_dead_letter_with_the_operators_word(self, scene):
        row = self.held(scene)
        letter = scene.store.skip("orders", "a", "e110", "known bad", "ann")
        assert (letter.event_id, letter.position, letter.reason, letter.operator) == (
            "e110",
            110,
            "known bad",
            "ann",
        )
        assert letter.recorded_at == scene.clock.now()
        assert list(scene.store.dead_letters("orders")) == [letter]
        assert scene.store.receipts(row.chain) == {"e110": "dead_lettered"}
        assert scene.store.chain(row.chain).dead_letters == 1
        ((_, _, _, _, _, action, detail, reason, operator, _),) = scene.contents()["journal"]
        assert (action, detail, reason, operator) == ("skip", '{"event_id":"e110"}', "known bad", "ann")

    def test_skipping_twice_is_once(self, scene):
        self.held(scene)
        first = scene.store.skip("orders", "a", "e110", "known bad", "ann")
        before = scene.contents()
        assert scene.store.skip("orders", "a", "e110", "again", "bob") == first
        assert scene.contents() == before

    def test_many_skips_at_once_are_one(self, scene, kit):
        row = self.held(scene)
        stores = [scene.another() for _ in range(6)]
        letters = kit.at_once(
            [lambda s=s, n=n: s.skip("orders", "a", "e110", "bad", f"op {n}") for n, s in enumerate(stores)]
        )
        assert len(set(map(repr, letters))) == 1
        assert scene.store.chain(row.chain).dead_letters == 1
        assert len(scene.contents()["journal"]) == 1

    def test_the_run_that_goes_past_it_adds_the_payload_and_counts_nothing_twice(self, scene, kit):
        row = self.held(scene)
        scene.store.skip("orders", "a", "e110", "known bad", "ann")
        row = scene.store.take(row.chain, 2)
        moved = scene.advance(row, 120, dead_letters=[kit.letter("e110", 110, sequence=4, payload="{}")])
        assert moved.dead_letters == 1
        (letter,) = scene.store.dead_letters("orders")
        assert (letter.payload, letter.path, letter.sequence) == ("{}", "/dead/1.parquet", 4)
        assert (letter.operator, letter.reason) == ("ann", "known bad")

    def test_it_works_while_a_run_tries_the_event_again(self, scene):
        row = self.held(scene)
        scene.store.take(row.chain, 2)
        assert scene.store.skip("orders", "a", "e110", "known bad", "ann").operator == "ann"

    @pytest.mark.parametrize(
        ("partition", "event", "said"),
        [
            ("b", "e110", "has no partition 'b'"),
            ("a", "e999", "not held on event 'e999' but on e110"),
            ("free", "e110", "it is not held"),
        ],
    )
    def test_what_is_not_held_cannot_be_skipped(self, scene, partition, event, said):
        row, _ = scene.members("a", "free")
        scene.store.hold(row, ChainState.HELD, EVENT)
        before = scene.contents()
        with pytest.raises(ConfigurationError, match=said):
            scene.store.skip("orders", partition, event, "why", "ann")
        assert scene.contents() == before

    def test_a_reason_is_needed(self, scene):
        self.held(scene)
        with pytest.raises(ConfigurationError, match="needs a reason"):
            scene.store.skip("orders", "a", "e110", "  ", "ann")

    def test_whoever_has_the_event_in_hand_meanwhile_reads_what_was_decided(self, scene, kit):
        row = scene.store.take(self.held(scene).chain, 1)
        scene.store.skip("orders", "a", "e110", "known bad", "ann")
        before = scene.contents()
        assert scene.store.promote(kit.promotion(row, 120)) is None
        assert not scene.store.hold(row, ChainState.HELD, EVENT)
        assert scene.contents() == before
        assert scene.store.promote(kit.promotion(scene.store.chain(row.chain), 120)) is not None

    def test_of_a_skip_and_a_promotion_at_once_one_is_first_and_the_other_one_knows(self, scene, kit):
        """Either the event is promoted, and there is nothing to skip; or it is skipped, and the promotion is lost."""
        other = scene.another()

        def skip(partition):
            try:
                return other.skip("orders", partition, "e110", "known bad", "ann")
            except ConfigurationError:
                return None

        for row in scene.members(*"abcdefgh"):
            assert scene.store.hold(row, ChainState.HELD, EVENT)
            row = scene.store.take(row.chain, 1)
            promoted, skipped = kit.at_once(
                [
                    lambda row=row: scene.store.promote(kit.promotion(row, 120)),
                    lambda row=row: skip(row.partition),
                ]
            )
            assert (promoted is None) != (skipped is None)


class TestViolations:
    """What the source broke, recorded whoever saw it."""

    def test_the_same_finding_again_is_one_violation(self, scene, kit):
        (row,) = scene.members("a")
        late = kit.violation("v1")
        scene.store.record_violations(row, [late])
        scene.store.record_violations(
            row, [replace(late, sequence=9, detail="other words"), kit.violation("v2")]
        )
        assert [each.event_id for each in scene.store.violations("orders")] == ["v1", "v2"]
        assert scene.store.snapshot("orders").violations == 2

    def test_findings_without_an_event_are_told_apart_by_their_page(self, scene, kit):
        (row,) = scene.members("a")
        lower = kit.violation(None, None, kind="certificate_went_back")
        scene.store.record_violations(row, [lower, replace(lower, sequence=4), lower])
        assert [each.sequence for each in scene.store.violations("orders")] == [3, 4]

    def test_a_fenced_run_may_still_tell(self, scene, kit):
        (row,) = scene.members("a")
        scene.store.take(row.chain, 2)
        scene.store.record_violations(row, [kit.violation("v1")])
        assert len(list(scene.store.violations("orders"))) == 1

    def test_many_that_find_it_at_once_record_it_once(self, scene, kit):
        (row,) = scene.members("a")
        stores = [scene.another() for _ in range(6)]
        kit.at_once(
            [lambda s=s: s.record_violations(row, [kit.violation("v1"), kit.violation("v2")]) for s in stores]
        )
        assert len(list(scene.store.violations("orders"))) == 2
