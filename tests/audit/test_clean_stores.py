"""Whatever the store's own operations leave behind, an audit finds nothing in it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from audited_scope import AuditedScope

from gapless.audit import audit
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound
from gapless.store.evidence import Evidence
from gapless.store.records import MembershipPolicy

READING_AGAIN = MembershipPolicy(reading_again=True)
HANDOFF = MembershipPolicy(handoff=True, reading_again=False)


def assert_clean(scope: AuditedScope) -> None:
    report = scope.audit()
    assert report.clean, report.contradictions


def test_an_eventful_history_is_clean_and_everything_was_looked_at(each_history: AuditedScope) -> None:
    report = each_history.audit()
    assert report.clean, report.contradictions
    checked = report.checked
    assert (checked.chains, checked.promotions, checked.files) == (3, 12, 12)
    assert (checked.epochs, checked.publishes, checked.lists) == (4, 4, 4)
    assert checked.dead_letters == 2
    assert checked.bytes > 0
    assert (report.lineage, report.epoch, report.frontier) == (1, 4, Bound.through(45))


def test_a_scope_that_nothing_was_read_of_is_clean(each_orders: AuditedScope) -> None:
    assert_clean(each_orders)
    each_orders.observe()
    assert_clean(each_orders)
    each_orders.observe("a")
    assert_clean(each_orders)


def test_an_audit_changes_nothing(each_history: AuditedScope) -> None:
    before = each_history.contents()
    each_history.audit()
    assert each_history.contents() == before


class TestOtherRouting:
    """Every way by which a scope comes under another routing generation."""

    def test_reading_again_replaces_what_was_read(self, each_orders: AuditedScope) -> None:
        each_orders.observe("a", "b", policy=READING_AGAIN)
        for name in ("a", "b"):
            each_orders.promote(name, 20)
        each_orders.publish()
        each_orders.observe("a", "b", generation="r2", policy=READING_AGAIN)
        assert_clean(each_orders)
        for name in ("a", "b"):
            each_orders.promote(name, 20)
        assert each_orders.cutover().replaced == ["a", "b"]
        assert_clean(each_orders)
        each_orders.promote("a", 30)
        each_orders.promote("b", 30)
        each_orders.publish()
        assert_clean(each_orders)

    def test_files_of_replaced_chains_are_in_no_data_set_and_are_not_looked_at(
        self, each_orders: AuditedScope
    ) -> None:
        each_orders.observe("a", policy=READING_AGAIN)
        old = each_orders.promote("a", 20)
        each_orders.publish()
        each_orders.observe("a", generation="r2", policy=READING_AGAIN)
        each_orders.promote("a", 20, events=9, rows=9)
        each_orders.cutover()
        report = each_orders.audit()
        assert (report.clean, report.checked.promotions, report.checked.files) == (True, 2, 1)
        each_orders.sql("UPDATE gapless_promotion SET path = '/gone' WHERE chain = :chain", chain=old.chain)
        assert_clean(each_orders)

    def test_a_handoff_carries_bounds_and_tokens_on(self, each_orders: AuditedScope) -> None:
        each_orders.observe("a", "b", policy=HANDOFF)
        each_orders.promote("a", 20)
        each_orders.promote("b", 30)
        each_orders.publish()
        each_orders.observe("a", "b", generation="r2", policy=HANDOFF)
        assert_clean(each_orders)
        (transit,) = [name for name in each_orders.rows if "transit" in name]
        each_orders.promote(transit, 30, end=True)
        assert_clean(each_orders)
        each_orders.cutover()
        each_orders.observe("a", "b", generation="r2", policy=HANDOFF)
        each_orders.promote("a", 40)
        each_orders.promote("b", 40)
        each_orders.publish()
        assert_clean(each_orders)

    def test_a_handoff_that_was_given_up_and_asked_for_anew(self, each_orders: AuditedScope) -> None:
        each_orders.observe("a", policy=HANDOFF)
        each_orders.promote("a", 30)
        each_orders.publish()
        each_orders.observe("a", generation="r2", policy=HANDOFF)
        (transit,) = [name for name in each_orders.rows if "transit" in name]
        each_orders.promote(transit, 20, end=True)
        each_orders.observe("a", generation="r2", policy=HANDOFF)
        assert_clean(each_orders)
        each_orders.promote(transit, 30, end=True)
        each_orders.cutover()
        assert_clean(each_orders)

    def test_a_generation_between_that_never_came_to_count(self, each_orders: AuditedScope) -> None:
        """A newcomer read under it further than the handoff reaches is read anew, and the old chain is dropped."""
        each_orders.observe("a", policy=HANDOFF)
        each_orders.promote("a", 20)
        each_orders.publish()
        each_orders.observe("a", "n", generation="r2", policy=HANDOFF)
        each_orders.promote("n", 90)
        each_orders.observe("a", "n", generation="r3", policy=HANDOFF)
        (transit,) = [name for name in each_orders.rows if name.endswith("to r3")]
        each_orders.promote(transit, 30, end=True)
        each_orders.promote("n", 20)
        each_orders.cutover()
        assert_clean(each_orders)
        assert {row.state.value for row in each_orders.store.snapshot("orders").chains} == {"open"}


class TestOperators:
    def test_an_operators_seal_and_the_asserted_frontier_after_it(self, each_orders: AuditedScope) -> None:
        each_orders.observe("a", "b")
        each_orders.promote("a", 40)
        each_orders.promote("b", 20)
        each_orders.publish()
        each_orders.observe("a")
        each_orders.store.seal("orders", "b", Bound.through(20), "it was switched off", "kim")
        assert_clean(each_orders)
        each_orders.cutover()
        each_orders.publish()
        assert each_orders.store.scope("orders").basis == "asserted"
        assert_clean(each_orders)

    def test_a_rebuild_and_the_lineage_after_it(self, each_history: AuditedScope) -> None:
        each_history.store.rebuild("orders", "the source was restored", "kim")
        assert_clean(each_history)
        each_history.fence = each_history.store.begin_run("orders", "run-2", "local")
        each_history.observe("a", "c", generation="r1")
        each_history.promote("a", 10)
        each_history.promote("c", 10)
        each_history.publish()
        report = each_history.audit()
        assert report.clean, report.contradictions
        assert (report.lineage, report.epoch, report.frontier) == (2, 5, Bound.through(10))
        each_history.store.rebuild("orders", "once more", "kim")
        each_history.observe("a", "c", generation="r1")
        assert_clean(each_history)

    def test_an_assertion_that_raised_a_bound(self, each_orders: AuditedScope) -> None:
        each_orders.observe("a")
        each_orders.promote("a", 10)
        each_orders.publish()
        each_orders.promote("a", 20, basis="asserted")
        each_orders.promote("a", 30)
        each_orders.publish()
        assert_clean(each_orders)


class TestLists:
    def test_certified_lists_cap_the_frontier(self, each_orders: AuditedScope) -> None:
        each_orders.observe("a", list_bound=10)
        each_orders.promote("a", 20)
        each_orders.publish()
        assert each_orders.audit().frontier == Bound.through(10)
        each_orders.observe("a", list_bound=30)
        each_orders.publish()
        each_orders.observe("a", "n", list_bound=50)
        each_orders.promote("n", 20)
        each_orders.publish()
        assert_clean(each_orders)
        each_orders.cutover()
        each_orders.promote("a", 60)
        each_orders.promote("n", 60)
        each_orders.publish()
        report = each_orders.audit()
        assert report.clean, report.contradictions
        assert report.frontier == Bound.through(50)

    def test_a_frozen_list_that_becomes_certified(self, each_orders: AuditedScope) -> None:
        each_orders.observe("a")
        each_orders.promote("a", 20)
        each_orders.publish()
        each_orders.observe("a", list_bound=10)
        each_orders.promote("a", 30)
        each_orders.publish()
        assert_clean(each_orders)
        each_orders.observe("a", list_bound=25)
        each_orders.publish()
        assert each_orders.audit().frontier == Bound.through(25)
        assert_clean(each_orders)

    def test_a_candidate_that_ends_before_it_enters_and_one_that_is_dropped(
        self, each_orders: AuditedScope
    ) -> None:
        each_orders.observe("a", policy=READING_AGAIN)
        each_orders.promote("a", 40)
        each_orders.publish()
        each_orders.observe("a", "n", generation="r2", policy=READING_AGAIN)
        each_orders.promote("a", 10)
        each_orders.promote("n", 10)
        each_orders.observe(
            "a", "n", generation="r3", policy=READING_AGAIN, seals={"n": 15}, successors={"n": ()}
        )
        each_orders.promote("n", 15)
        each_orders.promote("a", 40)
        each_orders.cutover()
        report = each_orders.audit()
        assert report.clean, report.contradictions
        assert report.checked.chains == 5


def test_an_ended_chain_and_a_page_of_nothing(each_orders: AuditedScope) -> None:
    each_orders.observe("a")
    each_orders.promote("a", 10)
    each_orders.end("a")
    each_orders.publish()
    assert_clean(each_orders)


def test_receipts_of_an_open_page(each_orders: AuditedScope) -> None:
    each_orders.observe("a")
    each_orders.promote("a", 10)
    letter = each_orders.letter("a", "e2", 12)
    each_orders.store.record_receipts(
        each_orders.rows["a"], {"e1": "delivered", "e2": "dead_lettered"}, [letter]
    )
    report = each_orders.audit()
    assert report.clean, report.contradictions
    assert (report.checked.receipts, report.checked.dead_letters) == (2, 1)


def test_two_scopes_of_one_store_are_audited_apart(each_history: AuditedScope) -> None:
    other = replace(each_history.identity, scope="others")
    each_history.store.register_scope(other)
    each_history.store.observe("others", Assignment([ListedPartition(Partition("x", {}))], "", None))
    each_history.sql("UPDATE gapless_chain SET events = 5 WHERE scope = 'others'")
    assert_clean(each_history)
    assert [one.code for one in audit(each_history.store, "others").contradictions] == ["counts_differ"]


def test_an_audit_sees_one_instant_while_others_write(
    each_history: AuditedScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two of its questions somebody promotes, publishes and takes note of a newcomer."""
    asked = 0
    plain = Evidence._rows

    def write_first(self: Evidence, wanted: Any) -> Iterator[Any]:
        nonlocal asked
        asked += 1
        each_history.promote("a", 50 + asked)
        each_history.promote("c", 50 + asked)
        each_history.publish()
        if asked == 3:
            each_history.observe("a", "c", "n", generation="r2")
        yield from plain(self, wanted)

    monkeypatch.setattr(Evidence, "_rows", write_first)
    report = each_history.audit()
    assert report.clean, report.contradictions
    assert asked > 10
    assert report.checked.promotions == 12
    assert report.frontier == Bound.through(45)
