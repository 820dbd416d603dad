"""Whatever is changed of the frontier, its history and the scope's row is found, and named."""

import pytest
from audited_scope import AuditedScope
from tampering import found

from gapless.progress.keys import NO_CAP


class TestFrontier:
    def test_set_forward(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_scope SET frontier = :key", key=history.key(50))
        assert found(history, "frontier_differs").detail == (
            "the frontier stands through 50; the last one published is through 45"
        )

    def test_set_forward_together_with_its_history(self, history: AuditedScope) -> None:
        key = history.key(50)
        history.sql("UPDATE gapless_scope SET frontier = :key", key=key)
        history.sql(
            "UPDATE gapless_frontier_history SET frontier = :key WHERE number = (SELECT max(number) FROM"
            " gapless_frontier_history)",
            key=key,
        )
        held = found(history, "frontier_not_proved", partition="c", chain=history.chain("c"))
        assert held.detail == "published was through 50; its promotions prove through 45"
        assert history.codes() == ["frontier_not_proved"]

    def test_its_history_set_forward_in_an_earlier_epoch(self, history: AuditedScope) -> None:
        history.sql(
            "UPDATE gapless_frontier_history SET frontier = :key WHERE epoch = 2", key=history.key(35)
        )
        assert found(history, "frontier_not_proved", partition="b")

    def test_its_history_made_to_go_back(self, history: AuditedScope) -> None:
        history.sql(
            "UPDATE gapless_frontier_history SET frontier = :key WHERE epoch = 3", key=history.key(25)
        )
        assert found(history, "history_broken", epoch=3).detail == "published through 25 after through 30"

    def test_its_last_publish_deleted(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_frontier_history WHERE epoch = 4")
        assert found(history, "frontier_differs")

    def test_its_basis_changed(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_scope SET basis = 'asserted'")
        assert history.codes() == ["basis_differs"]

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ("epoch = 5", "epoch_missing"),
            ("epoch = 3", "epoch_missing"),
            ("lineage = 2", "lineage_unproved"),
            ("generation = 'r1'", "generation_unproved"),
            ("observation = 9", "lists_broken"),
            ("observed_generation = 'r3'", "lists_broken"),
            ("fingerprint = 'f'", "identity_edited"),
            ("identity = '{}'", "identity_edited"),
        ],
    )
    def test_anything_else_in_the_scopes_row(self, history: AuditedScope, change: str, code: str) -> None:
        assert history.sql(f"UPDATE gapless_scope SET {change}") == 1
        assert found(history, code)

    def test_where_the_claim_starts_moved_back(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_scope SET after = :key", key=b"")
        assert history.codes() == ["identity_edited"]

    def test_the_cap_lifted_while_a_newcomer_is_unproven(self, orders: AuditedScope) -> None:
        orders.observe("a")
        orders.promote("a", 20)
        orders.publish()
        orders.observe("a", "n")
        orders.sql("UPDATE gapless_scope SET cap = :key", key=NO_CAP)
        assert found(orders, "cap_not_proved").detail.endswith("the cap is everything")

    def test_a_frontier_beyond_the_certified_list(self, orders: AuditedScope) -> None:
        orders.observe("a", list_bound=10)
        orders.promote("a", 20)
        orders.publish()
        key = orders.key(20)
        orders.sql("UPDATE gapless_scope SET frontier = :key, cap = :key", key=key)
        orders.sql("UPDATE gapless_frontier_history SET frontier = :key", key=key)
        assert "was certified through 10" in found(orders, "frontier_not_proved", epoch=1).detail
        assert found(orders, "cap_not_proved")

    def test_a_list_that_went_back_to_an_earlier_generation(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_observation SET generation = 'r0' WHERE observation IN (1, 3)")
        assert "which another one had followed" in found(history, "generation_unproved").detail

    def test_a_list_deleted(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_observation WHERE observation = 2")
        assert found(history, "lists_broken").detail == "list 3 follows list 1"

    def test_the_frontier_of_a_lineage_that_was_rebuilt(self, history: AuditedScope) -> None:
        history.store.rebuild("orders", "the source was restored", "kim")
        assert history.codes() == []
        history.sql(
            "UPDATE gapless_journal SET detail = replace(detail, :before, :after)",
            before=history.key(45).hex(),
            after=history.key(50).hex(),
        )
        assert found(history, "frontier_differs", lineage=1)
        history.sql("DELETE FROM gapless_journal WHERE action = 'rebuild'")
        assert found(history, "lineage_unproved", lineage=1)
        assert found(history, "leaver_unproved", lineage=1)
