"""Promotions a second on PostgreSQL with several worker processes, and what is lost to contention.

    python benchmarks/promotion_contention.py --url postgresql+psycopg://... [--workers 4] [--partitions 100 1000] [--seconds 5]

Three ways, each with every number of partitions: one worker alone; the workers with a share of the chains each; and rivals, all
of them over the same chains in an order of their own, as after bundles that run twice. Each worker publishes as often as a
reader does. `lost` is the share of the swaps that another worker had won. The store must be empty; scopes are made in it.
"""

import argparse
import random
import subprocess
import sys
import time
from uuid import uuid4

from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, IntegerDomain
from gapless.settling.publisher import Publisher
from gapless.store import Store, open_store
from gapless.store.records import ChainRow, Promotion, ScopeIdentity


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--partitions", type=int, nargs="+", default=[100, 1000, 4000])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--as-worker", nargs=3, metavar=("SCOPE", "SHARE", "OF"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_worker:
        scope, share, of = given.as_worker
        return work(given.url, scope, int(share), int(of), given.seconds)
    for partitions in given.partitions:
        print(f"{partitions:,} partitions")
        alone = measured(given, partitions, "one worker alone", [(0, 1)])
        apart = measured(
            given,
            partitions,
            f"{given.workers} workers, a share each",
            [(share, given.workers) for share in range(given.workers)],
        )
        measured(
            given, partitions, f"{given.workers} rivals over all of them", [(0, 1)] * given.workers, alone
        )
        print(f"  {given.workers} workers do {apart / alone:.2f} times what one does")
    return None


def measured(
    given: argparse.Namespace,
    partitions: int,
    what: str,
    shares: list[tuple[int, int]],
    alone: float | None = None,
) -> float:
    """Run the workers of one way side by side; promotions a second."""
    scope = f"{partitions}-{uuid4().hex[:8]}"
    with open_store(given.url, create=True) as store:
        began = time.perf_counter()
        make_scope(store, scope, partitions)
        made = time.perf_counter() - began
    command = [sys.executable, __file__, "--url", given.url, "--seconds", str(given.seconds), "--as-worker"]
    workers = [
        subprocess.Popen([*command, scope, str(share), str(of)], stdout=subprocess.PIPE, text=True)
        for share, of in shares
    ]
    won = lost = published = 0
    for worker in workers:
        out, _ = worker.communicate()
        if worker.returncode:
            raise SystemExit(f"a worker ended with {worker.returncode}")
        counts = [int(count) for count in out.split()]
        won, lost, published = won + counts[0], lost + counts[1], published + counts[2]
    rate = won / given.seconds
    beside = "" if alone is None else f", {rate / alone:.2f} times one alone"
    print(
        f"  {what:28s} {rate:7.0f} promotions/s, lost {lost / max(1, won + lost):6.1%},"
        f" {published / given.seconds:5.1f} publishes/s (scope made in {made:.2f} s){beside}",
        flush=True,
    )
    return rate


def make_scope(store: Store, scope: str, partitions: int) -> None:
    store.register_scope(ScopeIdentity(scope, IntegerDomain(), {"type": "bench"}))
    names = [ListedPartition(Partition(f"p{number:06d}", {})) for number in range(partitions)]
    store.observe(scope, Assignment(names))
    store.begin_run(scope, scope, "bench")


def work(url: str, scope: str, share: int, of: int, seconds: float) -> None:
    """One worker: takes its chains, promotes a page of one after the other; says what it won, lost and published."""
    order = random.Random()
    won = lost = published = 0
    with open_store(url) as store:
        number = store.begin_run(scope, scope, "bench")
        rows: dict[int, ChainRow] = {}
        for row in store.snapshot(scope).chains:
            if row.chain % of == share:
                taken = store.take(row.chain, number)
                assert taken is not None
                rows[row.chain] = taken
        publisher = Publisher(store, scope)
        ends = time.perf_counter() + seconds
        chains = list(rows)
        while time.perf_counter() < ends:
            order.shuffle(chains)
            for chain in chains:
                if time.perf_counter() >= ends:
                    break
                promoted = store.promote(next_page(rows[chain]))
                if promoted is None:
                    lost += 1
                    rows[chain] = store.chain(chain)
                else:
                    won += 1
                    rows[chain] = promoted
                published += publisher.tick() is not None
    print(won, lost, published)


def next_page(row: ChainRow) -> Promotion:
    bound = Bound.through(row.sequence)
    return Promotion(
        row, 1, row.page_token, f"t{row.sequence + 1}", bound, "certified", bound, False, 1, None, None, 0
    )


if __name__ == "__main__":
    main()
