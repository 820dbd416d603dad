"""Cutovers against promotions, publishes, looks at the list and each other: the interleavings by hand, on the real databases."""

import sqlalchemy as sa

from gapless.progress import Bound, ChainState
from gapless.store.records import MembershipPolicy

HANDOFF = MembershipPolicy(handoff=True)


def codes(result):
    return [blocker.code for blocker in result.missing]


def pid(store):
    with store._database.bare() as connection:
        return connection.connection.dbapi_connection.info.backend_pid


def before_statement(store, beginning, work):
    """Do `work` once, right before the store sends its first statement that begins so."""
    todo = [work]

    def hook(connection, cursor, text, parameters, context, many):
        if todo and text.startswith(beginning):
            todo.pop()()

    sa.event.listen(store._database._engine, "before_cursor_execute", hook)


def ready_for_a_handoff(scene):
    """Two members through 100 under r1; r2 is listed, and its handoff certificate covers 100."""
    scene.observe("a", "b", generation="r1")
    scene.bring("a", 100)
    scene.bring("b", 100)
    scene.publish()
    scene.observe("a", "b", generation="r2", policy=HANDOFF)
    scene.bring("in transit from r1 to r2", 100, end=True)


class TestAPromotionMeetsAHandoff:
    """A handoff certificate is usable only where it covers what every member was promoted through: also at the last moment."""

    def test_a_zombies_promotion_between_the_check_and_the_change_waits_and_is_lost(
        self, postgres_scene, kit, until_blocked
    ):
        scene = postgres_scene
        ready_for_a_handoff(scene)
        zombie, cutting, promoting = scene.live("a"), scene.another(), scene.another()
        session, started = pid(cutting), []

        def promote_beyond():
            started.append(kit.in_background(lambda: promoting.promote(kit.promotion(zombie, 200))))
            until_blocked(session)

        before_statement(cutting, "UPDATE gapless_chain", promote_beyond)
        assert cutting.cutover("orders").accepted
        assert started[0].result() is None
        assert (scene.live("a").bound, scene.live("a").generation) == (Bound.through(100), "r2")

    def test_a_promotion_that_is_about_to_commit_is_waited_for_and_counts(
        self, postgres_scene, kit, until_blocked
    ):
        scene = postgres_scene
        ready_for_a_handoff(scene)
        cutting = scene.another()
        key = scene.store.scope("orders").domain.key(Bound.through(200))
        with scene.connection() as promotion:
            promotion.execute(
                sa.text("UPDATE gapless_chain SET read_to = :k, sequence = 9 WHERE partition = 'a'"),
                {"k": key},
            )
            waiting = kit.in_background(lambda: cutting.cutover("orders"))
            until_blocked(promotion.connection.dbapi_connection.info.backend_pid)
            promotion.commit()
        result = waiting.result()
        assert (result.accepted, codes(result)) == (False, ["handoff_unproven"])
        assert "covers through 100, less than partition a was promoted through: through 200" in (
            result.missing[0].detail
        )

    def test_on_sqlite_one_waits_for_the_whole_of_the_other(self, sqlite_scene, kit):
        scene = sqlite_scene
        ready_for_a_handoff(scene)
        zombie, cutting, promoting = scene.live("a"), scene.another(), scene.another()
        results = kit.at_once(
            [lambda: cutting.cutover("orders"), lambda: promoting.promote(kit.promotion(zombie, 200))]
        )
        cut, promoted = results
        assert cut.accepted is (promoted is None), "one of the two has come too late"


class TestAPublishMeetsACutover:
    def test_a_publish_that_is_about_to_commit_is_waited_for_and_counts(
        self, postgres_scene, kit, until_blocked
    ):
        """The newcomer is through 50; what has just been published goes through 100."""
        scene = postgres_scene
        scene.start(a=50)
        scene.observe("a", "n")
        scene.bring("n", 50)
        cutting = scene.another()
        key = scene.store.scope("orders").domain.key(Bound.through(100))
        with scene.connection() as publish:
            publish.execute(sa.text("UPDATE gapless_scope SET frontier = :k, cap = :k"), {"k": key})
            waiting = kit.in_background(lambda: cutting.cutover("orders"))
            until_blocked(publish.connection.dbapi_connection.info.backend_pid)
            publish.commit()
        result = waiting.result()
        assert (result.accepted, codes(result)) == (False, ["not_joined"])

    def test_a_publish_that_waits_for_a_cutover_publishes_nothing_and_the_next_one_does(
        self, postgres_scene, kit, until_blocked
    ):
        scene = postgres_scene
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals={"b": Bound.through(30)}, successors={"b": ()})
        scene.bring("b", 30)
        cutting, publishing = scene.another(), scene.another()
        session, started = pid(cutting), []

        def publish():
            started.append(kit.in_background(lambda: publishing.publish("orders", 1)))
            until_blocked(session)

        before_statement(cutting, "UPDATE gapless_chain", publish)
        assert cutting.cutover("orders").left == ["b"]
        assert started[0].result() is None, "what it waited for has opened another epoch"
        assert scene.frontier() == Bound.through(20)
        epoch = publishing.scope("orders").epoch
        assert publishing.publish("orders", epoch).frontier == Bound.through(100)


