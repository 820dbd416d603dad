"""Reading: one instant in one answer, and streams that hold their snapshot while others write."""

import pytest
import sqlalchemy as sa

from gapless.errors import ForeignLineage
from gapless.progress import Bound, IntegerDomain, ListDomain, TextDomain, TimestampDomain
from gapless.store.records import Totals


def test_a_snapshot_holds_scope_chains_run_and_totals(scene, kit):
    scene.store.begin_run("orders", "run", "local")
    a, _ = scene.members("a", "b")
    scene.advance(
        a, 10, pages=4, events=40, drift=3, dead_letters=[kit.letter("e")], violations=[kit.violation("v")]
    )
    scene.publish()
    scene.observe("a", "b", "n")
    snapshot = scene.store.snapshot("orders")
    assert snapshot.scope == scene.store.scope("orders")
    assert [(row.partition, row.epoch_in) for row in snapshot.chains] == [("a", 1), ("b", 1), ("n", None)]
    assert snapshot.run.run_id == "run"
    assert snapshot.violations == 1
    assert snapshot.as_of == scene.clock.now()
    assert snapshot.totals == Totals(pages=4, events=40, dead_letters=1, drift=3)


def test_totals_keep_what_members_that_have_left_brought(scene):
    a, b = scene.members("a", "b")
    scene.advance(a, 10)
    scene.advance(b, 10)
    scene.sql("UPDATE gapless_chain SET epoch_out = 2, state = 'sealed' WHERE partition = 'b'")
    snapshot = scene.store.snapshot("orders")
    assert [row.partition for row in snapshot.chains] == ["a"]
    assert snapshot.totals == Totals(pages=2, events=20)


def test_a_scope_without_a_run_or_a_list_has_a_snapshot_too(scene):
    snapshot = scene.store.snapshot("orders")
    assert (snapshot.chains, snapshot.run, snapshot.violations, snapshot.totals) == ([], None, 0, Totals())


def test_a_snapshot_is_of_one_instant(postgres_scene, kit):
    """A cutover commits between its statements: scope and chains are of the same epoch all the same."""
    scene = postgres_scene
    scene.members("a")
    reader = scene.another()
    statements = []

    def cut_over(connection, cursor, text, parameters, context, many):
        statements.append(text)
        if len(statements) == 3:
            scene.sql("UPDATE gapless_scope SET epoch = 2")
            scene.sql("UPDATE gapless_chain SET epoch_out = 2")

    sa.event.listen(reader._database._engine, "before_cursor_execute", cut_over)
    snapshot = reader.snapshot("orders")
    assert len(statements) > 3
    assert (snapshot.scope.epoch, [row.partition for row in snapshot.chains]) == (1, ["a"])
    assert (reader.scope("orders").epoch, reader.snapshot("orders").chains) == (2, [])


