"""Partitions that split, merge and change their names: parents leave, children come, and nobody inherits a bound."""

from gapless.progress import Bound


def missing(result):
    return [(blocker.code, blocker.partition) for blocker in result.missing]


def seals(**ends):
    return {name: Bound.through(position) for name, position in ends.items()}


class TestSplitMergeRename:
    def test_a_split_is_one_step_once_the_parent_is_drained_and_the_children_are_through(self, scene):
        scene.start(s=90)
        scene.observe("s", "c1", "c2", parents={"c1": ("s",), "c2": ("s",)})
        scene.bring("c1", 95)
        scene.bring("c2", 95)
        result = scene.cutover()
        assert missing(result) == [("not_joined", "c1"), ("not_joined", "c2")]
        assert result.missing[0].detail == "its parent s has not ended"
        listed = {"seals": seals(s=100), "successors": {"s": ("c1", "c2")}}
        scene.observe("s", "c1", "c2", parents={"c1": ("s",), "c2": ("s",)}, **listed)
        scene.bring("s", 100)
        result = scene.cutover()
        assert (result.entered, result.left, result.missing) == (["c1", "c2"], ["s"], ())
        assert scene.publish(2).frontier == Bound.through(95)

    def test_the_parent_holds_until_its_last_child_is_there(self, scene):
        scene.start(s=100)
        scene.observe("s", "c1", "c2", seals=seals(s=100), successors={"s": ("c1", "c2")})
        scene.bring("c1", 100)
        result = scene.cutover()
        assert (result.entered, result.left) == (["c1"], [])
        assert missing(result) == [("missing_successor", "s"), ("not_joined", "c2")]
        scene.bring("c2", 100)
        result = scene.cutover()
        assert (result.entered, result.left, result.missing) == (["c2"], ["s"], ())

    def test_children_enter_before_the_parents_end_is_reached(self, scene):
        """A backfill that stops at 100 does not have to read to the parent's end at 1000 for its children's sake."""
        scene.start(s=90)
        facts = {
            "seals": seals(s=1000),
            "successors": {"s": ("c",)},
            "parents": {"c": ("s",)},
        }
        scene.observe("s", "c", **facts)
        scene.bring("c", 100)
        result = scene.cutover()
        assert (result.entered, result.left, missing(result)) == (["c"], [], [("unsealed_member", "s")])
        scene.bring("s", 100)
        assert scene.publish(2).frontier == Bound.through(100)

    def test_a_merge_waits_for_both_parents(self, scene):
        scene.start(s=100, t=110)
        facts = {"parents": {"c": ("s", "t")}, "successors": {"s": ("c",), "t": ("c",)}}
        scene.observe("s", "t", "c", seals=seals(s=100), **facts)
        scene.bring("c", 100)
        assert missing(scene.cutover()) == [("missing_successor", "s"), ("not_joined", "c")]
        scene.observe("s", "t", "c", seals=seals(s=100, t=120), **facts)
        result = scene.cutover()
        assert (result.entered, result.left, missing(result)) == (["c"], ["s"], [("unsealed_member", "t")])
        scene.bring("t", 120)
        assert scene.cutover().left == ["t"]

    def test_a_merge_into_a_member_lets_the_other_go_at_once(self, scene):
        scene.start(s=100, t=110)
        scene.observe("s", "t", seals=seals(s=100), successors={"s": ("t",)})
        assert scene.cutover().left == ["s"]

    def test_successors_are_accounted_for_at_any_depth(self, scene):
        """A carries on from S and ends before it ever counted; B carries on from A."""
        scene.start(s=10)
        facts = {"seals": seals(s=10, a=10), "successors": {"s": ("a",), "a": ("b",)}}
        scene.observe("s", "a", "b", **facts)
        result = scene.cutover()
        assert (result.accepted, missing(result)) == (
            False,
            [("unsealed_member", "a"), ("missing_successor", "s"), ("not_joined", "b")],
        )
        scene.bring("a", 10)
        scene.bring("b", 10)
        result = scene.cutover()
        assert (result.entered, result.left, result.missing) == (["a", "b"], ["a", "s"], ())
        assert scene.members_now() == ["b"]

    def test_who_has_left_in_order_counts_as_accounted_for(self, scene):
        scene.start(s=10, a=10, z=10)
        scene.observe("s", "a", "z", seals=seals(a=10), successors={"a": ()})
        assert scene.cutover().left == ["a"]
        scene.observe("s", "z", seals=seals(s=10), successors={"s": ("a",)})
        assert scene.cutover().left == ["s"]

    def test_a_split_of_a_candidate_enters_and_leaves_it_in_the_same_step(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", 40)
        facts = {"seals": seals(n=40), "successors": {"n": ("x", "y")}}
        scene.observe("a", "n", "x", "y", **facts)
        scene.bring("x", 100)
        result = scene.cutover()
        assert (result.entered, missing(result)) == (["x"], [("missing_successor", "n"), ("not_joined", "y")])
        scene.bring("y", 100)
        result = scene.cutover()
        assert (result.entered, result.left) == (["n", "y"], ["n"])
        assert scene.members_now() == ["a", "x", "y"]
        assert {row.partition for row in scene.store.promotions("orders")} == {"a", "n", "x", "y"}

    def test_a_rename_is_a_leaver_without_an_end_and_a_newcomer(self, scene):
        scene.start(a=100, b=100)
        scene.observe("a", "b2")
        scene.bring("b2", 100)
        result = scene.cutover()
        assert (result.entered, missing(result)) == (["b2"], [("unsealed_member", "b")])
        scene.bring("a", 200)
        scene.bring("b2", 200)
        assert scene.publish(2) is None, "b holds"

    def test_an_id_used_again_is_read_from_its_start_and_inherits_nothing(self, scene):
        scene.start(a=100, b=50)
        scene.observe("a", "b", seals=seals(b=50), successors={"b": ()})
        old = scene.live("b")
        scene.cutover()
        scene.publish(2)
        observed = scene.observe("a", "b")
        (new,) = [row for row in observed.tasks if row.partition == "b"]
        assert (new.chain != old.chain, new.bound, new.page_token, new.epoch_in) == (True, None, None, None)
        assert missing(scene.cutover()) == [("not_joined", "b")]
        scene.bring("b", 100)
        assert scene.cutover().entered == ["b"]

    def test_two_changes_at_once_are_one_step(self, scene):
        scene.start(a=100, b=100, s=100)
        facts = {
            "seals": seals(b=100, s=100),
            "successors": {"b": (), "s": ("c1", "c2")},
            "parents": {"c1": ("s",), "c2": ("s",)},
        }
        scene.observe("a", "b", "s", "c1", "c2", "n", **facts)
        for name in ("c1", "c2", "n"):
            scene.bring(name, 100)
        result = scene.cutover()
        assert (result.entered, result.left) == (["c1", "c2", "n"], ["b", "s"])
        assert scene.members_now() == ["a", "c1", "c2", "n"]

    def test_a_second_change_before_the_first_is_proved_stops_neither(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", 50)
        scene.observe("a", "n", "m", seals=seals(a=100), successors={"a": ("m",)})
        scene.bring("m", 100)
        result = scene.cutover()
        assert (result.entered, result.left, missing(result)) == (["m"], ["a"], [("not_joined", "n")])
        scene.bring("n", 100)
        assert scene.cutover().entered == ["n"]