class TestALookAtTheListMeetsACutover:
    def test_a_cutover_waits_for_the_list_and_goes_by_it(self, postgres_scene, kit, until_blocked):
        """The end of b is being stated, and the newcomer m is being seen, while the cutover begins."""
        scene = postgres_scene
        scene.start(a=100, b=100)
        scene.observe("a", "b", "n")
        scene.bring("n", 100)
        observing, cutting = scene.another(), scene.another()
        session, started = pid(observing), []

        def cut():
            started.append(kit.in_background(lambda: cutting.cutover("orders")))
            until_blocked(session)

        before_statement(observing, "UPDATE gapless_chain", cut)
        ends = {"seals": {"b": Bound.through(100)}, "successors": {"b": ()}}
        observing.observe("orders", kit.assignment("a", "b", "n", "m", **ends))
        result = started[0].result()
        assert (result.entered, result.left, codes(result)) == (["n"], ["b"], ["not_joined"])

    def test_a_look_at_the_list_waits_for_the_cutover_and_brings_nobody_back(
        self, postgres_scene, kit, until_blocked
    ):
        scene = postgres_scene
        scene.start(a=100, b=100)
        ends = {"seals": {"b": Bound.through(100)}, "successors": {"b": ()}}
        scene.observe("a", "b", **ends)
        observing, cutting = scene.another(), scene.another()
        session, started = pid(cutting), []

        def observe():
            listed = kit.assignment("a", "b", **ends)
            started.append(kit.in_background(lambda: observing.observe("orders", listed)))
            until_blocked(session)

        before_statement(cutting, "UPDATE gapless_chain", observe)
        assert cutting.cutover("orders").left == ["b"]
        observed = started[0].result()
        assert (observed.epoch, [row.partition for row in observed.chains]) == (2, ["a"])


def test_of_many_cutovers_at_once_one_takes_the_step(scene, kit):
    scene.start(a=100, b=100)
    scene.observe("a", "b", "n", seals={"b": Bound.through(100)}, successors={"b": ()})
    scene.bring("n", 100)
    stores = [scene.another() for _ in range(5)]
    results = kit.at_once([lambda store=store: store.cutover("orders") for store in stores])
    assert [result.accepted for result in results].count(True) == 1
    assert [row.epoch for row in scene.epochs()] == [1, 2]


def test_a_chain_may_be_taken_while_it_leaves_and_is_closed_all_the_same(scene, kit):
    scene.start(a=100, b=100)
    scene.observe("a", "b", seals={"b": Bound.through(100)}, successors={"b": ()})
    chain = scene.live("b").chain
    stores = [scene.another() for _ in range(4)]
    work = [lambda store=store, n=n: store.take(chain, n + 2) for n, store in enumerate(stores[1:])]
    kit.at_once([lambda: stores[0].cutover("orders"), *work])
    row = scene.store.chain(chain)
    assert (row.state, row.is_live) == (ChainState.SEALED, False)
    assert scene.store.promote(kit.promotion(row, 200)) is None


def test_an_operators_seal_is_held_against_what_is_being_promoted(postgres_scene, kit, until_blocked):
    scene = postgres_scene
    scene.start(a=100, b=20)
    scene.observe("a")
    speaking = scene.another()
    key = scene.store.scope("orders").domain.key(Bound.through(40))
    with scene.connection() as promotion:
        promotion.execute(sa.text("UPDATE gapless_chain SET bound = :k WHERE partition = 'b'"), {"k": key})
        waiting = kit.in_background(
            lambda: _error_of(lambda: speaking.seal("orders", "b", Bound.through(30), "gone"))
        )
        until_blocked(promotion.connection.dbapi_connection.info.backend_pid)
        promotion.commit()
    assert "behind the bound" in str(waiting.result())
    assert scene.live("b").seal is None


def _error_of(work):
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - looked at by the test
        return error
