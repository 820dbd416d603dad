"""How fast membership moves: a cutover of many members, and publishing while cutovers storm.

    python benchmarks/bench_membership.py [--members N] [--seconds S] [--url URL ...]

Without a URL: SQLite in a temporary folder. Printed; the storm is judged too: it fails where a publish breaks the order.
"""

import argparse
import statistics
import tempfile
import threading
import time
from itertools import pairwise

import sqlalchemy as sa

from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, IntegerDomain
from gapless.store import Store, open_store, schema
from gapless.store.records import ChainRow, CutoverResult, MembershipPolicy, Promotion, ScopeIdentity

KEY = IntegerDomain().key


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--url", action="append", help="of an empty store; may be given several times")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for url in given.url or [f"sqlite:///{folder}/progress.db"]:
            print(url.split("?")[0])
            with open_store(url, create=True) as store:
                cutovers(store, given.members)
            Storm(url, given.seconds).run()


def cutovers(store: Store, count: int) -> None:
    """Each kind of step, of all members at once."""
    names = [f"p{number}" for number in range(count)]
    new = [f"n{number}" for number in range(count)]

    def scope(kind: str) -> str:
        store.register_scope(ScopeIdentity(kind, IntegerDomain(), {"path": "/"}))
        observe(store, kind, names, generation="r1")
        reach(store, kind, 100)
        assert store.publish(kind, 1) is not None
        return kind

    entering = scope("enter")
    observe(store, entering, [*names, *new], generation="r1")
    reach(store, entering, 100)
    step(store, entering, f"{count:,} members, {count:,} enter")

    splitting = scope("split")
    ends = {name: (Bound.through(100), (child,)) for name, child in zip(names, new, strict=True)}
    observe(store, splitting, [*names, *new], ends, generation="r1")
    reach(store, splitting, 100)
    step(store, splitting, f"{count:,} leave for {count:,} successors")

    line = scope("line")
    ends = {name: (Bound.through(100), (heir,)) for name, heir in pairwise(names)}
    observe(store, line, names, ends, generation="r1")
    step(store, line, f"{count - 1:,} leave, each followed by the next")

    moving = scope("moves")
    policy = MembershipPolicy(moves="never behind a certificate")
    observe(store, moving, names, generation="r2", policy=policy)
    step(store, moving, f"{count:,} go on under another generation")

    again = scope("again")
    observe(store, again, names, generation="r2")
    reach(store, again, 100)
    step(store, again, f"{count:,} were read again and replace {count:,}")


def step(store: Store, scope: str, what: str) -> None:
    began = time.perf_counter()
    result = store.cutover(scope, dry_run=True)
    dry = time.perf_counter() - began
    began, busy = time.perf_counter(), time.process_time()
    result = store.cutover(scope)
    took, busy = time.perf_counter() - began, time.process_time() - busy
    assert result.accepted, result.missing[:3]
    assert not result.missing
    print(f"  cutover: {what:<52} {took:6.2f} s   ({busy:.2f} s of it computing; dry run {dry:.2f} s)")


def observe(
    store: Store,
    scope: str,
    names: list[str],
    ends: dict[str, tuple[Bound, tuple[str, ...]]] | None = None,
    *,
    generation: str,
    policy: MembershipPolicy | None = None,
) -> None:
    ends = ends or {}
    entries = [
        ListedPartition(Partition(name, {}), *ends.get(name, (None, None)))  # type: ignore[arg-type]
        for name in names
    ]
    store.observe(scope, Assignment(entries, generation), policy=policy)


def reach(store: Store, scope: str, position: int) -> None:
    """Every live chain is promoted through the position, in one statement: what is measured is not the promoting."""
    live = sa.and_(schema.chain.c.scope == scope, schema.is_live())
    through = sa.update(schema.chain).where(live).values(bound=KEY(Bound.through(position)))
    store._database.write(lambda connection: connection.execute(through))


