"""What an operator states: a partition's end, or that everything is to be read anew. Always with a reason, never certified."""

import pytest

from gapless.errors import InvalidPage, MembershipRefused, UnknownScope
from gapless.progress import Bound, ChainState, TextDomain

GONE = "decommissioned in March, ticket 41"


def missing(result):
    return [(blocker.code, blocker.partition) for blocker in result.missing]


@pytest.fixture
def vanished(scene):
    """a through 100, b through 20, published; b is no longer listed."""
    scene.start(a=100, b=20)
    scene.observe("a")
    return scene


class TestSeal:
    def test_a_partition_that_vanished_leaves_by_it_and_the_frontier_is_asserted_from_then_on(self, vanished):
        assert vanished.store.seal("orders", "b", Bound.through(20), GONE, "ann") == 1
        assert vanished.live("b").seal_basis == "operator"
        assert vanished.store.scope("orders").changing
        result = vanished.cutover()
        assert (result.accepted, result.left) == (True, ["b"])
        moved = vanished.publish(2)
        assert (moved.frontier, moved.basis) == (Bound.through(100), "asserted")
        vanished.bring("a", 200)
        assert vanished.publish(2).basis == "asserted", "for the rest of the lineage"
        left = vanished.epochs()[-1].proof["left"]
        assert [entry["by"] for entry in left.values()] == ["operator"]

    def test_it_is_kept_with_who_said_it_and_why(self, vanished):
        vanished.store.seal("orders", "b", Bound.before(21), GONE, "ann")
        (entry,) = vanished.contents()["journal"]
        assert {"seal", "b", GONE, "ann"} <= {value for value in entry if isinstance(value, str)}

    def test_it_needs_no_successors(self, vanished):
        """An operator who knew them would not have to say it."""
        vanished.store.seal("orders", "b", Bound.through(20), GONE)
        assert missing(vanished.cutover(dry_run=True)) == []

    def test_above_the_bound_it_holds_until_it_is_drained(self, vanished):
        vanished.store.seal("orders", "b", Bound.through(30), GONE)
        assert missing(vanished.cutover()) == [("unsealed_member", "b")]
        vanished.bring("b", 30)
        assert vanished.cutover().left == ["b"]

    def test_a_candidate_that_vanished_leaves_by_it_too(self, scene):
        scene.start(a=100)
        scene.observe("a", "n")
        scene.bring("n", 40)
        scene.observe("a")
        scene.store.seal("orders", "n", Bound.through(40), GONE)
        result = scene.cutover()
        assert (result.entered, result.left) == (["n"], ["n"])
        scene.bring("a", 200)
        assert scene.publish(2).basis == "asserted"

    def test_it_is_stated_of_every_chain_of_the_partition(self, scene):
        scene.start("r1", a=100, b=20)
        scene.observe("a", "b", generation="r2")
        scene.bring("b", 10, "r2")
        assert scene.store.seal("orders", "b", Bound.through(20), GONE) == 2

    def test_it_may_be_corrected_upwards_and_downwards_while_nothing_came_of_it(self, vanished):
        vanished.store.seal("orders", "b", Bound.through(50), GONE)
        vanished.store.seal("orders", "b", Bound.through(20), "a slip: 20, not 50")
        assert vanished.cutover().left == ["b"]

    @pytest.mark.parametrize("reason", ["", "   ", "\n"])
    def test_without_a_reason_it_is_refused(self, vanished, reason):
        before = vanished.contents()
        with pytest.raises(MembershipRefused, match="needs a reason"):
            vanished.store.seal("orders", "b", Bound.through(20), reason)
        assert vanished.contents() == before

    @pytest.mark.parametrize("at", [Bound.through(19), Bound.before(20)])
    def test_behind_the_bound_it_is_refused(self, vanished, at):
        before = vanished.contents()
        with pytest.raises(MembershipRefused, match="lies behind the bound of partition 'b'"):
            vanished.store.seal("orders", "b", at, GONE)
        assert vanished.contents() == before

    def test_of_nobody_it_is_refused_with_the_likely_name(self, vanished):
        before = vanished.contents()
        with pytest.raises(MembershipRefused, match="has no member or candidate 'bb'") as refused:
            vanished.store.seal("orders", "bb", Bound.through(20), GONE)
        assert "did you mean 'b'?" in str(refused.value)
        with pytest.raises(UnknownScope):
            vanished.store.seal("nobody", "b", Bound.through(20), GONE)
        assert vanished.contents() == before

    def test_who_has_left_cannot_be_sealed_again(self, vanished):
        vanished.store.seal("orders", "b", Bound.through(20), GONE)
        vanished.cutover()
        with pytest.raises(MembershipRefused, match="has no member or candidate 'b'"):
            vanished.store.seal("orders", "b", Bound.through(30), GONE)

    def test_where_the_source_has_stated_the_end_nobody_overrules_it(self, scene):
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals={"b": Bound.through(50)})
        before = scene.contents()
        with pytest.raises(MembershipRefused, match="the source itself has sealed partition 'b'"):
            scene.store.seal("orders", "b", Bound.through(20), GONE)
        assert scene.contents() == before

    @pytest.mark.parametrize("end", [25, 60])
    def test_it_gives_way_to_the_sources_own_word_whichever_is_lower(self, vanished, end):
        vanished.store.seal("orders", "b", Bound.through(30), GONE)
        vanished.observe("a", "b", seals={"b": Bound.through(end)}, successors={"b": ()})
        row = vanished.live("b")
        assert (row.seal, row.seal_basis) == (Bound.through(end), "source")
        vanished.bring("b", end)
        assert vanished.cutover().left == ["b"]
        assert vanished.publish(2).basis == "certified"

    def test_a_source_that_contradicts_what_it_certified_is_refused_also_below_an_operators_word(
        self, vanished
    ):
        vanished.store.seal("orders", "b", Bound.through(30), GONE)
        before = vanished.contents()
        with pytest.raises(InvalidPage, match="'b' is sealed through 10, behind what was read of it"):
            vanished.observe("a", "b", seals={"b": Bound.through(10)})
        assert vanished.contents() == before

    def test_the_lists_silence_does_not_take_it_back(self, vanished):
        vanished.store.seal("orders", "b", Bound.through(30), GONE)
        vanished.observe("a", "b")
        vanished.observe("a")
        assert (vanished.live("b").seal, vanished.live("b").seal_basis) == (Bound.through(30), "operator")


