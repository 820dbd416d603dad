"""Lists of the source that were changed behind the store's back: what they say is held against who was read by them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from audited_scope import AuditedScope
from tampering import MOVES, READING_AGAIN, assert_clean, found

from gapless.progress import Bound


class TestLists:
    def test_the_first_one_says_another_number_than_its_epoch(self, each_history: AuditedScope) -> None:
        each_history.sql("UPDATE gapless_observation SET partitions = 3 WHERE observation = 1")
        told = found(each_history, "lists_broken", epoch=1)
        assert (
            told.detail == "list 1 is said to have named 3 partitions; its membership epoch was frozen with 2"
        )
        assert each_history.codes() == ["lists_broken"]

    @pytest.mark.parametrize("said", [1, 3])
    def test_the_latest_one_says_another_number_than_it_named(
        self, each_history: AuditedScope, said: int
    ) -> None:
        each_history.sql("UPDATE gapless_observation SET partitions = :said WHERE observation = 4", said=said)
        told = found(each_history, "lists_broken")
        assert (
            told.detail == f"list 4 is said to have named {said} partitions; 2 chains were last named by it"
        )

    def test_an_earlier_one_says_fewer_than_were_last_named_by_it(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_observation SET partitions = 0 WHERE observation = 3")
        told = found(history, "lists_broken")
        assert told.detail == "list 3 is said to have named 0 partitions; 1 chains were last named by it"

    def test_the_last_one_of_a_lineage_that_was_rebuilt(self, history: AuditedScope) -> None:
        history.store.rebuild("orders", "the source was restored", "kim")
        history.observe("a")
        assert_clean(history)
        history.sql("UPDATE gapless_observation SET partitions = 5 WHERE observation = 4")
        assert found(history, "lists_broken", lineage=1)

    @pytest.mark.parametrize("listed", [0, 5, 99])
    def test_a_chain_named_by_a_list_that_is_nowhere(self, each_history: AuditedScope, listed: int) -> None:
        each_history.sql("UPDATE gapless_chain SET listed = :listed WHERE partition = 'a'", listed=listed)
        told = found(each_history, "lists_broken", partition="a")
        assert told.detail == f"it is said to have been named by list {listed}, which its lineage never had"

    def test_a_candidate_named_by_a_list_that_is_nowhere(self, history: AuditedScope) -> None:
        history.observe("a", "c", "n", generation="r2", policy=MOVES)
        assert_clean(history)
        history.sql("UPDATE gapless_chain SET listed = 6 WHERE partition = 'n'")
        assert found(history, "lists_broken", partition="n")

    def test_a_member_named_no_more(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_chain SET listed = 3 WHERE partition = 'a'")
        told = found(history, "lists_broken")
        assert told.detail == "list 4 is said to have named 2 partitions; 1 chains were last named by it"

    def test_one_that_entered_by_a_list_that_did_not_name_it(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_chain SET listed = 1 WHERE partition = 'c'")
        told = found(history, "member_unproved", partition="c", epoch=2)
        assert told.detail == "it entered by list 2, and was last named by list 1"

    def test_one_that_was_replaced_and_is_named_after_that(self, orders: AuditedScope) -> None:
        orders.observe("a", policy=READING_AGAIN)
        orders.promote("a", 20)
        old = orders.chain("a")
        orders.observe("a", generation="r2", policy=READING_AGAIN)
        orders.promote("a", 20)
        orders.cutover()
        orders.observe("a", "n", generation="r2", policy=READING_AGAIN)
        assert_clean(orders)
        orders.sql("UPDATE gapless_chain SET listed = 3 WHERE chain = :chain", chain=old)
        told = found(orders, "leaver_unproved", chain=old)
        assert told.detail == "a cutover on list 2 ended it, and list 3 is said to have named it"

    def test_one_of_a_generation_that_no_list_had_yet_when_it_was_last_named(
        self, orders: AuditedScope
    ) -> None:
        orders.observe("a", policy=READING_AGAIN)
        orders.promote("a", 20)
        orders.observe("a", generation="r2", policy=READING_AGAIN)
        new = orders.chain("a")
        orders.sql("UPDATE gapless_chain SET listed = 1 WHERE chain = :chain", chain=new)
        told = found(orders, "lists_broken", chain=new)
        assert told.detail == "it is of routing generation 'r2', and was last named by list 1, of 'r1'"

    def test_those_that_have_left_and_are_named_still_are_clean(self, each_history: AuditedScope) -> None:
        ended: dict[str, Any] = {"seals": {"b": 30}, "successors": {"b": ("c",)}}
        each_history.observe("a", "b", "c", "n", generation="r2", policy=MOVES, **ended)
        assert_clean(each_history)
        each_history.promote("n", 45)
        each_history.cutover()
        each_history.observe("a", "b", "c", "n", generation="r2", policy=MOVES, **ended)
        assert_clean(each_history)
        each_history.observe(generation="r2", policy=MOVES)
        assert_clean(each_history)

    def test_who_left_under_the_latest_list_is_counted_with_it(self, each_orders: AuditedScope) -> None:
        each_orders.observe("a", "b")
        each_orders.promote("a", 40)
        each_orders.promote("b", 20)
        each_orders.publish()
        each_orders.store.seal("orders", "b", Bound.through(20), "it was switched off", "kim")
        each_orders.cutover()
        assert_clean(each_orders)
        each_orders.observe("a", "b")
        assert_clean(each_orders)
        each_orders.observe("a", "b", "n")
        assert_clean(each_orders)
        each_orders.observe("a")
        assert_clean(each_orders)


def edit_proof(scope: AuditedScope, epoch: int, change: Callable[[dict[str, Any]], object]) -> None:
    with scope.store.evidence("orders") as evidence:
        proof = next(row["proof"] for row in evidence.epochs() if row["epoch"] == epoch)
    written = json.loads(proof)
    change(written)
    text = json.dumps(written)
    scope.sql("UPDATE gapless_epoch SET proof = :proof WHERE epoch = :epoch", proof=text, epoch=epoch)


def test_what_rests_on_a_proof_that_cannot_be_read_is_not_judged_by_it(history: AuditedScope) -> None:
    history.sql("UPDATE gapless_epoch SET proof = 'no JSON' WHERE epoch IN (3, 4)")
    assert history.codes() == ["epoch_edited"]


def test_the_list_that_a_cutover_is_said_to_rest_on(history: AuditedScope) -> None:
    edit_proof(history, 3, lambda proof: proof.update(observation=4))
    assert "epoch_edited" in history.codes()