class Storm:
    """Two threads cut over as fast as they can, one partition in and one out each time; the others promote and publish.

    A publish that comes under an epoch that is past reads the scope anew, as an aggregator does. What is measured is how long
    one that has something to publish waits until the frontier has moved at least that far."""

    def __init__(self, url: str, seconds: float) -> None:
        self.url = url
        self.seconds = seconds
        self.until = 0.0
        self.waits: list[float] = []
        self.stale = 0
        self.cutovers = 0
        self.lock = threading.Lock()

    def run(self) -> None:
        with open_store(self.url) as store:
            store.register_scope(ScopeIdentity("storm", IntegerDomain(), {"path": "/"}))
            observe(store, "storm", ["steady"], generation="")
            began = time.monotonic()
            self.until = began + self.seconds
            threads = [
                threading.Thread(target=work)
                for work in (self.change, self.cut, self.cut, self.publish, self.look)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took = time.monotonic() - began
            rows = store._database.read(self.history)
        assert [epoch for epoch, _ in rows] == sorted(epoch for epoch, _ in rows), "epochs out of order"
        keys = [key for _, key in rows]
        assert keys == sorted(set(keys)), "a publish that did not raise the frontier"
        slowest = sorted(self.waits)
        print(
            f"  storm: {self.cutovers / took:.0f} cutovers/s, {len(self.waits) / took:.0f} publishes/s, {self.stale} found"
            f" their epoch past;\n    wait until published: median {statistics.median(slowest) * 1e3:.1f} ms,"
            f" 99% {slowest[int(len(slowest) * 0.99)] * 1e3:.1f} ms, longest {slowest[-1] * 1e3:.1f} ms"
        )

    @staticmethod
    def history(connection: sa.Connection) -> list[tuple[int, bytes]]:
        column = schema.frontier_history.c
        wanted = (
            sa.select(column.epoch, column.frontier).where(column.scope == "storm").order_by(column.number)
        )
        return [(row[0], bytes(row[1])) for row in connection.execute(wanted)]

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until

    def change(self) -> None:
        """The list, anew each time: the last newcomer has ended with no successor, and another one has come."""
        number = 0
        with open_store(self.url) as store:
            while not self.over:
                number += 1
                frontier = store.scope("storm").frontier
                ended = [f"n{number - 1}"] if number > 1 else []
                ends = {name: (self.end_of(store, name), ()) for name in ended}
                names = ["steady", *[name for name in ended if ends[name][0] is not None], f"n{number}"]
                observe(
                    store, "storm", names, {k: v for k, v in ends.items() if v[0] is not None}, generation=""
                )  # type: ignore[misc]
                self.bring(store, f"n{number}", 10**9 if frontier is None else frontier.position + 10**6)
                while not self.over and self.candidates(store):
                    time.sleep(0)

    def end_of(self, store: Store, name: str) -> Bound | None:
        rows = [row for row in store.snapshot("storm").chains if row.partition == name]
        return rows[0].bound if rows else None

    def candidates(self, store: Store) -> list[ChainRow]:
        return [row for row in store.snapshot("storm").chains if row.is_candidate]

    def bring(self, store: Store, name: str, position: int) -> None:
        (row,) = [row for row in store.snapshot("storm").chains if row.partition == name]
        promote(store, row, position)

    def cut(self) -> None:
        with open_store(self.url) as store:
            while not self.over:
                accepted: CutoverResult = store.cutover("storm")
                with self.lock:
                    self.cutovers += accepted.accepted

    def publish(self) -> None:
        """Promote the steady member one further, and publish until the frontier has come that far."""
        with open_store(self.url) as store:
            (row,) = [row for row in store.snapshot("storm").chains if row.partition == "steady"]
            position = 0
            while not self.over:
                position += 1
                promoted = promote(store, row, position)
                assert promoted is not None
                row = promoted
                began = time.perf_counter()
                epoch = store.scope("storm").epoch
                while not self.over:
                    moved = store.publish("storm", epoch)
                    scope = moved or store.scope("storm")
                    if scope.frontier is not None and scope.frontier >= Bound.through(position):
                        self.waits.append(time.perf_counter() - began)
                        break
                    self.stale += scope.epoch != epoch
                    epoch = scope.epoch

    def look(self) -> None:
        """A reader never sees epoch or frontier go back."""
        last: tuple[int, Bound | None] = (0, None)
        with open_store(self.url, readonly=True) as store:
            while not self.over:
                seen = store.scope("storm")
                assert seen.epoch >= last[0]
                assert last[1] is None or (seen.frontier is not None and seen.frontier >= last[1])
                last = (seen.epoch, seen.frontier)


def promote(store: Store, row: ChainRow, position: int) -> ChainRow | None:
    bound = Bound.through(position)
    return store.promote(
        Promotion(row, 1, row.page_token, f"t{position}", bound, "certified", bound, False, 1, None, None, 0)
    )


if __name__ == "__main__":
    main()