class TestRebuild:
    def test_a_new_lineage_begins_with_nothing_and_the_epoch_goes_on(self, scene):
        scene.start("r1", a=100)
        zombie = scene.live("a")
        scene.observe("a", "n", generation="r1")
        row = scene.store.rebuild("orders", "the vendor restated 2013", "ann")
        assert (row.lineage, row.epoch, row.frontier, row.capped, row.basis, row.changing) == (
            2,
            2,
            None,
            False,
            "certified",
            False,
        )
        assert scene.store.snapshot("orders").chains == []
        assert scene.publish(1) is None
        assert scene.publish(2) is None
        assert scene.store.chain(zombie.chain).state is ChainState.SUPERSEDED
        observed = scene.observe("a", generation="r1")
        assert (observed.epoch, observed.tasks[0].bound, observed.tasks[0].epoch_in) == (2, None, 2)

    def test_who_works_in_the_old_lineage_promotes_and_publishes_nothing_more(self, scene, kit):
        scene.start(a=100)
        zombie = scene.live("a")
        scene.store.rebuild("orders", "anew")
        assert scene.store.promote(kit.promotion(zombie, 200)) is None
        scene.observe("a")
        scene.bring("a", 30)
        assert scene.publish(1) is None
        assert scene.publish(2).frontier == Bound.through(30), "nothing of the old one is inherited"

    def test_the_old_lineages_files_stay_listed_under_it(self, scene):
        scene.start(a=100)
        old = [row.path for row in scene.store.promotions("orders")]
        scene.store.rebuild("orders", "anew")
        assert list(scene.store.promotions("orders")) == []
        assert [row.path for row in scene.store.promotions("orders", 1)] == old

    def test_the_old_frontier_is_kept_with_the_reason(self, scene):
        scene.start(a=100)
        scene.store.rebuild("orders", "the vendor restated 2013", "ann")
        (lineage,) = scene.store.snapshot("orders").superseded
        assert (lineage.lineage, lineage.epoch, lineage.frontier, lineage.basis, lineage.reason) == (
            1,
            1,
            Bound.through(100),
            "certified",
            "the vendor restated 2013",
        )

    def test_an_operators_word_ends_with_the_lineage_it_was_given_in(self, vanished):
        vanished.store.seal("orders", "b", Bound.through(20), GONE)
        vanished.cutover()
        vanished.publish(2)
        vanished.store.rebuild("orders", "anew")
        vanished.observe("a")
        vanished.bring("a", 10)
        assert vanished.publish(3).basis == "certified"

    def test_an_identity_may_change_but_its_domain_may_not(self, scene, kit):
        scene.start(a=100)
        before = scene.contents()
        with pytest.raises(MembershipRefused, match="the domain of scope 'orders' cannot change"):
            scene.store.rebuild("orders", "text now", identity=kit.identity(domain=TextDomain()))
        assert scene.contents() == before
        other = kit.identity(identity={"path": "/v2/orders"}, after=Bound.before(50))
        row = scene.store.rebuild("orders", "the API's second version", identity=other)
        assert (row.identity, row.after) == ({"path": "/v2/orders"}, Bound.before(50))
        scene.store.register_scope(other)

    @pytest.mark.parametrize("reason", ["", " \t"])
    def test_without_a_reason_it_is_refused(self, scene, reason):
        scene.start(a=100)
        before = scene.contents()
        with pytest.raises(MembershipRefused, match="needs a reason"):
            scene.store.rebuild("orders", reason)
        assert scene.contents() == before

    def test_there_has_to_be_something_to_rebuild(self, scene):
        before = scene.contents()
        with pytest.raises(MembershipRefused, match="lineage 1 of scope 'orders' has read nothing yet"):
            scene.store.rebuild("orders", "anew")
        assert scene.contents() == before
        scene.start(a=100)
        scene.store.rebuild("orders", "anew")
        with pytest.raises(MembershipRefused, match="lineage 2"):
            scene.store.rebuild("orders", "once more")

    def test_a_dry_run_says_the_same_and_writes_nothing(self, scene):
        scene.start(a=100)
        before = scene.contents()
        assert scene.store.rebuild("orders", "anew", dry_run=True).lineage == 1
        with pytest.raises(MembershipRefused, match="needs a reason"):
            scene.store.rebuild("orders", "", dry_run=True)
        assert scene.contents() == before


