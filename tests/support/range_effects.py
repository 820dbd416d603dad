"""Effects that remember the ranges they saw, and the judgement over them: no overlap, no gap, each row in exactly one."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

Range = tuple[object, int, int]


class RememberedRanges:
    """An effect that is idempotent by its range, in a SQLite file of its own. `step` is called around its commit."""

    def __init__(self, file: Path, step: Callable[[str], None] = lambda name: None) -> None:
        self.file = file
        self.step = step
        with sqlite3.connect(file, timeout=30) as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS seen (shard, after, through, rows, times,"
                " PRIMARY KEY (shard, after, through))"
            )
        connection.close()

    def __call__(self, shard: object, after: int, through: int, rows: int) -> None:
        self.step("before the effect")
        with sqlite3.connect(self.file, timeout=30) as connection:
            connection.execute(
                "INSERT INTO seen VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1",
                (shard, after, through, rows),
            )
        connection.close()
        self.step("after the effect")

    def ranges(self) -> list[tuple[object, int, int, int, int]]:
        """(shard, after, through, rows, how often) by shard and end."""
        with sqlite3.connect(self.file, timeout=30) as connection:
            found = connection.execute("SELECT * FROM seen ORDER BY shard, after, through").fetchall()
        connection.close()
        return found


def judge(
    seen: Iterable[tuple[object, int, int, int, int]],
    ids: dict[object, list[int]],
    covered: dict[object, int],
) -> None:
    """`ids`: every terminal row's, by shard; `covered`: through which id each shard is covered."""
    by_shard: dict[object, list[tuple[int, int, int]]] = {}
    for shard, after, through, rows, _ in seen:
        by_shard.setdefault(shard, []).append((after, through, rows))
    for shard, ranges in by_shard.items():
        end = 0
        for after, through, rows in ranges:
            assert after == end, (
                f"{shard}: ({after}, {through}] does not begin where the one before ended, at {end}"
            )
            assert rows == sum(after < id_ <= through for id_ in ids[shard]), f"{shard}: ({after}, {through}]"
            end = through
        assert covered[shard] in (end, ranges[-1][0]), f"{shard}: covered through {covered[shard]}"
        times = Counter(id_ for id_ in ids[shard] for after, through, _ in ranges if after < id_ <= through)
        assert all(times[id_] == 1 for id_ in ids[shard] if id_ <= covered[shard]), f"{shard}: {times}"
