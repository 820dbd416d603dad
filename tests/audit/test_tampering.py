"""Whatever is changed behind the store's back is found, and named."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audited_scope import AuditedScope

from gapless.audit import Contradiction
from gapless.errors import StoreUnreadable
from gapless.progress.keys import NO_CAP
from gapless.store.records import MembershipPolicy


def found(scope: AuditedScope, code: str, **where: Any) -> Contradiction:
    """The contradiction of that code at that place."""
    contradictions = scope.audit().contradictions
    fits = [
        one
        for one in contradictions
        if one.code == code and all(getattr(one, name) == value for name, value in where.items())
    ]
    assert fits, [(one.code, one.partition, one.epoch, one.detail) for one in contradictions]
    return fits[0]


def promoted(scope: AuditedScope, partition: str, sequence: int) -> Path:
    """The file of that run of pages."""
    for row in scope.store.promotions("orders", every=True):
        if (row.partition, row.sequence) == (partition, sequence):
            assert row.path is not None
            return Path(row.path)
    raise AssertionError("no such promotion")


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


class TestFiles:
    def test_a_file_cut(self, history: AuditedScope) -> None:
        path = promoted(history, "a", 1)
        size = path.stat().st_size
        os.truncate(path, size - 7)
        cut = found(history, "file_differs", path=str(path), partition="a", sequence=1)
        assert cut.detail == f"it was cut: it holds {size - 7} bytes of {size}"
        assert history.codes() == ["file_differs"]

    def test_two_files_swapped(self, history: AuditedScope) -> None:
        first, second = promoted(history, "a", 0), promoted(history, "a", 2)
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
        contradictions = history.audit().contradictions
        assert [(one.code, one.path) for one in contradictions] == [
            ("file_differs", str(first)),
            ("file_differs", str(second)),
        ]

    def test_a_byte_changed(self, history: AuditedScope) -> None:
        path = promoted(history, "c", 0)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert found(history, "file_differs", path=str(path)).detail.startswith("its content is another one")

    def test_a_file_removed(self, history: AuditedScope) -> None:
        path = promoted(history, "b", 0)
        path.unlink()
        removed = found(history, "file_missing", path=str(path))
        assert removed.detail == "it is not there: moved, deleted, or on another machine"

    def test_a_file_that_cannot_be_read(self, history: AuditedScope) -> None:
        path = promoted(history, "b", 0)
        path.unlink()
        path.mkdir()
        assert found(history, "file_unreadable", path=str(path))

    def test_a_record_that_names_another_whole_file(self, history: AuditedScope) -> None:
        path = promoted(history, "a", 0)
        history.sql(
            "UPDATE gapless_promotion SET path = :path WHERE chain = :chain AND sequence = 1",
            path=str(path),
            chain=history.chain("a"),
        )
        assert found(history, "file_differs", sequence=1)
        assert found(history, "file_listed_twice", path=str(path))

    def test_rows_that_are_said_to_be_in_it(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_promotion SET rows = rows + 1 WHERE sequence = 0")
        assert "and 10 rows; its record says" in found(history, "file_rows_differ", partition="c").detail

    def test_a_candidates_file_counts_as_well(self, history: AuditedScope) -> None:
        history.observe("a", "c", "n", generation="r2", policy=MembershipPolicy(moves="never behind"))
        history.promote("n", 5)
        promoted(history, "n", 0).unlink()
        assert found(history, "file_missing", partition="n")


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
        assert found(history, "leaver_unproved", epoch=3).detail.startswith("x, which carries on from it")

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


def scope_epochs(scope: AuditedScope) -> list[Any]:
    with scope.store.evidence("orders") as evidence:
        return list(evidence.epochs())


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
