"""`gapless.Epochs` and what the reader tells of membership, over real stores."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

import gapless
from gapless.epochs import Epochs
from gapless.errors import (
    ForeignLineage,
    MembershipRefused,
    NotReached,
    PositionError,
    StoreError,
    UnknownScope,
)
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, IntegerDomain
from gapless.reading import ScopeProgress
from gapless.store import Store, open_store
from gapless.store.records import ChainRow, MembershipPolicy, Promotion, ScopeIdentity, Violation

IDENTITY = ScopeIdentity("orders", IntegerDomain(), {"path": "/orders"}, Bound.before(0))
AGAIN = MembershipPolicy()


class Scene:
    """Scope `orders`: members a and b, published through 100."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store: Store = open_store(url, create=True)
        self.store.register_scope(IDENTITY)
        self.number = self.store.begin_run("orders", "run-1", "local")
        self.observe("a", "b")
        self.promote("a", 120)
        self.promote("b", 100)
        self.publish()

    def observe(
        self, *names: str, generation: str = "", policy: MembershipPolicy = AGAIN, **facts: Any
    ) -> None:
        listed = [
            ListedPartition(
                Partition(name, {}),
                facts.get("seals", {}).get(name),
                facts.get("successors", {}).get(name),
                facts.get("parents", {}).get(name),
            )
            for name in names
        ]
        self.store.observe("orders", Assignment(listed, generation), policy=policy)

    def row(self, partition: str, generation: str | None = None) -> ChainRow:
        rows = [row for row in self.store.snapshot("orders").chains if row.partition == partition]
        return next(row for row in rows if generation in (None, row.generation))

    def promote(self, partition: str, position: int, generation: str | None = None) -> None:
        row = self.store.take(self.row(partition, generation).chain, self.number)
        assert row is not None
        bound = Bound.through(position)
        name = f"/out/{row.chain}-{row.sequence}.parquet"
        plain = Promotion(
            row, 1, row.page_token, f"t{row.sequence}", bound, "certified", bound, False, 10, name, "d", 10
        )
        assert self.store.promote(plain) is not None

    def publish(self) -> None:
        self.store.publish("orders", self.store.scope("orders").epoch)

    def violate(self, partition: str) -> None:
        found = Violation(partition, "event_behind_bound", 1, "it came late", "e1", 5, Bound.through(10))
        self.store.record_violations(self.row(partition), [found])


@pytest.fixture
def scene(store_url: str) -> Iterator[Scene]:
    made = Scene(store_url)
    with closing(made.store):
        yield made


@pytest.fixture
def epochs(scene: Scene) -> Iterator[Epochs]:
    with gapless.Epochs(scene.url, "orders") as epochs:
        yield epochs


@pytest.fixture
def orders(scene: Scene) -> Iterator[ScopeProgress]:
    with gapless.Progress(scene.url) as progress:
        yield progress.scope("orders")


def missing(document: Mapping[str, Any]) -> dict[str | None, str]:
    return {one["partition"]: one["code"] for one in document["missing"]}


SEALED = {"seals": {"b": Bound.through(100)}, "successors": {"b": ("c", "d")}}


@pytest.mark.parametrize(
    ("names", "facts"),
    [
        (("a", "b"), {}),
        (("a", "b", "c"), {}),
        (("a",), {}),
        ((), {}),
        (("a", "b", "c"), {"parents": {"c": ("b",)}}),
        (("a", "b"), SEALED),
        (("a", "b", "c", "d"), {**SEALED, "parents": {"c": ("b",), "d": ("b",)}}),
        (("a", "b"), {"seals": {"b": Bound.through(100)}, "successors": {"b": ()}}),
        (("a", "b"), {"generation": "r2"}),
        (("a",), {"generation": "r2"}),
        (("a", "b"), {"generation": "r2", "policy": MembershipPolicy(moves="promised")}),
        (("a", "b"), {"generation": "r2", "policy": MembershipPolicy(handoff=True)}),
        (("a", "c"), {"generation": "r2", "policy": MembershipPolicy(reading_again=False)}),
    ],
)
def test_what_is_shown_as_missing_is_what_a_cutover_is_refused_for(
    names: tuple[str, ...], facts: dict[str, Any], scene: Scene, epochs: Epochs
) -> None:
    scene.observe(*names, **facts)
    shown = epochs.show()
    result = epochs.cutover(dry_run=True)
    assert [(one["partition"] or "", one["code"], one["detail"]) for one in shown["missing"]] == [
        (one.partition, one.code, one.detail) for one in result.missing
    ]
    assert shown["ready"] == result.accepted
    assert epochs.cutover() == result
    if not result.accepted:
        after = epochs.show()
        # The frontier tells its age.
        assert after == {**shown, "frontier": after["frontier"]}


