"""Statements over members use an index, as the databases' own plans say."""

import pytest
import sqlalchemy as sa

from gapless.progress import Bound, ChainState, IntegerDomain
from gapless.store import schema, swaps
from gapless.store.records import MembershipPolicy

MEMBERS = 5000


def plan_of(scene, statement, **values):
    """The plan of the statement as it is sent, by the database itself."""
    plan = []

    def explain(connection, cursor, text, parameters, context, many):
        how = "EXPLAIN QUERY PLAN" if scene.sqlite else "EXPLAIN"
        own = connection.connection.cursor()
        own.execute(f"{how} {text}", parameters)
        plan.extend(str(row[-1]) for row in own.fetchall())
        own.close()

    with scene.connection() as connection:
        sa.event.listen(connection, "before_cursor_execute", explain)
        connection.execute(statement, values)
        connection.rollback()
    return "\n".join(plan)


@pytest.fixture
def crowded(scene):
    """Five thousand members with bounds of their own, five thousand chains that have left, and statistics about them."""
    domain = IntegerDomain()
    plain = {
        "scope": "orders",
        "lineage": 1,
        "fields": {},
        "generation": "",
        "epoch_in": 1,
        "listed": 1,
        "state": "open",
        "fencing_token": 0,
        "sequence": 0,
        "read_to": b"",
        "basis": "certified",
        "events": 0,
        "dead_letters": 0,
        "drift": 0,
        "kind": "partition",
        "seal": b"",
        "seal_basis": "source",
    }
    members = [
        {**plain, "partition": f"p{number}", "bound": domain.key(Bound.through(number)), "epoch_out": left}
        for number in range(MEMBERS)
        for left in (None, 1)
    ]
    with scene.connection() as connection:
        connection.execute(sa.insert(schema.chain), members)
        connection.execute(sa.update(schema.scope).values(epoch=1))
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    return scene


def test_the_published_minimum_is_the_first_entry_of_an_index(crowded):
    plan = plan_of(
        crowded, swaps.PUBLISH, at_scope="orders", at_epoch=1, new_published_at=crowded.clock.now()
    )
    assert "gapless_chain_minimum" in plan
    assert "gapless_chain_asserted" in plan
    for slow in ("SCAN gapless_chain", "Seq Scan on gapless_chain", "Sort", "TEMP B-TREE"):
        assert slow not in plan, plan


def test_a_swap_finds_its_chain_by_the_primary_key(crowded):
    (some,) = crowded.store.snapshot("orders").chains[:1]
    plan = plan_of(crowded, swaps.RESTART, **swaps.at(some), new_page_token="x")
    assert "gapless_chain_pkey" in plan or "INTEGER PRIMARY KEY" in plan


def test_candidates_are_found_by_index(crowded):
    chain = schema.chain.c
    candidates = sa.select(chain.chain).where(
        chain.scope == "orders", chain.lineage == 1, schema.is_candidate()
    )
    assert "gapless_chain_candidate" in plan_of(crowded, candidates.limit(1))


def test_publishing_over_thousands_gives_the_lowest(crowded):
    assert crowded.publish().frontier == Bound.through(0)


class TestMembership:
    """Every statement that membership sends, as it is sent, in a database that other scopes fill."""

    @pytest.fixture
    def plans(self, crowded, kit):
        """A scope of a few members beside the crowd, and the plan of every statement over chains that its store sends."""
        scene, names = crowded, [f"s{number}" for number in range(30)]
        scene.store.register_scope(kit.identity(scope="small"))
        scene.store.observe("small", kit.assignment(*names, generation="r1"))
        with scene.connection() as connection:
            chain = schema.chain.c
            plain = connection.execute(sa.select(schema.chain).limit(1)).mappings().one()
            others = [{**plain, "scope": f"other {number}", "partition": "p"} for number in range(200)]
            columns = [column.name for column in chain if column.name != "chain"]
            connection.execute(
                sa.insert(schema.chain), [{name: row[name] for name in columns} for row in others]
            )
            connection.exec_driver_sql("ANALYZE")
            connection.commit()
        scene.store.disconnect()  # SQLite reads the statistics when it connects
        found = []

        def explain(connection, cursor, text, parameters, context, many):
            if "gapless_chain" not in text or text.startswith("INSERT"):
                return
            own = connection.connection.cursor()
            how = "EXPLAIN QUERY PLAN" if scene.sqlite else "EXPLAIN"
            own.execute(f"{how} {text}", parameters[0] if many else parameters)
            found.append((text, "\n".join(str(row[-1]) for row in own.fetchall())))
            own.close()

        sa.event.listen(scene.store._database._engine, "before_cursor_execute", explain)
        return found

    @staticmethod
    def promote(scene, kit, position):
        """By a store of its own: it is not what is looked at here."""
        with scene.another() as store:
            for row in store.snapshot("small").chains:
                if row.state is ChainState.OPEN and (row.bound is None or row.bound.position < position):
                    assert store.promote(kit.promotion(row, position)) is not None

    def test_none_looks_through_the_chains_of_others(self, plans, crowded, kit):
        scene, store = crowded, crowded.store
        names = [f"s{number}" for number in range(30)]

        def observe(*names, policy=None, **facts):
            store.observe("small", kit.assignment(*names, **facts), policy=policy)

        self.promote(scene, kit, 10)
        assert store.publish("small", 1) is not None
        ends = {"seals": {"s0": Bound.through(10)}, "successors": {"s0": ("n",)}}
        observe(*names, "n", generation="r1", **ends)
        self.promote(scene, kit, 20)
        assert store.cutover("small").accepted
        observe(*names, "n", generation="r1", **ends)
        observe(*names, "n", generation="r2", policy=MembershipPolicy(moves="never behind"), **ends)
        assert store.cutover("small").accepted
        observe(*names[1:], "n", generation="r3", policy=MembershipPolicy(handoff=True))
        self.promote(scene, kit, 30)
        observe(*names, "n", generation="r4", **ends)
        self.promote(scene, kit, 30)
        assert store.cutover("small").accepted
        store.cutover("small", dry_run=True)
        store.seal("small", "s3", Bound.through(30), "gone")
        assert store.publish("small", store.scope("small").epoch) is not None
        store.rebuild("small", "anew")
        slow = [
            (text, plan)
            for text, plan in plans
            if "SCAN gapless_chain" in plan or "Seq Scan on gapless_chain" in plan
        ]
        assert len(plans) > 30
        assert slow == []
