"""How fast the store is: publishing over a million members, promoting, taking, observing a long list, opening.

    python benchmarks/bench_store.py [--members N] [--url URL ...]

Without a URL: SQLite in a temporary folder. Printed, not judged.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, IntegerDomain
from gapless.store import Store, open_store, schema, swaps
from gapless.store.records import Promotion, ScopeIdentity

REPEATS = 200


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--url", action="append", help="of an empty store; may be given several times")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for url in given.url or [f"sqlite:///{folder}/progress.db"]:
            measure(url, given.members)


def measure(url: str, members: int) -> None:
    print(url.split("?")[0])
    began = time.perf_counter()
    store = open_store(url, create=True)
    line("create the store", time.perf_counter() - began, "alembic's import is in it")
    with store:
        open_again(url)
        scope_row(store)
        observe(store)
        one_chain(store)
        crowd(store, members)


def open_again(url: str) -> None:
    def opened() -> None:
        open_store(url).close()

    line("open it", median(opened, 20))
    program = f"from gapless.store import open_store; open_store({url!r}).close()"
    line(
        "open it in a new process",
        median(lambda: subprocess.run([sys.executable, "-c", program], check=True), 3),
    )


def scope_row(store: Store) -> None:
    store.register_scope(ScopeIdentity("bench", IntegerDomain(), {"path": "/events"}))
    store.register_scope(ScopeIdentity("list", IntegerDomain(), {"path": "/events"}))
    line("read the scope", median(lambda: store.scope("bench"), REPEATS))


def observe(store: Store) -> None:
    for count in (10_000, 20_000):
        listed = Assignment([ListedPartition(Partition(f"p{n}", {"id": f"p{n}"})) for n in range(count)])
        line(
            f"observe a list of {count:,}, half of it new",
            median(lambda given=listed: store.observe("list", given), 1),
        )
    line("observe the same list again", median(lambda: store.observe("list", listed), 3))


def one_chain(store: Store) -> None:
    (task,) = store.observe("bench", Assignment([ListedPartition(Partition("p", {}))])).tasks
    line("take a chain", median(lambda: store.take(task.chain, 1), REPEATS))
    row = store.chain(task.chain)

    def promote() -> None:
        nonlocal row
        bound = Bound.through(row.sequence)
        run = Promotion(row, 1, row.page_token, "t", bound, "certified", bound, False, 1000, "/f", "d", 1000)
        promoted = store.promote(run)
        assert promoted is not None
        row = promoted

    line("promote a run", median(promote, REPEATS))

    moves: list[float] = []
    for _ in range(REPEATS):
        promote()
        began = time.perf_counter()
        assert store.publish("bench", 1) is not None
        moves.append(time.perf_counter() - began)
    line("publish, one member, moving", statistics.median(moves))


def crowd(store: Store, members: int) -> None:
    """A million members with distinct bounds; the lowest rises before each publish."""
    domain = IntegerDomain()
    store.register_scope(ScopeIdentity("crowd", domain, {"path": "/events"}))
    (first,) = store.observe("crowd", Assignment([ListedPartition(Partition("first", {}))])).tasks
    with fill(store) as connection:
        columns = [column for column in schema.chain.c if column.name not in ("chain", "partition", "bound")]
        template = connection.execute(
            sa.select(*columns).where(schema.chain.c.scope == "crowd", schema.chain.c.partition == "first")
        )
        plain = dict(template.mappings().one())
        for start in range(1, members, 20_000):
            rows = [
                {**plain, "partition": f"p{n}", "bound": domain.key(Bound.through(REPEATS * n))}
                for n in range(start, min(start + 20_000, members))
            ]
            connection.execute(sa.insert(schema.chain), rows)
    with store._database.bare() as connection:
        connection.exec_driver_sql("ANALYZE")
    lowest = store.take(first.chain, 1)
    moves, still = [], []
    for position in range(1, REPEATS):
        assert lowest is not None
        bound = Bound.through(position)
        run = Promotion(lowest, 1, lowest.page_token, "t", bound, "certified", bound, False, 1, None, None, 0)
        lowest = store.promote(run)
        began = time.perf_counter()
        moved = store.publish("crowd", 1)
        moves.append(time.perf_counter() - began)
        assert moved is not None
        began = time.perf_counter()
        store.publish("crowd", 1)
        still.append(time.perf_counter() - began)
    line(f"publish over {members:,} members, moving", statistics.median(moves), "commit to disk included")
    line(f"publish over {members:,} members, nothing to move", statistics.median(still))
    line("the statement alone", statement_alone(store), "in an open transaction")
    print("  plan: " + plan(store))


def statement_alone(store: Store) -> float:
    values = {"at_scope": "crowd", "at_epoch": 1, "new_published_at": store._clock.now()}

    def work(connection: sa.Connection) -> float:
        return median(lambda: connection.execute(swaps.PUBLISH, values).all(), REPEATS)

    return store._database.write(work)


def plan(store: Store) -> str:
    values = {"at_scope": "crowd", "at_epoch": 1, "new_published_at": store._clock.now()}
    lines: list[str] = []

    def explain(
        connection: sa.Connection, cursor: object, text: str, parameters: object, *rest: object
    ) -> None:
        own = connection.connection.cursor()
        own.execute(("EXPLAIN QUERY PLAN " if store._database.sqlite else "EXPLAIN ") + text, parameters)
        lines.extend(str(row[-1]).strip() for row in own.fetchall())
        own.close()

    with store._database.bare() as connection:
        sa.event.listen(connection, "before_cursor_execute", explain)
        connection.execute(swaps.PUBLISH, values)
    return " | ".join(text for text in lines if "ndex" in text or "INDEX" in text)


@contextmanager
def fill(store: Store) -> Iterator[sa.Connection]:
    """A write transaction of the benchmark's own."""
    connection = store._database._open()
    store._database._begin(connection, writing=True)
    yield connection
    connection.commit()


def median(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def line(what: str, seconds: float, note: str = "") -> None:
    shown = f"{seconds * 1e3:10.2f} ms" if seconds < 10 else f"{seconds:10.1f} s "
    print(f"  {what:52s} {shown}" + (f"   ({note})" if note else ""))


if __name__ == "__main__":
    main()
