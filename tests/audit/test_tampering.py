"""Whatever is changed behind the store's back is found, and named: bounds, promotion records, outcomes."""

import os

import pytest
from audited_scope import AuditedScope
from tampering import found, promoted

from gapless.audit import Contradiction
from gapless.errors import StoreUnreadable


def test_every_kind_of_tampering_at_once_on_either_database(each_history: AuditedScope) -> None:
    scope = each_history
    os.truncate(promoted(scope, "a", 0), 30)
    promoted(scope, "a", 2).unlink()
    scope.sql("UPDATE gapless_chain SET bound = :key WHERE partition = 'a'", key=scope.key(90))
    scope.sql("DELETE FROM gapless_promotion WHERE chain = :chain AND sequence = 1", chain=scope.chain("c"))
    scope.sql("UPDATE gapless_epoch SET frontier = :key WHERE epoch = 3", key=scope.key(35))
    scope.sql("UPDATE gapless_scope SET frontier = :key", key=scope.key(50))
    before = scope.contents()
    assert scope.codes() == [
        "bound_not_proved",
        "epoch_edited",
        "file_differs",
        "file_missing",
        "frontier_differs",
        "record_missing",
    ]
    assert scope.contents() == before


class TestBounds:
    def test_a_bound_raised(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_chain SET bound = :key WHERE partition = 'c'", key=history.key(90))
        raised = found(history, "bound_not_proved", partition="c", chain=history.chain("c"))
        assert raised.detail == "its bound is through 90; its promotions prove through 45"
        assert history.codes() == ["bound_not_proved"]

    def test_a_bound_raised_together_with_its_last_promotion(self, history: AuditedScope) -> None:
        key = history.key(90)
        history.sql("UPDATE gapless_chain SET bound = :key WHERE partition = 'c'", key=key)
        history.sql(
            "UPDATE gapless_promotion SET bound = :key WHERE chain = :chain AND sequence = 3",
            key=key,
            chain=history.chain("c"),
        )
        raised = found(history, "certificate_differs", partition="c", sequence=3)
        assert raised.detail == (
            "it counts as proved through 90; the certificate kept with it says through 45"
        )

    def test_a_bound_whose_certificate_was_taken_away(self, history: AuditedScope) -> None:
        history.sql(
            "UPDATE gapless_promotion SET evidence = NULL WHERE chain = :chain AND sequence = 3",
            chain=history.chain("c"),
        )
        detail = "it counts as proved through 45; no certificate is kept with it"
        assert found(history, "certificate_differs", partition="c", sequence=3).detail == detail

    def test_an_assertion_made_a_certificate(self, orders: AuditedScope) -> None:
        orders.observe("a")
        orders.promote("a", 20, basis="asserted")
        orders.publish()
        assert orders.codes() == []
        for table in ("promotion", "chain", "scope", "frontier_history"):
            orders.sql(f"UPDATE gapless_{table} SET basis = 'certified'")
        assert orders.codes() == ["basis_differs"]
        assert found(orders, "basis_differs", partition="a", sequence=0)

    def test_a_frontier_labelled_certified_that_rests_on_an_assertion(self, orders: AuditedScope) -> None:
        orders.observe("a")
        orders.promote("a", 20, basis="asserted")
        orders.publish()
        for table in ("scope", "frontier_history"):
            orders.sql(f"UPDATE gapless_{table} SET basis = 'certified'")
        assert found(orders, "basis_differs", partition="a").detail.startswith(
            "the frontier counts as certified"
        )

    def test_bytes_that_are_no_bound(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_chain SET bound = :key WHERE partition = 'a'", key=b"\x01nonsense")
        detail = found(history, "bound_not_proved", partition="a").detail
        assert "the bytes 016e6f6e73656e7365, which are no bound" in detail


class TestPromotionRecords:
    def test_one_in_the_middle_deleted(self, history: AuditedScope) -> None:
        history.sql(
            "DELETE FROM gapless_promotion WHERE chain = :chain AND sequence = 1", chain=history.chain("a")
        )
        missing = found(history, "record_missing", partition="a", sequence=1)
        assert missing.detail == "no record promotes page 1"
        assert history.codes() == ["record_missing"]

    def test_the_first_and_the_last_deleted(self, history: AuditedScope) -> None:
        history.sql(
            "DELETE FROM gapless_promotion WHERE chain = :chain AND sequence IN (0, 4)",
            chain=history.chain("a"),
        )
        assert found(history, "record_missing", sequence=0)
        assert found(history, "record_missing", sequence=4)
        assert found(history, "bound_not_proved", partition="a")

    def test_all_of_a_chains_deleted(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_promotion WHERE chain = :chain", chain=history.chain("a"))
        assert found(history, "record_missing", partition="a").detail == "no record promotes pages 0 to 4"
        assert "published was through 45" in found(history, "frontier_not_proved", partition="a").detail

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ("token_out = 'elsewhere'", "tokens_unlinked"),
            ("token_in = 'elsewhere'", "tokens_unlinked"),
            ("fencing_token = 0", "fence_went_back"),
            ("generation = 'r9'", "generation_unproved"),
            ("generation = 'r2'", "generation_unproved"),
            ("events = events + 1", "counts_differ"),
            ("drift = 3", "counts_differ"),
            ("pages = 2", "record_damaged"),
            ("pages = 0", "record_damaged"),
            ("digest = NULL", "record_damaged"),
            ("evidence = 'no JSON'", "certificate_differs"),
            ("evidence = '[1]'", "certificate_differs"),
        ],
    )
    def test_anything_in_one_changed(self, history: AuditedScope, change: str, code: str) -> None:
        where = "WHERE chain = :chain AND sequence = 1"
        assert history.sql(f"UPDATE gapless_promotion SET {change} {where}", chain=history.chain("a")) == 1
        assert found(history, code, partition="a")

    def test_a_chain_deleted_from_under_its_records(self, history: AuditedScope) -> None:
        chain = history.chain("a")
        history.sql("DELETE FROM gapless_chain WHERE chain = :chain", chain=chain)
        orphans = [one.detail for one in history.audit().contradictions if one.code == "record_orphaned"]
        assert f"5 promotion records belong to chain {chain}, which is nowhere" in orphans
        assert "named 2 members; 1 chains" in found(history, "member_unproved", epoch=1).detail

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ("sequence = sequence - 1", "checkpoint_differs"),
            ("sequence = sequence + 1", "record_missing"),
            ("page_token = 'elsewhere'", "checkpoint_differs"),
            ("state = 'ended'", "checkpoint_differs"),
            ("state = 'lost'", "record_damaged"),
            ("basis = 'asserted'", "basis_differs"),
            ("fencing_token = 0", "fence_went_back"),
            ("events = 0", "counts_differ"),
            ("dead_letters = 0", "counts_differ"),
            ("generation = 'r1'", "generation_unproved"),
        ],
    )
    def test_anything_in_a_chains_row_changed(self, history: AuditedScope, change: str, code: str) -> None:
        assert history.sql(f"UPDATE gapless_chain SET {change} WHERE partition = 'a'") == 1
        assert found(history, code, partition="a")

    def test_a_restart_taken_out_of_the_journal(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_journal WHERE action = 'restart'")
        assert found(history, "tokens_unlinked", partition="b", sequence=2)
        assert history.codes() == ["tokens_unlinked"]


class TestOutcomes:
    def test_a_dead_letter_deleted(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_dead_letter WHERE partition = 'a'")
        assert found(history, "counts_differ", partition="a").detail == "dead letters: 1; 0 are recorded"

    def test_a_dead_letter_deleted_and_uncounted(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_dead_letter WHERE partition = 'a'")
        history.sql("UPDATE gapless_chain SET dead_letters = 0 WHERE partition = 'a'")
        assert history.codes() == ["outcome_missing"]
        assert found(history, "outcome_missing", partition="a").detail.startswith(
            "1 events of promoted pages"
        )

    def test_a_skip_taken_out_of_the_journal(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_journal WHERE action = 'skip'")
        assert "'e12' was skipped" in found(history, "operator_unrecorded", partition="b").detail

    def test_a_dead_letter_given_to_another_chain(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_dead_letter SET chain = 99 WHERE partition = 'a'")
        assert found(history, "record_orphaned", partition="a")

    def test_receipts_that_cannot_be(self, orders: AuditedScope) -> None:
        orders.observe("a", "b")
        orders.promote("a", 10)
        orders.store.record_receipts(orders.rows["a"], {"e1": "delivered", "e2": "delivered"})
        orders.sql("UPDATE gapless_receipt SET outcome = 'dead_lettered' WHERE event_id = 'e1'")
        orders.sql("UPDATE gapless_receipt SET outcome = 'lost' WHERE event_id = 'e2'")
        details = [one.detail for one in orders.audit().contradictions]
        assert details == [
            "event 'e1' counts as a dead letter, and there is none of it",
            "event 'e2' has the unknown outcome 'lost'",
        ]


def test_each_contradiction_is_told_when_it_is_met(history: AuditedScope) -> None:
    history.sql("UPDATE gapless_chain SET events = 0")
    told: list[Contradiction] = []
    report = history.audit(found=told.append)
    assert len(told) == 3
    assert list(report.contradictions) == told
    assert not report.clean


def test_a_row_that_cannot_even_be_read_is_an_error_of_its_own(history: AuditedScope) -> None:
    history.sql("UPDATE gapless_journal SET reason = :reason", reason="\x01 no JSON")
    with pytest.raises(StoreUnreadable, match="a row cannot be read"):
        history.audit()
