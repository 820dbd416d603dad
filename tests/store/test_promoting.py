"""Promotion: one transaction by compare-and-swap, or nothing."""

from dataclasses import replace

import pytest
import sqlalchemy as sa

from gapless.errors import StoreError
from gapless.progress import Bound, ChainState
from gapless.store.records import Blocker


def test_a_promotion_moves_token_sequence_bound_and_counts_together(scene, kit):
    (row,) = scene.members("a")
    run = kit.promotion(row, 100, pages=3, token_out="next", events=30, drift=2)
    moved = scene.store.promote(run)
    assert (moved.sequence, moved.page_token, moved.bound, moved.read_to) == (
        3,
        "next",
        Bound.through(100),
        Bound.through(100),
    )
    assert (moved.events, moved.drift, moved.state, moved.basis) == (30, 2, ChainState.OPEN, "certified")
    assert scene.store.chain(row.chain) == moved


def test_the_manifest_row_is_written_with_it(scene, kit):
    (row,) = scene.members("a")
    scene.store.promote(kit.promotion(row, 100, pages=3, evidence={"issuer": "page", "n": 2**70}))
    (listed,) = scene.store.promotions("orders")
    assert (listed.partition, listed.sequence, listed.pages, listed.fencing_token) == ("a", 0, 3, 1)
    assert (listed.token_in, listed.token_out, listed.bound) == (None, "t1", Bound.through(100))
    assert (listed.path, listed.digest, listed.rows, listed.size) == ("/out/a-0-1.parquet", "d", 10, 1000)
    assert listed.evidence == {"issuer": "page", "n": 2**70}
    assert listed.promoted_at == scene.clock.now()


def test_the_bound_never_goes_back(scene, kit):
    (row,) = scene.members("a")
    row = scene.advance(row, 120)
    row = scene.advance(row, 90)
    assert row.bound == Bound.through(120)
    row = scene.advance(row, None)
    assert (row.bound, row.sequence) == (Bound.through(120), 3)


def test_a_page_without_certificate_moves_the_token_alone(scene):
    (row,) = scene.members("a")
    row = scene.advance(row, None)
    assert (row.bound, row.page_token, row.sequence) == (None, "t1", 1)


@pytest.mark.parametrize(
    "other",
    [
        {"fencing_token": 0},
        {"fencing_token": 2},
        {"sequence": 0},
        {"sequence": 2},
        {"page_token": None},
        {"page_token": "elsewhere"},
        {"generation": "r2"},
        {"chain": 999},
    ],
    ids=lambda change: "-".join(f"{key}={value}" for key, value in change.items()),
)
def test_a_row_that_is_not_the_expected_one_is_left_alone(scene, kit, other):
    (row,) = scene.members("a")
    row = scene.advance(row, 10)
    before = scene.contents()
    lost = kit.promotion(
        replace(row, **other),
        20,
        dead_letters=[kit.letter("e")],
        violations=[kit.violation("v")],
        token_out="x",
    )
    assert scene.store.promote(lost) is None
    assert scene.contents() == before


@pytest.mark.parametrize("state", [state.value for state in ChainState if state is not ChainState.OPEN])
def test_only_an_open_chain_is_promoted(scene, kit, state):
    (row,) = scene.members("a")
    scene.sql("UPDATE gapless_chain SET state = :state", state=state)
    before = scene.contents()
    assert scene.store.promote(kit.promotion(row, 10)) is None
    assert scene.contents() == before


def test_a_chain_that_was_closed_is_not_promoted_whatever_its_state(scene, kit):
    (row,) = scene.members("a")
    scene.sql("UPDATE gapless_chain SET epoch_out = 2")
    assert scene.store.promote(kit.promotion(row, 10)) is None