def test_a_split_is_shown_until_its_children_are_complete(scene: Scene, epochs: Epochs) -> None:
    scene.observe("a", "b", "c", "d", **SEALED, parents={"c": ("b",), "d": ("b",)})
    document = epochs.show()
    assert missing(document) == {"b": "missing_successor", "c": "not_joined", "d": "not_joined"}
    sealed = next(row for row in document["members"] if row["partition"] == "b")
    assert (sealed["sealed"], sealed["sealed_by"], sealed["successors"]) == (
        {"position": "100", "inclusive": True},
        "source",
        ["c", "d"],
    )
    scene.promote("c", 100)
    assert missing(epochs.show()) == {"b": "missing_successor", "d": "not_joined"}
    scene.promote("d", 110)
    assert (epochs.show()["ready"], epochs.show()["missing"]) == (True, [])
    result = epochs.cutover()
    assert (result.entered, result.left) == (["c", "d"], ["b"])
    after = epochs.show()
    assert (after["membership_epoch"], [row["partition"] for row in after["members"]]) == (2, ["c", "d", "a"])
    # The list names b still: it has left with this very end.
    assert (after["missing"], after["ready"]) == ([], False)


def test_a_successor_that_has_left_itself_is_accounted_for(scene: Scene, epochs: Epochs) -> None:
    scene.observe("a", "b", "c")
    scene.promote("c", 100)
    assert epochs.cutover().entered == ["c"]
    ends = {"seals": {"c": Bound.through(100)}, "successors": {"c": ()}}
    scene.observe("a", "b", "c", **ends)
    assert epochs.cutover().left == ["c"]
    ends = {"seals": {"b": Bound.through(100), **ends["seals"]}, "successors": {"b": ("c",), "c": ()}}
    scene.observe("a", "b", "c", **ends)
    assert scene.store.snapshot("orders").departed == {"c"}
    assert (epochs.show()["missing"], epochs.show()["ready"]) == ([], True)
    assert epochs.cutover().left == ["b"]


def test_another_generation_is_shown_with_the_proof_the_job_offers(scene: Scene, epochs: Epochs) -> None:
    scene.observe("a", "b", generation="r2")
    document = epochs.show()
    assert document["routing_generation"] == ""
    assert document["latest_list"] == {"routing_generation": "r2", "complete": None}
    assert document["routing_proof"] == "reading_again"
    assert [(row["partition"], row["routing_generation"]) for row in document["candidates"]] == [
        ("a", "r2"),
        ("b", "r2"),
    ]
    scene.promote("a", 100, "r2")
    scene.promote("b", 130, "r2")
    result = epochs.cutover()
    assert (result.accepted, result.generation, result.replaced) == (True, "r2", ["a", "b"])
    assert epochs.show()["routing_generation"] == "r2"


def test_events_in_transit_are_a_chain_of_their_own(
    scene: Scene, epochs: Epochs, orders: ScopeProgress
) -> None:
    scene.observe("a", "b", generation="r2", policy=MembershipPolicy(handoff=True))
    document = epochs.show()
    assert document["in_transit"] == {"from": "", "to": "r2", "state": "not_started", "complete": None}
    assert (document["candidates"], document["routing_proof"]) == ([], "handoff")
    codes = {name: blocker.code for name, blocker in orders.blockers()}
    assert codes == {
        "a": "membership_changed",
        "b": "membership_changed",
        "in transit from  to r2": "handoff_unproven",
    }
    status = orders.status()
    assert (status["counts"]["members"], status["withheld"]["code"]) == (2, "handoff_unproven")


def test_a_seal_takes_canonical_text_or_a_bound(scene: Scene, epochs: Epochs) -> None:
    scene.observe("a")
    sealed = epochs.seal("b", "100", "switched off", "kim")
    assert (sealed.at, sealed.operator) == (Bound.through(100), "kim")
    assert epochs.seal("b", Bound.through(100), "switched off", dry_run=True).at == sealed.at
    (row,) = [row for row in epochs.show()["members"] if row["partition"] == "b"]
    assert (row["sealed_by"], row["listed"]) == ("operator", False)
    assert epochs.cutover().left == ["b"]
    assert scene.store.scope("orders").basis == "asserted"