class TestWhatIsListedStill:
    def test_who_left_by_an_operators_word_is_no_newcomer_while_the_source_goes_on_naming_it(self, scene):
        """A source that lists a dead partition for ever: it was read, and is not to be read again."""
        scene.start(a=100, b=20)
        scene.store.seal("orders", "b", Bound.through(20), GONE)
        assert scene.cutover().left == ["b"]
        for names in (("a", "b"), ("a", "b", "n"), ("a", "b", "n")):
            assert not [row for row in scene.observe(*names).chains if row.partition == "b"]
        scene.observe("a", "n")
        (again,) = [row for row in scene.observe("a", "b", "n").chains if row.partition == "b"]
        assert again.is_candidate, "it was gone, and came back: an id used again"

    def test_a_partition_that_the_source_has_sealed_leaves_by_an_operators_word_without_its_successors(
        self, scene
    ):
        """The source names somebody who carries on and never lists it: nothing else would ever release the frontier."""
        scene.start(a=100, b=20)
        scene.observe("a", "b", seals={"b": Bound.through(20)}, successors={"b": ("never-seen",)})
        assert missing(scene.cutover(dry_run=True)) == [("missing_successor", "b")]
        scene.store.seal("orders", "b", Bound.through(20), GONE)
        scene.observe("a", "b", seals={"b": Bound.through(20)}, successors={"b": ("never-seen",)})
        assert scene.cutover().left == ["b"]
        assert scene.publish(2).basis == "asserted"