def test_a_late_retry_of_an_older_page_loses(scene, kit):
    """Bounds 120 and 90; a late retry of the older page loses; then 110 gives 110."""
    a, b = scene.members("a", "b")
    scene.advance(a, 120)
    late = kit.promotion(b, 95)
    b = scene.advance(b, 90)
    scene.publish()
    assert scene.store.promote(late) is None
    assert scene.store.chain(b.chain) == b
    scene.advance(b, 110)
    assert scene.publish().frontier == Bound.through(110)


def test_a_twin_is_not_fenced_and_loses_by_compare_and_swap(scene, kit):
    (row,) = scene.members("a")
    twin = scene.another()
    its_row = twin.take(row.chain, 1)
    assert its_row == row
    won = scene.advance(row, 10)
    assert twin.promote(kit.promotion(its_row, 12, path="/out/twin")) is None
    reread = twin.chain(row.chain)
    assert reread == won
    assert reread.fencing_token == its_row.fencing_token, "lost, but not fenced: it may go on from here"
    assert twin.promote(kit.promotion(reread, 12)).sequence == 2


def test_a_zombie_that_wakes_up_after_a_takeover_changes_nothing(scene, kit):
    (row,) = scene.members("a")
    scene.store.take(row.chain, 2)
    before = scene.contents()
    assert scene.store.promote(kit.promotion(row, 10)) is None
    assert scene.contents() == before
    assert scene.store.chain(row.chain).fencing_token == 2


def test_what_held_the_chain_is_cleared(scene, kit):
    (row,) = scene.members("a")
    scene.store.hold(
        row, ChainState.HELD, Blocker("unsettled_event", "no", "e", 3, retry_at=scene.clock.now())
    )
    taken = scene.store.take(row.chain, 2)
    assert scene.advance(taken, 10).blocker is None


def test_an_end_closes_the_chain(scene, kit):
    (row,) = scene.members("a")
    ended = scene.advance(row, 10, end=True, token_out=None)
    assert (ended.state, ended.page_token) == (ChainState.ENDED, None)
    assert scene.store.promote(kit.promotion(ended, 20)) is None


def test_an_assertion_that_raises_the_bound_stays_in_it_for_ever(scene):
    (row,) = scene.members("a")
    row = scene.advance(row, 10)
    row = scene.advance(row, 5, basis="asserted")
    assert row.basis == "certified", "it raised nothing"
    row = scene.advance(row, 20, basis="asserted")
    assert row.basis == "asserted"
    assert scene.advance(row, 30).basis == "asserted"


def test_dead_letters_are_stored_and_counted_once_an_event(scene, kit):
    (row,) = scene.members("a")
    row = scene.advance(row, 10, dead_letters=[kit.letter("e1"), kit.letter("e2", 2), kit.letter("e1")])
    assert row.dead_letters == 2
    row = scene.advance(row, 20, dead_letters=[kit.letter("e2", 2), kit.letter("e3", 3)])
    assert row.dead_letters == 3
    letters = list(scene.store.dead_letters("orders"))
    assert [letter.event_id for letter in letters] == ["e1", "e2", "e3"]
    assert letters[0] == kit.letter("e1", recorded_at=scene.clock.now())


def test_violations_are_stored_with_it(scene, kit):
    (row,) = scene.members("a")
    scene.advance(
        row, 10, violations=[kit.violation("v1"), kit.violation(None, None, kind="certificate_went_back")]
    )
    found = list(scene.store.violations("orders"))
    assert [(each.kind, each.event_id) for each in found] == [
        ("event_behind_bound", "v1"),
        ("certificate_went_back", None),
    ]
    assert found[0] == kit.violation("v1", recorded_at=scene.clock.now(), lineage=1)


def test_all_receipts_end_with_a_run_that_names_none(scene):
    (row,) = scene.members("a")
    scene.store.record_receipts(row, {"e1": "delivered", "e2": "dead_lettered"})
    scene.advance(row, 10)
    assert scene.store.receipts(row.chain) == {}


