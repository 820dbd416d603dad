"""What the Parquet effect costs: events a second, beside a bare loop that writes each page by `from_pylist`.

    python benchmarks/bench_effect.py [PAGES] [EVENTS_PER_PAGE]

Every line decodes each page from JSON first, as a reader does; `decode` alone shows how much that is. What `convert` adds
to it is the effect's part under Python's lock; encoding and compression run beside it.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.effects import ParquetEffect, RunStart, infer_schema
from gapless.effects.columns import ColumnBuilder
from gapless.paging.page import Page
from gapless.progress import IntegerDomain
from gapless.testing.memory_schema_store import MemorySchemaStore


def make_body(number: int, events: int, optional: bool) -> bytes:
    rows = []
    for index in range(events):
        position = (number * events + index) * 8
        row = {
            "id": f"p0000-{position:09d}",
            "position": position,
            "kind": "order.updated",
            "customer": f"c{position % 9973:05d}",
            "amount_cents": (position * 7919) % 100000,
            "currency": "EUR",
            "note": "x" * 64,
            "flag": position % 3 == 0,
        }
        if optional and index % 10 == 0:
            del row["note"]
        rows.append(row)
    return json.dumps(rows).encode()


def rows_of(body: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = msgspec.json.decode(body)
    return rows


def decode(bodies: list[bytes]) -> None:
    for body in bodies:
        rows_of(body)


def convert(bodies: list[bytes]) -> None:
    builder = ColumnBuilder(infer_schema(rows_of(bodies[0])))
    for body in bodies:
        builder.build(rows_of(body))


def effect(bodies: list[bytes], pages_per_file: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = ParquetEffect(folder).open("bench", IntegerDomain(), MemorySchemaStore())
        for start in range(0, len(bodies), pages_per_file):
            writer = session.begin(RunStart(1, "p0000", start, 1))
            for number, body in enumerate(bodies[start : start + pages_per_file], start):
                rows = rows_of(body)
                ids, positions = [row["id"] for row in rows], [row["position"] for row in rows]
                writer.add(Page(None, str(number), False, ids, positions, rows), number)
            writer.finish()
        session.close()


def bare(bodies: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, body in enumerate(bodies):
            pq.write_table(pa.Table.from_pylist(rows_of(body)), Path(folder, f"{number:06d}.parquet"))


def report(name: str, run: Callable[[], None], pages: int, events: int) -> None:
    walls, cpus = [], []
    for _ in range(5):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    wall, cpu = statistics.median(walls), statistics.median(cpus)
    print(
        f"{name:34s} {pages * events / wall:>9.0f} events/s   {wall / pages * 1e6:7.0f} us a page"
        f"   {cpu / pages * 1e6:7.0f} us of CPU"
    )


def main() -> None:
    pages, events = (int(value) for value in sys.argv[1:3]) if len(sys.argv) > 2 else (200, 1000)
    bodies = [make_body(number, events, optional=False) for number in range(pages)]
    report("bare loop", lambda: bare(bodies), pages, events)
    report("decode", lambda: decode(bodies), pages, events)
    report("decode, convert", lambda: convert(bodies), pages, events)
    report("effect, all pages in one file", lambda: effect(bodies, pages), pages, events)
    report("effect, 8 pages a file", lambda: effect(bodies, 8), pages, events)
    report("effect, 1 page a file", lambda: effect(bodies, 1), pages, events)
    bodies = [make_body(number, events, optional=True) for number in range(pages)]
    report("decode, convert, some keys absent", lambda: convert(bodies), pages, events)


if __name__ == "__main__":
    main()