def test_what_is_refused_changes_nothing(scene: Scene, epochs: Epochs) -> None:
    before = scene.store.snapshot("orders")
    with pytest.raises(PositionError):
        epochs.seal("b", "soon", "switched off")
    for refused in (
        lambda: epochs.seal("b", "100", " "),
        lambda: epochs.seal("x", "100", "switched off"),
        lambda: epochs.seal("b", "99", "switched off"),
        lambda: epochs.rebuild(""),
        lambda: epochs.rebuild("other", identity=replace(IDENTITY, scope="other")),
    ):
        with pytest.raises(MembershipRefused) as error:
            refused()
        assert error.value.what
    after = scene.store.snapshot("orders")
    assert (after.scope, after.chains) == (before.scope, before.chains)


def test_for_reading_only_nothing_but_dry_runs_work(scene: Scene) -> None:
    scene.observe("a", "b", "c")
    scene.promote("c", 100)
    with Epochs(scene.url, "orders", readonly=True) as epochs:
        assert epochs.show()["ready"]
        assert epochs.cutover(dry_run=True).accepted
        assert epochs.rebuild("again", dry_run=True).lineage == 2
        assert epochs.seal("b", "100", "switched off", dry_run=True).partition == "b"
        with pytest.raises(StoreError):
            epochs.cutover()
    assert scene.store.scope("orders").epoch == 1


def test_an_unknown_scope_is_refused(scene: Scene) -> None:
    with pytest.raises(UnknownScope):
        Epochs(scene.url, "order")


def test_a_rebuild_leaves_the_old_claim_and_its_files_readable(
    scene: Scene, epochs: Epochs, orders: ScopeProgress
) -> None:
    claim, files = orders.frontier, orders.files(through="100")
    assert claim is not None
    rebuilt = epochs.rebuild("ids were wrong", "kim", identity=replace(IDENTITY, identity={"path": "/v2"}))
    assert (rebuilt.lineage, rebuilt.superseded.frontier) == (2, Bound.through(100))
    assert [str(one) for one in rebuilt.differences] == ['path is "/orders" in the store, "/v2" here']

    assert (orders.frontier, orders.lineage, orders.files()) == (None, 2, [])
    assert orders.explain().withheld is not None
    assert orders.explain().withheld.code == "not_started"
    (old,) = orders.superseded()
    assert old == replace(claim, published_at=None, superseded=True)
    assert orders.files("100", lineage=1) == files
    with pytest.raises(NotReached, match="not complete through 101"):
        orders.files("101", lineage=1)
    with pytest.raises(NotReached):
        orders.files("100")
    with pytest.raises(ForeignLineage):
        orders.files(lineage=3)

    scene.observe("a")
    scene.promote("a", 50)
    scene.publish()
    assert orders.frontier is not None
    assert (orders.frontier.position, orders.frontier.membership_epoch) == ("50", 2)
    assert [row["lineage"] for row in orders.status()["superseded"]] == [1]


def test_each_rebuild_keeps_what_it_ended(scene: Scene, epochs: Epochs) -> None:
    epochs.rebuild("once")
    scene.observe("a")
    epochs.rebuild("twice")
    ended = scene.store.snapshot("orders").superseded
    assert [(one.lineage, one.epoch, one.frontier, one.reason) for one in ended] == [
        (1, 1, Bound.through(100), "once"),
        (2, 2, None, "twice"),
    ]


def test_a_violation_marks_the_claim_of_its_own_lineage(
    scene: Scene, epochs: Epochs, orders: ScopeProgress
) -> None:
    assert orders.frontier is not None
    assert not orders.frontier.violated
    scene.violate("a")
    assert orders.frontier.violated
    assert orders.snapshot().violations == 1

    epochs.rebuild("it broke its promise")
    scene.observe("a")
    scene.promote("a", 50)
    scene.publish()
    assert not orders.frontier.violated
    assert orders.snapshot().violations == 0
    assert [claim.violated for claim in orders.superseded()] == [True]
    assert [found.lineage for found in orders.violations()] == [1]