def test_receipts_of_events_that_are_not_in_the_run_stay(scene):
    (row,) = scene.members("a")
    scene.store.record_receipts(row, {"e1": "delivered", "e2": "dead_lettered"})
    row = scene.advance(row, 10, settled=["e1"])
    assert scene.store.receipts(row.chain) == {"e2": "dead_lettered"}
    row = scene.advance(row, 20, settled=[])
    assert scene.store.receipts(row.chain) == {"e2": "dead_lettered"}
    scene.advance(row, 30, settled=[], end=True)
    assert scene.store.receipts(row.chain) == {}


def test_ids_tokens_and_paths_of_any_content_come_back_as_they_were(scene, kit):
    nasty = ["nul\x00", "\ud800", "\x01", '\x01"x"', "", "ü漢😀", "'; DROP TABLE gapless_chain; --"]
    rows = scene.members(*(f"p{number}" for number in range(len(nasty))))
    for row, text in zip(rows, nasty, strict=True):
        moved = scene.advance(
            row, 5, token_out=text, path=text, dead_letters=[kit.letter(text, payload=text)]
        )
        assert moved.page_token == text
        assert scene.advance(moved, 6).sequence == 2
    assert [letter.event_id for letter in scene.store.dead_letters("orders")] == nasty
    assert [listed.path for listed in scene.store.promotions("orders") if listed.sequence == 0] == nasty


def test_a_run_without_pages_or_from_another_token_is_a_mistake_of_the_caller(scene, kit):
    (row,) = scene.members("a")
    with pytest.raises(ValueError, match="at least one"):
        scene.store.promote(kit.promotion(row, 10, pages=0))
    with pytest.raises(ValueError, match="the committed token is None"):
        scene.store.promote(kit.promotion(row, 10, token_in="elsewhere"))


def test_a_promotion_that_fails_half_way_leaves_nothing(scene, kit):
    """The manifest already holds a row where this one belongs, as after tampering: the swap before it is undone."""
    (row,) = scene.members("a")
    moved = scene.advance(row, 10)
    scene.sql("UPDATE gapless_chain SET sequence = 0, page_token = NULL")
    before = scene.contents()
    with pytest.raises(StoreError, match="the store contradicts itself"):
        scene.store.promote(kit.promotion(row, 20, dead_letters=[kit.letter("e")]))
    assert scene.contents() == before
    scene.sql("UPDATE gapless_chain SET sequence = 1, page_token = 't1'")
    assert scene.advance(moved, 20).sequence == 2, "and the store goes on"


def test_of_many_twins_exactly_one_promotes_a_page(scene, kit):
    (row,) = scene.members("a")
    stores = [scene.another() for _ in range(8)]
    results = kit.at_once(
        [
            lambda s=store, n=n: s.promote(kit.promotion(row, 10 + n, path=f"/out/{n}"))
            for n, store in enumerate(stores)
        ]
    )
    winners = [number for number, result in enumerate(results) if result is not None]
    assert len(winners) == 1
    (listed,) = scene.store.promotions("orders")
    assert listed.path == f"/out/{winners[0]}"
    assert scene.store.chain(row.chain).bound == Bound.through(10 + winners[0])


@pytest.mark.parametrize("first_commits", [True, False])
def test_a_promotion_that_waits_for_another_is_judged_by_how_that_one_ended(
    postgres_scene, kit, until_blocked, first_commits
):
    (row,) = postgres_scene.members("a")
    second = postgres_scene.another()
    with postgres_scene.connection() as connection:
        connection.execute(sa.text("UPDATE gapless_chain SET sequence = 1, page_token = 'other'"))
        waiting = kit.in_background(lambda: second.promote(kit.promotion(row, 10)))
        until_blocked(connection.connection.dbapi_connection.info.backend_pid)
        if first_commits:
            connection.commit()
        else:
            connection.rollback()
    result = waiting.result()
    assert (result is None) is first_commits
    assert len(list(postgres_scene.store.promotions("orders"))) == (0 if first_commits else 1)
    assert postgres_scene.store.chain(row.chain).page_token == ("other" if first_commits else "t1")
