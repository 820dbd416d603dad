"""Scopes: registered under a fingerprint, refused where it differs, and their frozen data schema."""

import pytest

from gapless.errors import ForeignScope, UnknownScope
from gapless.progress import Bound, TextDomain


def test_a_new_scope_starts_without_frontier_epoch_or_cap(scene, kit):
    row = scene.store.register_scope(kit.identity(scope="fresh", after=Bound.before(7)))
    assert (row.frontier, row.epoch, row.capped, row.lineage, row.after) == (
        None,
        0,
        False,
        1,
        Bound.before(7),
    )
    assert row.domain == kit.identity().domain
    assert row.identity == kit.identity().identity


def test_registering_the_same_scope_again_changes_nothing(scene, kit):
    before = scene.contents()
    again = kit.identity(identity={"event": {"position": "at", "id": "id"}, "path": "/orders"})
    assert scene.store.register_scope(again) == scene.store.scope("orders")
    assert scene.contents() == before


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"identity": {"path": "/v2", "event": {"id": "id", "position": "at"}}},
            'path is "/orders" in the store, "/v2" here',
        ),
        (
            {"identity": {"path": "/orders", "event": {"id": "id", "position": "ts"}}},
            'event.position is "at"',
        ),
        ({"identity": {"path": "/orders"}}, "event.id is"),
        ({"domain": TextDomain("binary")}, 'domain.type is "integer" in the store, "text" here'),
        ({"after": Bound.through(3)}, "range.start is null in the store"),
        (
            {"identity": {"path": "/orders", "event": {"id": "id", "position": "at"}, "filter": 1}},
            "filter is (absent) in the store, 1",
        ),
    ],
)
def test_another_scope_under_the_name_is_refused_and_the_difference_named(scene, kit, changes, named):
    before = scene.contents()
    with pytest.raises(ForeignScope) as refused:
        scene.store.register_scope(kit.identity(**changes))
    assert named in refused.value.what
    assert refused.value.exit_status == 2
    assert scene.contents() == before


def test_one_and_the_text_one_are_different_identities(scene, kit):
    scene.store.register_scope(kit.identity(scope="typed", identity={"page": 1}))
    with pytest.raises(ForeignScope, match='page is 1 in the store, "1" here'):
        scene.store.register_scope(kit.identity(scope="typed", identity={"page": "1"}))


def test_differences_are_told_without_registering(scene, kit):
    differences = scene.store.identity_differences(
        kit.identity(identity={"path": "/orders", "event": {"id": "key", "position": "at"}})
    )
    assert [(each.key, each.stored, each.given) for each in differences] == [("event.id", '"id"', '"key"')]
    assert scene.store.identity_differences(kit.identity()) == []
    assert scene.store.identity_differences(kit.identity(scope="elsewhere")) == []
    assert scene.store.scopes() == ["orders"]


def test_scopes_are_listed_by_name(scene, kit):
    for name in ("zebra", "Alpha", "nul\x00 and \ud800 alone"):
        scene.store.register_scope(kit.identity(scope=name))
    assert scene.store.scopes() == ["Alpha", "nul\x00 and \ud800 alone", "orders", "zebra"]


def test_an_unknown_scope_is_said_to_be_unknown_by_every_operation(scene, kit):
    store = scene.store
    operations = [
        lambda: store.scope("other"),
        lambda: store.observe("other", kit.assignment("a")),
        lambda: store.begin_run("other", "r", "local"),
        lambda: store.snapshot("other"),
        lambda: store.promotions("other"),
        lambda: store.dead_letters("other"),
        lambda: store.violations("other"),
        lambda: store.sweepable("other"),
        lambda: store.skip("other", "a", "e", "why", "me"),
        lambda: store.schema_store("other").frozen(),
        lambda: store.schema_store("other").freeze("{}"),
    ]
    for operation in operations:
        with pytest.raises(UnknownScope, match="'other'"):
            operation()


def test_many_processes_may_register_a_scope_at_once(scene, kit):
    stores = [scene.another() for _ in range(8)]
    rows = kit.at_once(
        [lambda store=store: store.register_scope(kit.identity(scope="busy")) for store in stores]
    )
    assert len(set(map(repr, rows))) == 1


def test_the_first_data_schema_is_frozen_and_everybody_gets_it(scene, kit):
    schema = scene.store.schema_store("orders")
    assert schema.frozen() is None
    assert schema.freeze("first") == "first"
    assert schema.freeze("second") == "first"
    assert scene.another().schema_store("orders").frozen() == "first"


def test_one_of_many_proposals_is_frozen(scene, kit):
    schemas = [scene.another().schema_store("orders") for _ in range(8)]
    answers = kit.at_once(
        [lambda s=schema, n=number: s.freeze(f"proposal {n}") for number, schema in enumerate(schemas)]
    )
    assert len(set(answers)) == 1
    assert scene.store.schema_store("orders").frozen() == answers[0]


def test_a_schema_is_widened_only_from_the_text_it_was_read_as(scene):
    schema = scene.store.schema_store("orders")
    schema.freeze("narrow")
    assert schema.widen("narrow", "wide") == "wide"
    assert schema.widen("narrow", "other") == "wide"
    assert schema.frozen() == "wide"


def test_one_of_many_widenings_from_the_same_text_takes_effect(scene, kit):
    scene.store.schema_store("orders").freeze("narrow")
    schemas = [scene.another().schema_store("orders") for _ in range(8)]
    answers = kit.at_once(
        [lambda s=schema, n=number: s.widen("narrow", f"wide {n}") for number, schema in enumerate(schemas)]
    )
    assert len(set(answers)) == 1
