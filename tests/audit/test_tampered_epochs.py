"""Whatever is changed of membership epochs is found, and named."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from audited_scope import AuditedScope
from tampering import found, scope_epochs

from gapless.store.records import MembershipPolicy


class TestEpochs:
    @pytest.mark.parametrize(
        ("change", "epoch", "code"),
        [
            ("generation = 'r9'", 2, "epoch_edited"),
            ("generation = 'r1'", 4, "epoch_edited"),
            ("generation = 'r1'", 4, "routing_unproved"),
            ("basis = 'asserted'", 2, "basis_differs"),
            ("proof = NULL", 2, "epoch_edited"),
            ("proof = 'no JSON'", 2, "epoch_edited"),
            ("proof = replace(proof, 'cutover', 'first list')", 2, "epoch_edited"),
        ],
    )
    def test_anything_in_one_edited(self, history: AuditedScope, change: str, epoch: int, code: str) -> None:
        assert history.sql(f"UPDATE gapless_epoch SET {change} WHERE epoch = {epoch}") == 1
        assert code in history.codes()

    def test_its_frontier_edited(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_epoch SET frontier = :key WHERE epoch = 3", key=history.key(35))
        assert found(history, "epoch_edited", epoch=3).detail == (
            "it was opened at the frontier through 35; published before it was through 30"
        )

    def test_its_list_certificate_edited(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_epoch SET list_bound = :key WHERE epoch = 3", key=history.key(35))
        assert "counts its list as certified through 35" in found(history, "epoch_edited", epoch=3).detail

    def test_one_deleted(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_epoch WHERE epoch = 2")
        assert found(history, "epoch_missing", epoch=3)
        assert "never opened" in found(history, "member_unproved", partition="c").detail

    def test_the_last_one_deleted(self, history: AuditedScope) -> None:
        history.sql("DELETE FROM gapless_epoch WHERE epoch = 4")
        assert found(history, "epoch_missing", epoch=4)

    def edit(self, scope: AuditedScope, epoch: int, change: Callable[[dict[str, Any]], object]) -> None:
        proof = next(row["proof"] for row in scope_epochs(scope) if row["epoch"] == epoch)
        written = json.loads(proof)
        change(written)
        text = json.dumps(written)
        scope.sql("UPDATE gapless_epoch SET proof = :proof WHERE epoch = :epoch", proof=text, epoch=epoch)

    def test_who_entered_by_it_taken_out(self, history: AuditedScope) -> None:
        self.edit(history, 2, lambda proof: proof["entered"].clear())
        detail = "it counts since membership epoch 2, which names it nowhere"
        assert found(history, "member_unproved", partition="c", epoch=2).detail == detail

    def test_the_bound_at_which_somebody_entered(self, history: AuditedScope) -> None:
        chain = str(history.chain("c"))
        low = {"position": "9", "inclusive": True}
        self.edit(history, 2, lambda proof: proof["entered"].update({chain: low}))
        assert "below the frontier: through 10" in found(history, "member_unproved", partition="c").detail

    def test_the_end_at_which_somebody_left(self, history: AuditedScope) -> None:
        chain = str(history.chain("b"))
        self.edit(history, 3, lambda proof: proof["left"][chain]["seal"].update(position="29"))
        assert found(history, "leaver_unproved", partition="b", epoch=3)

    def test_a_successor_that_is_nowhere(self, history: AuditedScope) -> None:
        chain = str(history.chain("b"))
        self.edit(history, 3, lambda proof: proof["left"][chain].update(successors=["x"]))
        lost = found(history, "leaver_unproved", epoch=3, partition=None)
        assert lost.detail.startswith("x, which carries on from it")

    def test_successors_that_are_unknown(self, history: AuditedScope) -> None:
        chain = str(history.chain("b"))
        self.edit(history, 3, lambda proof: proof["left"][chain].update(successors=None))
        assert found(history, "leaver_unproved", partition="b").detail.startswith("it left, and nobody knows")

    def test_the_proof_of_the_routing(self, history: AuditedScope) -> None:
        self.edit(history, 4, lambda proof: proof.pop("routing"))
        assert found(history, "routing_unproved", epoch=4)

    def test_a_newcomer_made_a_member_without_a_cutover(self, orders: AuditedScope) -> None:
        orders.observe("a")
        orders.promote("a", 20)
        orders.publish()
        orders.observe("a", "n")
        assert orders.codes() == []
        orders.sql("UPDATE gapless_chain SET epoch_in = 1 WHERE partition = 'n'")
        assert "named 1 members; 2 chains" in found(orders, "member_unproved", epoch=1).detail
        assert found(orders, "frontier_not_proved", partition="n")

    def test_a_member_made_to_leave(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_chain SET epoch_out = 4, state = 'sealed' WHERE partition = 'c'")
        left = found(history, "leaver_unproved", partition="c", epoch=4)
        assert left.detail == "it left in membership epoch 4, which names it nowhere"

    def test_an_operators_seal_that_nobody_spoke(self, orders: AuditedScope) -> None:
        orders.observe("a")
        orders.sql("UPDATE gapless_chain SET seal = :key, seal_basis = 'operator'", key=orders.key(5))
        assert found(orders, "operator_unrecorded", partition="a")

    def test_a_handoff_made_to_reach_further(self, orders: AuditedScope) -> None:
        handoff = MembershipPolicy(handoff=True, reading_again=False)
        orders.observe("a", policy=handoff)
        orders.promote("a", 20)
        orders.publish()
        orders.observe("a", generation="r2", policy=handoff)
        (transit,) = [name for name in orders.rows if "transit" in name]
        orders.promote(transit, 20, end=True)
        orders.cutover()
        assert orders.codes() == []
        self.edit(orders, 2, lambda proof: proof["routing"]["complete"].update(position="25"))
        assert found(orders, "routing_unproved", epoch=2)
        self.edit(orders, 2, lambda proof: proof["routing"]["complete"].update(position="15"))
        assert "was read up to through 20" in found(orders, "routing_unproved", partition="a").detail
