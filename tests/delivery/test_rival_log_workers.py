"""Several workers on the same shards, in processes of their own, killed at random, while others write: every row in one range."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, open_log, run
from range_effects import RememberedRanges, judge
from sqlalchemy.engine import Engine

from gapless.delivery import MessageLog, work_shard

SUPPORT = Path(__file__).parent.parent / "support"
SHARDS = ("a", "b", "c")


def start(url: str, ids: str, effect: Path, seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(SUPPORT / "log_worker_process.py"), url, ids, str(effect), str(seconds)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SUPPORT)}, stderr=subprocess.PIPE)


def write(engine: Engine, draw: random.Random, stop: threading.Event) -> None:
    """Inserts with statuses of every kind, and deliveries out of order; everything is terminal in the end."""
    while not stop.is_set():
        for shard in SHARDS:
            add(
                engine, shard, [draw.choice(["pending", "delivered", None]) for _ in range(draw.randrange(4))]
            )
        run(
            engine,
            "UPDATE conversations SET status = 'delivered' WHERE id IN (SELECT id FROM conversations"
            " WHERE (status IN ('delivered', 'failed')) IS NOT TRUE AND id % 3 = :rest)",
            rest=draw.randrange(3),
        )
        stop.wait(0.002)
    run(engine, "UPDATE conversations SET status = 'failed' WHERE (status IN ('delivered')) IS NOT TRUE")


def wait_for_ranges(effect: RememberedRanges, number: int, stop: threading.Event) -> None:
    """Until the effect has durably seen `number` ranges: a failure where that takes more than a minute."""
    until = time.monotonic() + 60
    while len(effect.ranges()) < number:
        assert time.monotonic() < until, f"no {number} ranges in a minute: {effect.ranges()}"
        stop.wait(0.05)


def history(engine: Engine, folder: Path, *, seconds: float, kills: int, seed: int) -> None:
    draw = random.Random(seed)
    create_table(engine)
    log = open_log(engine, engine.dialect.name)
    log.install()
    url, ids = engine.url.render_as_string(hide_password=False), log.found.log.ids
    effect = RememberedRanges(folder / "effect.db")
    workers = [start(url, ids, effect.file, 600) for _ in range(3)]
    stop = threading.Event()
    writer = threading.Thread(target=write, args=(engine, draw, stop))
    writer.start()
    try:
        wait_for_ranges(effect, 1, stop)
        for _ in range(kills):
            # What a loaded machine does in a fixed time may be nothing: a kill comes once more has been handed on since the last.
            handed_on = len(effect.ranges())
            stop.wait(draw.random() * seconds / kills)
            wait_for_ranges(effect, handed_on + 1, stop)
            number = draw.randrange(len(workers))
            workers[number].kill()
            _, errors = workers[number].communicate()
            assert workers[number].returncode == -signal.SIGKILL, errors
            workers[number] = start(url, ids, effect.file, 600)
    finally:
        stop.set()
        writer.join()
        for worker in workers:
            worker.kill()
            worker.communicate()
    for shard in SHARDS:
        work_shard(log, shard, effect, rows=1)
    rows = run(engine, "SELECT channel_key, id FROM conversations ORDER BY id")
    by_shard = {shard: [id_ for key, id_ in rows if key == shard] for shard in SHARDS}
    judge(effect.ranges(), by_shard, {shard: log.coverage(shard) for shard in SHARDS})
    assert {shard: log.coverage(shard) for shard in SHARDS} == {
        shard: by_shard[shard][-1] for shard in SHARDS
    }
    assert log.violations() == log.audit(count=True) == []
    assert len(effect.ranges()) > kills


def test_several_processes_killed_at_random(log_engine: Engine, tmp_path: Path) -> None:
    history(log_engine, tmp_path, seconds=3, kills=4, seed=20)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [0])
def test_several_processes_killed_at_random_for_long(log_engine: Engine, tmp_path: Path, seed: int) -> None:
    kills = int(os.environ.get("GAPLESS_KILLS", "200")) // 20
    history(log_engine, tmp_path, seconds=20, kills=kills, seed=seed)


def test_two_workers_on_one_shard_hand_on_the_same_ranges(log_engine: Engine, tmp_path: Path) -> None:
    """Both hold the same claimed range at the same time: the effect sees it twice, and never two that overlap."""
    create_table(log_engine)
    logs = [open_log(log_engine, log_engine.dialect.name) for _ in range(2)]
    logs[0].install()
    effect = RememberedRanges(tmp_path / "effect.db")
    meet = threading.Barrier(2)
    lost: list[int] = []

    def together(name: str) -> None:
        if name == "before the effect":
            meet.wait(30)

    def work(log: MessageLog) -> None:
        lost.append(work_shard(log, "a", effect, rows=1).lost)

    add(log_engine, "a", ["delivered"] * 3)
    effect.step = together
    threads = [threading.Thread(target=work, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert effect.ranges() == [("a", 0, 3, 3, 2)]
    assert sorted(lost) == [0, 1]
    assert logs[0].coverage("a") == 3


def test_without_the_claim_ranges_overlap(sqlite_engine: Engine) -> None:
    """What the claim is for: the same two workers, with an end that each takes for itself, put rows into two ranges."""
    create_table(sqlite_engine)
    log, rival = (open_log(sqlite_engine, "sqlite") for _ in range(2))
    log.install()
    add(sqlite_engine, "a", ["delivered"] * 3)
    first = log.newly_covered("a")
    add(sqlite_engine, "a", ["delivered"])
    second = rival.newly_covered("a")
    with pytest.raises(AssertionError, match="does not begin where the one before ended"):
        judge(
            [("a", found.after, found.through, found.rows, 1) for found in (first, second)],
            {"a": [1, 2, 3, 4]},
            {"a": 3},
        )


def test_a_claim_is_on_the_disk_before_the_effect(postgres_engine: Engine) -> None:
    """Also where the session commits without waiting for the disk."""
    create_table(postgres_engine)
    log = open_log(postgres_engine, "postgresql")
    log.install()
    add(postgres_engine, "a", ["delivered"])
    engine = sa.create_engine(
        postgres_engine.url.update_query_dict(
            {"options": f"{postgres_engine.url.query['options']} -csynchronous_commit=off"}
        )
    )
    committed: list[str] = []

    def note(connection: sa.Connection, cursor: object, statement: str, *_: object) -> None:
        if "SET claimed" in statement or "SET through" in statement:
            driver = connection.connection.driver_connection
            assert driver is not None
            committed.append(driver.execute("SHOW synchronous_commit").fetchone()[0])

    sa.event.listen(engine, "after_cursor_execute", note)
    careless = open_log(engine, "postgresql")
    claimed = careless.claim("a")
    assert claimed is not None
    careless.cover(claimed)
    assert set(committed) == {"on"}
    engine.dispose()


def test_a_claim_waits_for_the_disk_on_sqlite_and_leaves_the_connection_as_it_was(sqlite_url: str) -> None:
    engine = sa.create_engine(sqlite_url)
    sa.event.listen(engine, "connect", lambda driver, _: driver.execute("PRAGMA synchronous=OFF"))
    create_table(engine)
    with engine.connect() as connection:
        log = open_log(connection, "sqlite")
        log.install()
        add(engine, "a", ["delivered"])
        seen: list[int] = []

        def note(connection: sa.Connection, cursor: object, statement: str, *_: object) -> None:
            if "SET claimed" in statement:
                driver = connection.connection.driver_connection
                assert driver is not None
                seen.append(driver.execute("PRAGMA synchronous").fetchone()[0])

        sa.event.listen(engine, "after_cursor_execute", note)
        assert log.claim("a") is not None
        assert seen[0] == 2, "FULL"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 0
    engine.dispose()


def test_a_claim_in_an_attached_database_waits_for_the_disk_too(sqlite_url: str, tmp_path: Path) -> None:
    home, other = sa.create_engine(sqlite_url), f"sqlite:///{tmp_path / 'other.db'}"
    create_table(sa.create_engine(other))

    def attach(driver: Any, _: object) -> None:
        driver.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
        driver.execute("PRAGMA other.synchronous=OFF")

    sa.event.listen(home, "connect", attach)
    with home.connect() as connection:
        log = open_log(connection, "sqlite", schema="other")
        log.install()
        connection.exec_driver_sql(
            "INSERT INTO other.conversations (channel_key, status) VALUES ('a', 'delivered')"
        )
        connection.commit()
        seen: list[int] = []

        def note(connection: sa.Connection, cursor: object, statement: str, *_: object) -> None:
            if "SET claimed" in statement:
                driver: Any = connection.connection.driver_connection
                seen.append(driver.execute("PRAGMA other.synchronous").fetchone()[0])

        sa.event.listen(home, "after_cursor_execute", note)
        assert log.claim("a") is not None
        assert seen[0] == 2, "FULL"
        assert connection.exec_driver_sql("PRAGMA other.synchronous").scalar_one() == 0
    home.dispose()
