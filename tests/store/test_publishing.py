"""Publishing the frontier: monotone, capped, of one epoch, and never above a member."""

import pytest
import sqlalchemy as sa

from gapless.progress import NO_CAP, Bound


def test_the_frontier_is_the_lowest_bound_of_the_members(scene):
    a, b = scene.members("a", "b")
    scene.advance(a, 120)
    scene.advance(b, 100)
    moved = scene.publish()
    assert (moved.frontier, moved.epoch, moved.basis, moved.published_at) == (
        Bound.through(100),
        1,
        "certified",
        scene.clock.now(),
    )
    assert scene.store.scope("orders") == moved


def test_an_exclusive_bound_is_lower_than_an_inclusive_one_at_the_same_position(scene):
    a, b = scene.members("a", "b")
    scene.advance(a, None, bound=Bound.through(10))
    b = scene.advance(b, None, bound=Bound.before(10))
    assert scene.publish().frontier == Bound.before(10)
    b = scene.advance(b, None, bound=Bound.through(10))
    assert scene.publish().frontier == Bound.through(10)
    scene.advance(b, None, bound=Bound.before(11))
    assert scene.publish() is None


def test_it_is_withheld_while_a_member_has_no_bound(scene):
    a, b = scene.members("a", "b")
    scene.advance(a, 100)
    scene.advance(b, None)
    assert scene.publish() is None
    assert scene.frontier() is None


def test_it_is_withheld_where_there_is_no_member(scene):
    scene.observe()
    assert scene.publish(epoch=0) is None
    assert scene.frontier() is None


def test_publishing_again_moves_nothing_and_writes_nothing(scene):
    (row,) = scene.members("a")
    scene.advance(row, 100)
    scene.publish()
    before = scene.contents()
    assert scene.publish() is None
    assert scene.contents() == before


def test_it_never_goes_back_even_where_a_bound_did(scene):
    (row,) = scene.members("a")
    scene.advance(row, 100)
    scene.publish()
    scene.sql("UPDATE gapless_chain SET bound = :lower", lower=b"\x00")
    assert scene.publish() is None
    assert scene.frontier() == Bound.through(100)


@pytest.mark.parametrize("epoch", [0, 2])
def test_another_epoch_publishes_nothing(scene, epoch):
    (row,) = scene.members("a")
    scene.advance(row, 100)
    assert scene.publish(epoch=epoch) is None
    assert scene.frontier() is None


def test_candidates_leavers_gone_and_other_lineages_do_not_count(scene):
    rows = scene.members("a", "gone", "older")
    for row, position in zip(rows, (100, 10, 20), strict=True):
        scene.advance(row, position)
    scene.sql("UPDATE gapless_chain SET epoch_out = 1 WHERE partition = 'gone'")
    scene.sql("UPDATE gapless_chain SET lineage = 0 WHERE partition = 'older'")
    assert scene.publish().frontier == Bound.through(100)


def test_a_candidate_behind_the_frontier_does_not_pull_it_back(scene):
    (row,) = scene.members("a")
    row = scene.advance(row, 100)
    scene.publish()
    scene.observe("a", "n")
    scene.sql("UPDATE gapless_scope SET cap = :none", none=NO_CAP)
    scene.advance(row, 110)
    assert scene.publish().frontier == Bound.through(110)


def test_the_cap_is_not_passed(scene):
    scene.observe("a", list_bound=Bound.before(50))
    (row,) = scene.members("a")
    row = scene.advance(row, 40)
    assert scene.publish().frontier == Bound.through(40)
    scene.advance(row, 100)
    assert scene.publish().frontier == Bound.before(50)
    assert scene.publish() is None


def test_it_is_asserted_from_the_first_move_that_rests_on_an_assertion(scene):
    a, b = scene.members("a", "b")
    a = scene.advance(a, 100)
    b = scene.advance(b, 100)
    assert scene.publish().basis == "certified"
    b = scene.advance(b, 200, basis="asserted")
    assert scene.publish() is None
    assert scene.store.scope("orders").basis == "certified", "what was published rests on certificates"
    scene.advance(a, 150)
    moved = scene.publish()
    assert (moved.frontier, moved.basis) == (Bound.through(150), "asserted")


def test_it_stays_asserted_when_the_member_has_left(scene):
    a, b = scene.members("a", "b")
    a = scene.advance(a, 100)
    scene.advance(b, 100, basis="asserted")
    scene.publish()
    scene.sql("UPDATE gapless_chain SET epoch_out = 1 WHERE partition = 'b'")
    scene.advance(a, 120)
    assert scene.publish().basis == "asserted"


