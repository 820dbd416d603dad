"""Everything at once: runs that take from each other and promote, publishers, lists that grow, and cutovers.

What the interleaving is, nobody decides; what must hold in every one of them is checked at every instant a reader may look, and
over what is stored in the end.
"""

import random
import threading
from collections import defaultdict

import pytest
import sqlalchemy as sa

from gapless.progress import NO_CAP, Bound

ROUNDS = 40
WORKERS = 3


class Race:
    """The actors. Each has a store of its own and does a bounded number of things, or goes on until the workers are done."""

    def __init__(self, scene, kit):
        self.scene = scene
        self.kit = kit
        self.workers_left = WORKERS
        self.lock = threading.Lock()
        self.looks = 0
        self.moves = []
        self.wins = defaultdict(int)

    def worker(self, number):
        """A run that takes chains, also from others, and promotes until it loses them; now and then it begins anew."""
        try:
            self._work(number, random.Random(number))
        finally:
            with self.lock:
                self.workers_left -= 1

    def _work(self, number, chance):
        with self.scene.another() as store:
            run = store.begin_run("orders", f"worker {number}", "test")
            for turn in range(ROUNDS):
                if turn % 15 == 14:
                    run = store.begin_run("orders", f"worker {number}, {turn}", "test")
                row = store.take(chance.choice(store.snapshot("orders").chains).chain, run)
                for _ in range(3):
                    if row is None:
                        break
                    high = 0 if row.bound is None else row.bound.position
                    row = store.promote(
                        self.kit.promotion(row, high + chance.randint(0, 10), path=f"/{number}/{turn}")
                    )
                    with self.lock:
                        self.wins[number] += row is not None

    @property
    def over(self):
        return self.workers_left == 0

    def publisher(self):
        with self.scene.another() as store:
            while not self.over:
                moved = store.publish("orders", store.scope("orders").epoch)
                if moved is not None:
                    with self.lock:
                        self.moves.append(moved.frontier)

    def observer(self):
        """The list grows; it is certified or not."""
        with self.scene.another() as store:
            for turn in range(8):
                names = [f"p{number}" for number in range(3 + turn)]
                certified = Bound.before(15 * turn) if turn % 3 == 0 else None
                store.observe("orders", self.kit.assignment(*names, list_bound=certified))
                while not self.over and any(row.epoch_in is None for row in store.snapshot("orders").chains):
                    self.cut_over()

    def cut_over(self):
        """Let the candidates in that are complete through the frontier, under the scope's lock."""
        with self.scene.connection() as connection:
            if not self.scene.sqlite:
                connection.execute(sa.text("SELECT 1 FROM gapless_scope FOR UPDATE"))
            behind = connection.execute(
                sa.text(
                    "SELECT count(*) FROM gapless_chain WHERE epoch_in IS NULL"
                    " AND bound < (SELECT frontier FROM gapless_scope)"
                )
            ).scalar()
            if not behind:
                connection.execute(
                    sa.text(
                        "UPDATE gapless_chain SET epoch_in = (SELECT epoch + 1 FROM gapless_scope)"
                        " WHERE epoch_in IS NULL AND epoch_out IS NULL"
                    )
                )
                connection.execute(
                    sa.text("UPDATE gapless_scope SET epoch = epoch + 1, cap = :cap"), {"cap": NO_CAP}
                )
            connection.commit()

    def checker(self):
        """What a reader may see at any instant."""
        last = (0, None)
        with self.scene.another(readonly=True) as store:
            while not self.over:
                seen = store.snapshot("orders")
                frontier = seen.scope.frontier
                if last[1] is not None:
                    assert frontier is not None
                    assert frontier >= last[1], "the frontier went back"
                assert seen.scope.epoch >= last[0], "the epoch went back"
                for row in seen.chains:
                    if frontier is not None and row.epoch_in is not None:
                        assert row.bound is not None
                        assert row.bound >= frontier, f"the frontier is above member {row.partition}"
                if frontier is not None and seen.scope.capped:
                    assert seen.scope.cap >= frontier
                last = (seen.scope.epoch, frontier)
                self.looks += 1


@pytest.fixture
def race(scene, kit):
    scene.observe("p0", "p1", "p2")
    return Race(scene, kit)


def test_no_invariant_breaks_in_any_interleaving(race, scene, kit):
    workers = [lambda number=number: race.worker(number) for number in range(WORKERS)]
    kit.at_once([*workers, race.publisher, race.publisher, race.observer, race.checker])
    assert race.looks > 0
    assert sum(race.wins.values()) > 0
    assert len(race.moves) == len(set(map(repr, race.moves))), "two publishers claim the same move"

    by_chain = defaultdict(list)
    for row in scene.store.promotions("orders", every=True):
        by_chain[row.chain].append(row)
    assert sum(map(len, by_chain.values())) == sum(race.wins.values()), (
        "every win is one promotion, every loss none"
    )
    for chain, promotions in by_chain.items():
        end = scene.store.chain(chain)
        assert [row.sequence for row in promotions] == list(range(end.sequence)), (
            "no page twice, none missing"
        )
        tokens = [row.token_in for row in promotions] + [end.page_token]
        assert tokens == [None, *(row.token_out for row in promotions)], "pages link by their tokens"
        fences = [row.fencing_token for row in promotions]
        assert fences == sorted(fences), "a zombie promoted after its successor"
        assert end.bound == max(row.bound for row in promotions)
        assert end.events == 10 * len(promotions)
    scope = scene.store.scope("orders")
    history = scene.contents()["frontier_history"]
    published = [row[4] for row in sorted(history)]
    assert published == sorted(set(published)), "every publish moved the frontier up"
    assert bytes(published[-1]) == scope.domain.key(scope.frontier)
