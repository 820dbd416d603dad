"""The D operations, over a real message log on a fresh database. It translates, and holds no rule of its own."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from gapless.delivery import CoveredRange, MessageLog, Settled
from gapless.errors import CoverageMoved
from gapless.progress import CoverCode, judge_cover

Step = Mapping[str, Any]
TERMINAL = ("done", "failed_final", "cancelled")


class GivenBarrier:
    """A barrier that knows what the case says."""

    incarnation_sql = "'case'"

    def __init__(self) -> None:
        self.id = 0

    def settled(self, connection: sa.Connection) -> Settled:
        return Settled(self.id, (), "case")


class DeliveryLog:
    """One case's message log."""

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(url)
        with self._engine.begin() as connection:
            connection.exec_driver_sql(
                "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, sh TEXT NOT NULL, st TEXT)"
            )
        self._barrier = GivenBarrier()
        self._log = MessageLog(
            self._engine,
            table="log",
            shard="sh",
            status="st",
            terminal=TERMINAL,
            ids="autoincrement",
            barrier=self._barrier,
        )
        self._log.install()
        self._log.shards()

    def close(self) -> None:
        self._engine.dispose()

    def table(self, step: Step) -> dict[str, Any]:
        """The frontier of each shard, and which ids stand open behind a coverage."""
        self._show(step)
        found: dict[str, Any] = {"safe": {shard: self._log.frontier(shard).through for shard in step["cov"]}}
        if "below" in step.get("expect", {}):
            found["below"] = [violation.id for violation in self._log.audit()]
        return found

    def table2(self, step: Step) -> dict[str, Any]:
        """Open writers as known at the first snapshot, rows as of the second one: a statement runs in one snapshot."""
        self._show(step["t1"])
        settled = self._barrier.id
        self._show(step["t2"])
        self._barrier.id = settled
        return {"safe": {shard: self._log.frontier(shard).through for shard in step["t2"]["cov"]}}

    def cover(self, step: Step) -> str:
        shard = step.get("sh", "A")
        if "start" in step:
            self._set_coverage({shard: step["start"]})
        after, through = step["frm"], step["to"]
        code = judge_cover(self._log.coverage(shard), None, after, through)
        # The case is about the swap: what it covers is settled.
        self._barrier.id = max(self._barrier.id, through)
        try:
            self._log.cover(CoveredRange(shard, after, through, 0))
        except CoverageMoved:
            assert code is not CoverCode.OK
            return code.value
        assert code is CoverCode.OK
        return code.value

    def _show(self, table: Step) -> None:
        self._set_coverage(table["cov"])
        with self._engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM log")
            for row in table["rows"]:
                connection.exec_driver_sql(
                    "INSERT INTO log (id, sh, st) VALUES (?, ?, ?)", (row["id"], row["sh"], row["st"])
                )
        open_ids = [row["id"] for row in (*table.get("inflight", ()), *table.get("reserved", ()))]
        ids = [row["id"] for row in table["rows"]]
        highest = table.get("sequence_last_value", max([*ids, *open_ids], default=0))
        self._barrier.id = (
            0 if table.get("barrier_known") is False else min([highest, *(i - 1 for i in open_ids)])
        )

    def _set_coverage(self, coverage: Mapping[str, int]) -> None:
        with self._engine.begin() as connection:
            for shard, through in coverage.items():
                connection.exec_driver_sql(
                    "INSERT INTO gapless_coverage_log (shard, through) VALUES (?, ?)"
                    " ON CONFLICT (shard) DO UPDATE SET through = excluded.through",
                    (shard, through),
                )
