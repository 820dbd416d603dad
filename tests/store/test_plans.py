"""Statements over members use an index, as the databases' own plans say."""

import pytest
import sqlalchemy as sa

from gapless.progress import Bound, IntegerDomain
from gapless.store import schema, swaps

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
