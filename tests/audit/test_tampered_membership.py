"""What the rows of membership say among themselves: changed behind the store's back, each is found and named."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from audited_scope import AuditedScope, eventful
from tampering import HANDOFF, MOVES, READING_AGAIN, assert_clean, found, promoted_under

from gapless.audit.clocks import CLOCKS_APART
from gapless.effects.files import file_digest
from gapless.progress import Bound
from gapless.store import schema


class TestTheGenerationOfAPromotion:
    def test_of_a_member_that_went_on_under_the_next_one_by_the_sources_promise(
        self, history: AuditedScope
    ) -> None:
        promoted_under(history, "a", 3, "r2")
        told = found(history, "generation_unproved", partition="a")
        assert told.detail == (
            "published under routing generation 'r1' was through 40; what was promoted under it, or before it, proves"
            " through 30"
        )

    def test_of_all_pages_of_a_member(self, history: AuditedScope) -> None:
        promoted_under(history, "a", None, "r2")
        assert history.codes() == ["generation_unproved"]

    def test_of_one_that_had_left_before_the_next_one_came(self, history: AuditedScope) -> None:
        promoted_under(history, "b", None, "r2")
        told = found(history, "generation_unproved", partition="b")
        assert told.detail == "promoted under routing generation 'r2'; it had left under 'r1'"

    def test_of_the_last_page_that_was_read_under_the_old_one(self, orders: AuditedScope) -> None:
        eventful(orders)
        orders.clock.sleep(3600)
        orders.promote("a", 60)
        orders.promote("c", 60)
        assert_clean(orders)
        for partition, first in (("a", 4), ("c", 3)):
            for sequence in (first, first + 1):
                promoted_under(orders, partition, sequence, "r1")
        told = found(orders, "generation_unproved", partition="a")
        assert told.detail.startswith("promoted under routing generation 'r1' at ")
        assert told.detail.endswith("the routing had gone on to 'r2'")

    def test_of_a_page_long_before_the_routing_had_changed(self, orders: AuditedScope) -> None:
        orders.observe("a")
        orders.promote("a", 10)
        orders.publish()
        orders.promote("a", 20)
        orders.clock.sleep(3600)
        orders.observe("a", generation="r2", policy=MOVES)
        orders.cutover()
        orders.observe("a", generation="r2", policy=MOVES)
        assert_clean(orders)
        promoted_under(orders, "a", 1, "r2")
        told = found(orders, "generation_unproved", partition="a")
        assert told.detail.endswith("before the routing had gone on to it")

    def test_of_what_was_read_again(self, each_orders: AuditedScope) -> None:
        orders = each_orders
        orders.observe("a", policy=READING_AGAIN)
        orders.promote("a", 20)
        orders.publish()
        orders.observe("a", generation="r2", policy=READING_AGAIN)
        orders.promote("a", 10)
        orders.promote("a", 20)
        orders.cutover()
        assert_clean(orders)
        promoted_under(orders, "a", 0, "r1")
        told = found(orders, "generation_unproved", partition="a", epoch=None)
        assert (
            told.detail
            == "it was read under routing generation 'r1', then under 'r2': nothing proves the way"
        )

    def test_of_events_in_transit_and_of_who_was_handed_over(self, each_orders: AuditedScope) -> None:
        orders = each_orders
        orders.observe("a", policy=HANDOFF)
        orders.promote("a", 20)
        orders.publish()
        orders.observe("a", generation="r2", policy=HANDOFF)
        (transit,) = [name for name in orders.rows if "transit" in name]
        orders.promote(transit, 20, end=True)
        orders.cutover()
        orders.observe("a", generation="r2", policy=HANDOFF)
        orders.promote("a", 30)
        assert_clean(orders)
        promoted_under(orders, transit, 0, "r1")
        assert found(orders, "generation_unproved", partition=transit)
        promoted_under(orders, transit, 0, "r2")
        promoted_under(orders, "a", 0, "r2")
        assert "proves nothing" in found(orders, "generation_unproved", partition="a").detail

    def test_of_whoever_entered_before_it_came(self, orders: AuditedScope) -> None:
        """Nothing was published after it entered: what it entered at says enough."""
        orders.observe("a")
        orders.promote("a", 10)
        orders.publish()
        orders.observe("a", "n")
        orders.promote("n", 10)
        orders.promote("n", 15)
        orders.cutover()
        orders.observe("a", "n", generation="r2", policy=MOVES)
        orders.cutover()
        assert_clean(orders)
        promoted_under(orders, "n", 1, "r2")
        told = found(orders, "generation_unproved", partition="n", epoch=2)
        assert told.detail == (
            "it entered under routing generation 'r1' at through 15; what was promoted until then proves through 10"
        )

    def test_chains_that_two_changes_of_the_routing_carried_on_are_clean(
        self, each_orders: AuditedScope
    ) -> None:
        """Members, a candidate of the generation between, and one that had left before: all by the source's promise."""
        orders = each_orders
        orders.observe("a", "b")
        orders.promote("a", 10)
        orders.promote("b", 10)
        orders.publish()
        orders.observe("a", "b", seals={"b": 10}, successors={"b": ()})
        orders.cutover()
        orders.observe("a", "b", "n", generation="r2", policy=MOVES, seals={"b": 10}, successors={"b": ()})
        orders.promote("n", 5)
        orders.observe("a", "b", "n", generation="r3", policy=MOVES, seals={"b": 10}, successors={"b": ()})
        assert_clean(orders)
        orders.cutover()
        orders.observe("a", "b", "n", generation="r3", policy=MOVES, seals={"b": 10}, successors={"b": ()})
        orders.promote("n", 10)
        orders.cutover()
        orders.promote("n", 20)
        orders.promote("a", 20)
        orders.publish()
        assert_clean(orders)


