"""Any history of a log against a naive model: rows in a dictionary, ranges in a list."""

import tempfile
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)
from message_tables import TERMINAL, create_table, open_log
from sqlalchemy.pool import NullPool

from gapless.delivery import CoveredRange
from gapless.errors import CoverageMoved

STATUSES = st.sampled_from(["pending", "paused", None, "delivered", "failed"])
SHARDS = st.sampled_from(["a", "b"])


class LogMachine(RuleBasedStateMachine):
    """Two workers over one SQLite file, each with its own log. One that is killed forgets its range."""

    ranges = Bundle("ranges")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.engine = sa.create_engine(f"sqlite:///{Path(self.folder.name) / 'log.db'}", poolclass=NullPool)
        create_table(self.engine)
        self.logs = [open_log(self.engine, "sqlite") for _ in range(2)]
        self.rows: dict[int, tuple[str, Any]] = {}
        self.next_id = 1
        self.coverage = {"a": 0, "b": 0}
        self.claimed: dict[str, CoveredRange] = {}
        self.seen: dict[str, set[tuple[int, int]]] = {"a": set(), "b": set()}
        self.behind: set[int] = set()

    @initialize()
    def install(self) -> None:
        self.logs[0].install()

    def teardown(self) -> None:
        self.engine.dispose()
        self.folder.cleanup()

    # the user's side

    @rule(shard=SHARDS, statuses=st.lists(STATUSES, min_size=1, max_size=4))
    def insert(self, shard: str, statuses: list[Any]) -> None:
        with self.engine.begin() as connection:
            for status in statuses:
                connection.execute(
                    sa.text("INSERT INTO conversations (channel_key, status) VALUES (:shard, :status)"),
                    {"shard": shard, "status": status},
                )
                self.rows[self.next_id] = (shard, status)
                self.next_id += 1

    @rule(shard=SHARDS, count=st.integers(1, 3))
    def insert_and_roll_back(self, shard: str, count: int) -> None:
        with self.engine.connect() as connection:
            for _ in range(count):
                connection.execute(
                    sa.text("INSERT INTO conversations (channel_key, status) VALUES (:shard, 'delivered')"),
                    {"shard": shard},
                )
            connection.rollback()

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), status=STATUSES)
    def change(self, data: st.DataObject, status: Any) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.rows)))
        shard, _ = self.rows[id_]
        with self.engine.begin() as connection:
            connection.execute(
                sa.text("UPDATE conversations SET status = :status WHERE id = :id"),
                {"status": status, "id": id_},
            )
        self.rows[id_] = (shard, status)

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Of rows that no range has yet: what is deleted inside one is a violation, and tested by itself."""
        free = [id_ for id_, (shard, _) in self.rows.items() if id_ > self.taken(shard)]
        if free:
            id_ = data.draw(st.sampled_from(sorted(free)))
            with self.engine.begin() as connection:
                connection.execute(sa.text("DELETE FROM conversations WHERE id = :id"), {"id": id_})
            del self.rows[id_]

    # the worker's side

    @rule(target=ranges, worker=st.integers(0, 1), shard=SHARDS, at_least=st.integers(1, 4))
    def claim(self, worker: int, shard: str, at_least: int) -> Any:
        found = self.logs[worker].claim(shard, at_least=at_least)
        if shard in self.claimed:
            assert found == self.claimed[shard], "a claimed range comes back as it was"
        else:
            through = self.frontier(shard)
            count = sum(1 for id_ in self.ids(shard) if self.coverage[shard] < id_ <= through)
            expected = CoveredRange(shard, self.coverage[shard], through, count)
            assert found == (expected if count >= at_least else None)
        if found is None:
            return multiple()
        self.claimed[shard] = found
        self.seen[shard].add((found.after, found.through))
        return found

    @rule(worker=st.integers(0, 1), covered=ranges)
    def cover(self, worker: int, covered: CoveredRange) -> None:
        shard = covered.shard
        assert isinstance(shard, str)
        right = self.coverage[shard] == covered.after
        try:
            found = self.logs[worker].cover(covered)
        except CoverageMoved:
            assert not right
            return
        assert right
        assert found == ()
        self.coverage[shard] = covered.through
        self.claimed.pop(shard, None)

    @rule(covered=consumes(ranges))
    def be_killed(self, covered: CoveredRange) -> None:
        """Whoever held the range is gone; it stays claimed."""

    @rule(worker=st.integers(0, 1))
    def audit(self, worker: int) -> None:
        still_open = {
            id_
            for id_, (shard, status) in self.rows.items()
            if status not in TERMINAL and id_ <= self.coverage[shard]
        }
        found = self.logs[worker].audit()
        assert {violation.id for violation in found} == still_open - self.behind
        self.behind |= still_open

    # what has to hold always

    @invariant()
    def frontiers_are_the_models(self) -> None:
        for shard in ("a", "b"):
            found = self.logs[0].frontier(shard)
            assert (found.coverage, found.through) == (self.coverage[shard], self.frontier(shard))
            first = self.first_open(shard)
            assert (found.blocker.id if found.blocker else None) == first

    @invariant()
    def ranges_neither_overlap_nor_leave_a_gap(self) -> None:
        for seen in self.seen.values():
            end = 0
            for after, through in sorted(seen):
                assert after == end
                end = through

    def ids(self, shard: str) -> list[int]:
        return sorted(id_ for id_, (own, _) in self.rows.items() if own == shard)

    def first_open(self, shard: str) -> int | None:
        above = (id_ for id_ in self.ids(shard) if id_ > self.coverage[shard])
        return next((id_ for id_ in above if self.rows[id_][1] not in TERMINAL), None)

    def frontier(self, shard: str) -> int:
        first = self.first_open(shard)
        above = [id_ for id_ in self.ids(shard) if id_ > self.coverage[shard]]
        return first - 1 if first is not None else max(above, default=self.coverage[shard])

    def taken(self, shard: str) -> int:
        claimed = self.claimed.get(shard)
        return claimed.through if claimed is not None else self.coverage[shard]


LogMachine.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestAnyHistory = LogMachine.TestCase
