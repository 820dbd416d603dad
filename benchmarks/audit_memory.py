"""What an audit, and a history, of very many records take: time, and the peak of the process's memory.

    python benchmarks/audit_memory.py [--records N ...] [--url URL]

For each N: N promotions in a thousand chains, N receipts of open pages and N moves of the frontier, in an empty store; then
each command in a process of its own (Linux only). Without a URL: SQLite in a temporary folder, a store for each N; with one, one
N. Printed, not judged, except that the audit has to be clean.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

import sqlalchemy as sa

from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, IntegerDomain
from gapless.store import Store, open_store, schema
from gapless.store.records import ScopeIdentity

CHAINS = 1000
BATCH = 10_000
DOMAIN = IntegerDomain()
BEGUN = datetime(2026, 1, 1, tzinfo=timezone.utc)
MEASURED = """
import sys, time
from gapless.reading import Progress

def peak():
    # Not getrusage: that begins with what the process was forked from.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

began = time.perf_counter()
with Progress(sys.argv[1]) as progress:
    scope = progress.scope("bench")
    idle = peak()
    if sys.argv[2] == "audit":
        report = scope.audit()
        assert report.clean, report.contradictions[:3]
        seen = report.checked
        told = f"{seen.promotions:,} promotions, {seen.receipts:,} receipts, {seen.publishes:,} moves"
    else:
        told = f"{scope.history().frontiers[0].moves:,} moves"
took = time.perf_counter() - began
print(f"  {sys.argv[2]:8} {took:6.1f} s   peak {peak():4.0f} MB, {peak() - idle:3.0f} MB above an open store   {told}")
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, action="append", help="a multiple of 1,000; several times")
    parser.add_argument("--url", help="of an empty store")
    given = parser.parse_args()
    for records in given.records or [10_000, 100_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            url = given.url or f"sqlite:///{folder}/progress.db"
            print(f"{records:,} records of each kind, {url.split(':')[0]}")
            with open_store(url, create=True) as store:
                fill(store, records)
            for command in ("audit", "history"):
                subprocess.run([sys.executable, "-c", MEASURED, url, command], check=True)


def fill(store: Store, records: int) -> None:
    """A store as so many promotions and publishes of a thousand chains leave it."""
    store.register_scope(ScopeIdentity("bench", DOMAIN, {"path": "/events"}))
    names = [f"p{number:04d}" for number in range(CHAINS)]
    listed = [ListedPartition(Partition(name, {})) for name in names]
    rows = store.observe("bench", Assignment(listed, "", None)).chains
    each = records // CHAINS
    with store._database.bare() as connection:
        connection.exec_driver_sql("BEGIN")
        insert(connection, schema.promotion, promotions([row.chain for row in rows], each))
        insert(connection, schema.receipt, receipts([row.chain for row in rows], each))
        insert(connection, schema.frontier_history, moves(records))
        end = DOMAIN.key(Bound.through(records))
        chain = {
            "sequence": each,
            "page_token": f"t{each}",
            "bound": end,
            "read_to": end,
            "events": each,
            "fencing_token": 1,
        }
        connection.execute(sa.update(schema.chain).values(chain))
        published = BEGUN + timedelta(seconds=records)
        connection.execute(sa.update(schema.scope).values(frontier=end, published_at=published))
        connection.execute(sa.update(schema.epoch).values(opened_at=BEGUN))
        connection.execute(sa.update(schema.observation).values(observed_at=BEGUN))
        connection.exec_driver_sql("ANALYZE")
        connection.commit()


def insert(connection: sa.Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        connection.execute(sa.insert(table), batch)


def promotions(chains: list[int], each: int) -> Iterator[dict[str, Any]]:
    for chain in chains:
        for sequence in range(each):
            position = (sequence + 1) * CHAINS
            key = DOMAIN.key(Bound.through(position))
            yield {
                "chain": chain,
                "sequence": sequence,
                "pages": 1,
                "fencing_token": 1,
                "attempt": f"{chain}-{sequence}",
                "generation": "",
                "token_in": f"t{sequence}" if sequence else None,
                "token_out": f"t{sequence + 1}",
                "bound": key,
                "basis": "certified",
                "read_to": key,
                "events": 1,
                "rows": 0,
                "size": 0,
                "drift": 0,
                "evidence": {
                    "position": str(position),
                    "inclusive": True,
                    "sequence": sequence,
                    "issuer": "page",
                },
                "promoted_at": BEGUN,
            }


def receipts(chains: list[int], each: int) -> Iterator[dict[str, Any]]:
    for chain in chains:
        for number in range(each):
            yield {
                "chain": chain,
                "event_id": f"event-{number}",
                "outcome": "delivered",
                "recorded_at": BEGUN,
            }


def moves(records: int) -> Iterator[dict[str, Any]]:
    for number in range(1, records + 1):
        yield {
            "scope": "bench",
            "lineage": 1,
            "epoch": 1,
            "frontier": DOMAIN.key(Bound.through(number)),
            "basis": "certified",
            "published_at": BEGUN + timedelta(seconds=number),
        }


if __name__ == "__main__":
    main()