def test_every_move_is_kept_as_history(scene):
    (row,) = scene.members("a")
    row = scene.advance(row, 10)
    scene.publish()
    scene.publish()
    scene.advance(row, 20, basis="asserted")
    scene.clock.sleep(1)
    scene.publish()
    moves = [(epoch, basis) for _, _, _, epoch, _, basis, _ in scene.contents()["frontier_history"]]
    assert moves == [(1, "certified"), (1, "asserted")]


def test_two_publishers_that_read_different_minima_end_at_the_higher(scene, kit):
    (row,) = scene.members("a")
    row = scene.advance(row, 50)
    slow = scene.another()
    scene.advance(row, 60)
    results = kit.at_once([scene.publish, lambda: slow.publish("orders", 1)])
    assert [moved.frontier for moved in results if moved is not None] == [Bound.through(60)]


class TestAgainstACutover:
    """The cutover of one session, stepped by hand, holds the scope's row while another publishes."""

    def test_a_publish_that_waits_for_a_cutover_publishes_nothing_under_the_old_epoch(
        self, postgres_scene, kit, until_blocked
    ):
        """Epoch 2 has a member that is only through 5: a publish of 100 for epoch 1 would claim too much."""
        scene = postgres_scene
        (row,) = scene.members("a")
        scene.advance(row, 100)
        scene.observe("a", "n")
        scene.sql("UPDATE gapless_scope SET cap = :none", none=NO_CAP)
        publisher = scene.another()
        with scene.connection() as cutover:
            cutover.execute(sa.text("SELECT 1 FROM gapless_scope FOR UPDATE"))
            waiting = kit.in_background(lambda: publisher.publish("orders", 1))
            until_blocked(cutover.connection.dbapi_connection.info.backend_pid)
            # The cap is lifted and the newcomer let in by the cutover itself.
            cutover.execute(
                sa.text("UPDATE gapless_scope SET epoch = 2, cap = decode(repeat('ff', 8), 'hex')")
            )
            cutover.execute(
                sa.text(
                    "UPDATE gapless_chain SET epoch_in = 2, bound = decode('00', 'hex') WHERE partition = 'n'"
                )
            )
            cutover.commit()
        assert waiting.result() is None
        assert scene.frontier() is None
        assert scene.store.scope("orders").epoch == 2

    def test_a_publish_that_waits_for_a_cutover_in_its_statement_checks_the_epoch_again(
        self, postgres_scene, kit, until_blocked
    ):
        scene = postgres_scene
        (row,) = scene.members("a")
        scene.advance(row, 100)
        publisher = scene.another()
        with scene.connection() as cutover:
            cutover.execute(sa.text("UPDATE gapless_scope SET epoch = 2"))
            waiting = kit.in_background(lambda: publisher.publish("orders", 1))
            until_blocked(cutover.connection.dbapi_connection.info.backend_pid)
            cutover.commit()
        assert waiting.result() is None
        assert scene.frontier() is None

    def test_a_publish_that_waits_sees_the_cap_that_was_set_meanwhile(
        self, postgres_scene, kit, until_blocked
    ):
        scene = postgres_scene
        (row,) = scene.members("a")
        row = scene.advance(row, 100)
        scene.publish()
        scene.advance(row, 200)
        publisher = scene.another()
        with scene.connection() as observer:
            observer.execute(sa.text("UPDATE gapless_scope SET cap = frontier"))
            waiting = kit.in_background(lambda: publisher.publish("orders", 1))
            until_blocked(observer.connection.dbapi_connection.info.backend_pid)
            observer.commit()
        assert waiting.result() is None
        assert scene.frontier() == Bound.through(100)

    def test_a_publish_goes_on_where_the_cutover_is_rolled_back(self, postgres_scene, kit, until_blocked):
        scene = postgres_scene
        (row,) = scene.members("a")
        scene.advance(row, 100)
        publisher = scene.another()
        with scene.connection() as cutover:
            cutover.execute(sa.text("UPDATE gapless_scope SET epoch = 2"))
            waiting = kit.in_background(lambda: publisher.publish("orders", 1))
            until_blocked(cutover.connection.dbapi_connection.info.backend_pid)
            cutover.rollback()
        assert waiting.result().frontier == Bound.through(100)

    def test_on_sqlite_a_publish_waits_for_the_whole_cutover(self, sqlite_scene, kit):
        scene = sqlite_scene
        (row,) = scene.members("a")
        scene.advance(row, 100)
        publisher = scene.another()
        with scene.connection() as cutover:
            waiting = kit.in_background(lambda: publisher.publish("orders", 1))
            cutover.execute(sa.text("UPDATE gapless_scope SET epoch = 2"))
            cutover.commit()
        assert waiting.result() is None
        assert scene.frontier() is None