class TestDataSet:
    """The promoted runs that consumers read."""

    def paths(self, scene, **options):
        return [row.path for row in scene.store.promotions("orders", **options)]

    def test_it_is_every_promoted_run_with_rows_chain_by_chain(self, scene):
        a, b = scene.members("a", "b")
        b = scene.advance(b, 1)
        a = scene.advance(a, 1)
        a = scene.advance(a, 2, rows=0, path=None)
        scene.advance(a, 3)
        assert self.paths(scene) == ["/out/a-0-1.parquet", "/out/a-2-1.parquet", "/out/b-0-1.parquet"]
        assert len(self.paths(scene, every=True)) == 4

    def test_a_candidate_is_not_in_it_before_it_has_entered(self, scene):
        scene.members("a")
        newcomer = scene.observe("a", "n").tasks[1]
        scene.advance(scene.store.take(newcomer.chain, 1), 5)
        assert self.paths(scene) == []
        assert len(self.paths(scene, every=True)) == 1
        scene.sql("UPDATE gapless_chain SET epoch_in = 2 WHERE partition = 'n'")
        assert self.paths(scene) == ["/out/n-0-1.parquet"]

    @pytest.mark.parametrize(
        ("state", "there"), [("replaced", 0), ("sealed", 1), ("superseded", 1), ("held", 1)]
    )
    def test_only_a_replaced_chain_drops_out_of_it(self, scene, state, there):
        (row,) = scene.members("a")
        scene.advance(row, 5)
        scene.sql("UPDATE gapless_chain SET state = :state, epoch_out = 2", state=state)
        assert len(self.paths(scene)) == there

    def test_an_older_lineage_stays_readable_and_an_unknown_one_is_refused(self, scene):
        (row,) = scene.members("a")
        scene.advance(row, 5)
        scene.sql("UPDATE gapless_scope SET lineage = 2")
        assert self.paths(scene) == []
        assert len(self.paths(scene, lineage=1)) == 1
        for lineage in (0, 3):
            with pytest.raises(ForeignLineage, match=f"no lineage {lineage}"):
                scene.store.promotions("orders", lineage)

    def test_a_stream_keeps_its_snapshot_while_the_store_is_used(self, scene):
        (row,) = scene.members("a")
        for number in range(5):
            row = scene.advance(row, number)
        stream = scene.store.promotions("orders")
        first = next(stream)
        row = scene.advance(row, 9)
        scene.publish()
        assert [first.sequence, *(each.sequence for each in stream)] == [0, 1, 2, 3, 4]
        assert len(self.paths(scene)) == 6

    def test_a_stream_that_is_not_read_to_its_end_can_be_closed(self, scene):
        (row,) = scene.members("a")
        for number in range(3):
            row = scene.advance(row, number)
        stream = scene.store.promotions("orders")
        next(stream)
        stream.close()
        scene.sql("DELETE FROM gapless_promotion")
        assert self.paths(scene) == []

    def test_more_rows_than_one_fetch_brings_are_all_there(self, scene):
        (row,) = scene.members("a")
        scene.advance(row, 1)
        series = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)"
        columns = ", ".join(
            column.name for column in sa.inspect(_promotion()).columns if column.name != "sequence"
        )
        scene.sql(
            f"INSERT INTO gapless_promotion (sequence, {columns}) {series} SELECT i, {columns} FROM n, gapless_promotion"
            if not scene.sqlite
            else f"{series} INSERT INTO gapless_promotion (sequence, {columns}) SELECT i, {columns} FROM n, gapless_promotion"
        )
        assert [row.sequence for row in scene.store.promotions("orders")] == list(range(2501))


def _promotion():
    from gapless.store import schema

    return schema.promotion


class TestSweep:
    """What a sweep of files may not touch."""

    def test_every_listed_path_counts_and_the_lowest_token_of_a_partition(self, scene):
        a, _ = scene.members("a", "b")
        scene.advance(a, 1)
        scene.store.take(a.chain, 5)
        newer = scene.observe("a", "b", generation="r2").tasks[0]
        scene.store.take(newer.chain, 7)
        listed = scene.store.sweepable("orders")
        assert listed.paths == {"/out/a-0-1.parquet"}
        assert listed.fencing_tokens == {"a": 5, "b": 0}

    def test_files_of_replaced_and_older_chains_stay_listed(self, scene):
        (row,) = scene.members("a")
        scene.advance(row, 1)
        scene.sql("UPDATE gapless_chain SET state = 'replaced', epoch_out = 2")
        scene.sql("UPDATE gapless_scope SET lineage = 2")
        assert scene.store.sweepable("orders").paths == {"/out/a-0-1.parquet"}


@pytest.mark.parametrize(
    ("domain", "position"),
    [
        (IntegerDomain(), 2**200),
        (IntegerDomain(), -5),
        (TextDomain("binary"), "nul\x00 ü"),
        (TimestampDomain("ns"), 1_356_998_400_123_456_789),
        (ListDomain((TimestampDomain("us"), TextDomain("binary"))), (1_356_998_400_000_000, "id-7")),
    ],
    ids=str,
)
def test_bounds_and_positions_of_every_domain_come_back_exactly(scene, kit, domain, position):
    scene.store.register_scope(kit.identity(scope="typed", domain=domain, after=Bound.before(position)))
    (task,) = scene.store.observe("typed", kit.assignment("a", seals={"a": Bound.through(position)})).tasks
    row = scene.store.take(task.chain, 1)
    bound = Bound.before(position)
    moved = scene.store.promote(
        kit.promotion(
            row, None, bound=bound, read_to=Bound.through(position), dead_letters=[kit.letter("e", position)]
        )
    )
    assert (moved.bound, moved.read_to, moved.seal) == (
        bound,
        Bound.through(position),
        Bound.through(position),
    )
    assert scene.store.publish("typed", 1).frontier == bound
    scope = scene.another().scope("typed")
    assert (scope.frontier, scope.after, scope.domain) == (bound, bound, domain)
    assert next(scene.store.dead_letters("typed")).position == position