class TestSuccessors:
    @pytest.mark.parametrize("written", [None, '["a"]', "[]", '["c","a"]', '"c"', "no JSON"])
    def test_of_one_that_has_left_differ_from_the_proof(
        self, each_history: AuditedScope, written: str | None
    ) -> None:
        each_history.sql("UPDATE gapless_chain SET successors = :new WHERE partition = 'b'", new=written)
        code = "record_damaged" if written in ('"c"', "no JSON") else "leaver_unproved"
        told = found(each_history, code, partition="b", chain=each_history.chain("b"))
        if written is None:
            assert told.detail == "it left to c; its row says to nobody who is known"
        assert each_history.codes() == [code]

    def test_that_are_no_names_on_a_live_chain(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_chain SET successors = '[7]' WHERE partition = 'a'")
        assert found(history, "record_damaged", partition="a")

    def test_of_one_that_an_operator_sealed(self, orders: AuditedScope) -> None:
        orders.observe("a", "b")
        orders.promote("a", 10)
        orders.promote("b", 10)
        orders.publish()
        orders.observe("a")
        orders.store.seal("orders", "b", Bound.through(10), "it was switched off", "kim")
        orders.cutover()
        assert_clean(orders)
        orders.sql("UPDATE gapless_chain SET successors = '[\"a\"]' WHERE partition = 'b'")
        assert found(orders, "leaver_unproved", partition="b").detail == (
            "it left to nobody who is known; its row says to a"
        )


class TestThePartitionsName:
    def test_differs_from_the_folder_that_its_pages_lie_in(self, each_history: AuditedScope) -> None:
        each_history.sql("UPDATE gapless_chain SET partition = 'x' WHERE partition = 'a'")
        told = found(each_history, "checkpoint_differs", partition="x", sequence=0)
        assert told.detail == "it is partition 'x'; its pages were promoted into the folder 'a'"
        assert found(each_history, "checkpoint_differs", partition="x", path=told.path)

    def test_is_told_once_however_many_pages_there_are(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_chain SET partition = 'x' WHERE partition = 'c'")
        told = [one for one in history.audit().contradictions if one.code == "checkpoint_differs"]
        assert len(told) == 2

    def test_differs_from_what_its_files_say_wherever_they_lie(self, orders: AuditedScope) -> None:
        orders.observe("a")
        elsewhere = {"path": str(orders.folder / "moved.parquet")}
        row = orders.promote("a", 10)
        (record,) = orders.store.promotions("orders")
        assert record.path is not None
        Path(record.path).rename(elsewhere["path"])
        orders.sql("UPDATE gapless_promotion SET path = :path", **elsewhere)
        assert_clean(orders)
        orders.sql("UPDATE gapless_chain SET partition = 'b'")
        told = found(orders, "checkpoint_differs", chain=row.chain, path=elsewhere["path"])
        assert told.detail == "it is partition 'b'; its rows are of 'a'"

    def test_differs_in_a_file_with_rows_of_several(self, orders: AuditedScope) -> None:
        orders.observe("b")
        orders.promote("b", 10, rows=2)
        (record,) = orders.store.promotions("orders")
        assert record.path is not None
        pq.write_table(pa.table({"_partition": ["b", "z"]}), record.path)
        orders.sql(
            "UPDATE gapless_promotion SET digest = :digest, size = :size",
            digest=file_digest(record.path),
            size=Path(record.path).stat().st_size,
        )
        assert found(orders, "checkpoint_differs").detail == (
            "it is partition 'b'; its rows are of partitions from 'b' to 'z'"
        )

    def test_of_events_in_transit_without_a_file(self, orders: AuditedScope) -> None:
        orders.observe("a", policy=HANDOFF)
        orders.promote("a", 20)
        orders.observe("a", generation="r2", policy=HANDOFF)
        (transit,) = [name for name in orders.rows if "transit" in name]
        orders.promote(transit, 20, end=True, rows=0, events=0)
        orders.cutover()
        assert_clean(orders)
        orders.sql("UPDATE gapless_chain SET partition = 'x' WHERE kind = 'transit'")
        assert found(orders, "routing_unproved", partition="x", epoch=2)

    @pytest.mark.parametrize("name", ["eu/west", "ü", "_x", "x" * 200, ""])
    def test_of_any_text_is_clean(self, orders: AuditedScope, name: str) -> None:
        orders.observe(name)
        orders.promote(name, 10)
        assert_clean(orders)


class TestWhenAnEpochWasOpened:
    @pytest.fixture
    def slow(self, sqlite_url: str, tmp_path: Path) -> Any:
        """A history with an hour between what happens."""
        with closing(AuditedScope(sqlite_url, tmp_path / "slow")) as scope:
            plain = scope.clock.sleep
            scope.clock.sleep = lambda seconds: plain(3600)
            yield eventful(scope)

    def move(self, scope: AuditedScope, epoch: int, by: timedelta) -> None:
        opened = schema.epoch.c.opened_at
        with scope.connection() as connection:
            (before,) = connection.execute(sa.select(opened).where(schema.epoch.c.epoch == epoch)).scalars()
            after = sa.update(schema.epoch).where(schema.epoch.c.epoch == epoch).values(opened_at=before + by)
            connection.execute(after)
            connection.commit()

    def test_the_first_one_with_the_list_it_was_frozen_by(self, slow: AuditedScope) -> None:
        assert_clean(slow)
        self.move(slow, 1, timedelta(microseconds=1))
        assert "not when its list was seen" in found(slow, "epoch_edited", epoch=1).detail

    @pytest.mark.parametrize("epoch", [2, 3, 4])
    @pytest.mark.parametrize("by", [timedelta(days=-2), timedelta(days=2)])
    def test_out_of_order(self, slow: AuditedScope, epoch: int, by: timedelta) -> None:
        self.move(slow, epoch, by)
        assert "epoch_edited" in slow.codes()

    def test_after_what_was_published_in_it(self, slow: AuditedScope) -> None:
        self.move(slow, 4, timedelta(hours=5))
        told = found(slow, "epoch_edited", epoch=4)
        assert "a frontier was published in it at" in told.detail

    def test_before_what_was_published_in_the_one_before_it(self, slow: AuditedScope) -> None:
        self.move(slow, 4, timedelta(hours=-2))
        told = [one.detail for one in slow.audit().contradictions if one.code == "epoch_edited"]
        assert any("a frontier was published in the one before it at" in detail for detail in told), told

    def test_before_the_list_it_was_opened_on(self, orders: AuditedScope) -> None:
        orders.observe("a")
        orders.clock.sleep(7200)
        orders.observe("a", "n")
        orders.promote("n", 10)
        orders.cutover()
        assert_clean(orders)
        self.move(orders, 2, timedelta(hours=-1))
        assert "its list was seen at" in found(orders, "epoch_edited", epoch=2).detail

    def test_after_a_later_list_was_seen(self, orders: AuditedScope) -> None:
        orders.observe("a")
        orders.observe("a", "n")
        orders.promote("n", 10)
        orders.cutover()
        orders.observe("a", "n", "m")
        assert_clean(orders)
        self.move(orders, 2, timedelta(hours=1))
        assert "a later list was seen at" in found(orders, "epoch_edited", epoch=2).detail

    def test_clocks_of_several_machines_need_not_agree_to_the_second(self, history: AuditedScope) -> None:
        self.move(history, 3, CLOCKS_APART / 2)
        assert_clean(history)
