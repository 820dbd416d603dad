"""The worker: exact ranges, chained; isolation of shards; what it looks at again and what it leaves alone."""

import gc
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, installed, mark, open_log, run
from range_effects import RememberedRanges, judge
from sqlalchemy.engine import Engine

from gapless.delivery import CoveredRange, Held, MessageLog, Violation, Worker, work_shard
from gapless.errors import DatabaseUnavailable, UnsafeSetup
from gapless.testing import ManualClock


def test_a_shard_is_handed_on_range_by_range(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 25)
    seen: list[tuple[Any, ...]] = []

    def effect(shard: object, after: int, through: int, rows: int) -> None:
        seen.append((shard, after, through, rows))
        if len(seen) == 1:
            add(log_engine, "a", ["delivered"] * 22 + ["pending"])

    done = work_shard(log, "a", effect)
    assert seen == [("a", 0, 25, 25), ("a", 25, 47, 22)]
    assert (done.ranges, done.rows, log.coverage("a")) == (2, 47, 47)


def test_nothing_is_done_before_enough_rows_are_there(log_engine: Engine) -> None:
    log = installed(log_engine)
    seen: list[tuple[Any, ...]] = []
    worker = Worker(log, lambda *given: seen.append(given), rows=3)
    add(log_engine, "a", ["delivered", "delivered", "pending"])
    worker.round()
    assert seen == []
    mark(log_engine, [3], "failed")
    worker.round()
    assert seen == [("a", 0, 3, 3)]
    worker.round()
    assert len(seen) == 1


def test_new_shards_and_new_rows_are_found(log_engine: Engine) -> None:
    log = installed(log_engine)
    seen: list[tuple[Any, ...]] = []
    worker = Worker(log, lambda *given: seen.append(given), rows=1)
    add(log_engine, "a", ["delivered"])
    worker.round()
    add(log_engine, "b", ["delivered"])
    worker.round()
    add(log_engine, "a", ["delivered"])
    worker.round()
    assert [(shard, through) for shard, _, through, _ in seen] == [("a", 1), ("b", 2), ("a", 3)]


def test_ids_that_are_given_out_again_are_found_in_shards_that_were_dormant(postgres_engine: Engine) -> None:
    log = installed(postgres_engine)
    seen: list[tuple[Any, ...]] = []
    worker = Worker(log, lambda *given: seen.append(given), rows=1)
    for shard in ("a", "a", "b"):
        add(postgres_engine, shard, ["delivered"])
    worker.round()
    run(postgres_engine, "TRUNCATE conversations RESTART IDENTITY")
    for shard in ("new", "new", "b", "b"):
        add(postgres_engine, shard, ["delivered"])
    seen.clear()
    worker.round()
    assert seen == [("b", 3, 4, 1), ("new", 0, 2, 2)] or seen == [("new", 0, 2, 2), ("b", 3, 4, 1)]


def test_dormant_shards_are_not_asked_again(log_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    log = installed(log_engine)
    for number in range(5):
        add(log_engine, f"s{number}", ["delivered"])
    worker = Worker(log, lambda *given: None, rows=1, clock=ManualClock())
    asked: list[object] = []
    claim = MessageLog.claim
    monkeypatch.setattr(
        MessageLog,
        "claim",
        lambda self, shard, *, at_least=1: (asked.append(shard), claim(self, shard, at_least=at_least))[1],
    )
    worker.round()
    asked.clear()
    worker.round()
    assert asked == []
    add(log_engine, "s3", ["pending"])
    worker.round()
    worker.round()
    assert asked == ["s3", "s3"], "what is open is asked about each time"


def test_a_shard_whose_effect_fails_holds_no_other_one_up_and_gets_the_same_range_again(
    log_engine: Engine,
) -> None:
    log = installed(log_engine)
    for shard in ("a", "b"):
        add(log_engine, shard, ["delivered"] * 2)
    clock = ManualClock()
    broken = {"a"}
    seen: list[tuple[Any, ...]] = []
    told: list[object] = []

    def effect(*given: Any) -> None:
        seen.append(given)
        if given[0] in broken:
            raise ValueError("no model today")

    worker = Worker(log, effect, rows=1, clock=clock, backoff=10, longest=15, report=told.append)
    worker.round()
    assert seen == [("a", 0, 2, 2), ("b", 0, 4, 2)]
    assert worker.done.held["a"] == Held(CoveredRange("a", 0, 2, 2), "ValueError: no model today", 1, 10)
    assert worker.done.held["a"] in told
    worker.round()
    assert len(seen) == 2, "not before its wait is over"
    clock.advance(10)
    add(log_engine, "a", ["delivered"] * 3)
    worker.round()
    assert seen[2] == ("a", 0, 2, 2)
    assert (worker.done.held["a"].failures, worker.done.held["a"].wait) == (2, 15)
    broken.clear()
    clock.advance(15)
    worker.round()
    assert seen[3:] == [("a", 0, 2, 2), ("a", 2, 7, 3)]
    assert worker.done.held == {}
    assert (worker.done.ranges, worker.done.rows) == (3, 7)


def test_an_effect_that_would_end_the_process_has_failed(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"])

    def leave(*given: object) -> None:
        raise SystemExit(0)

    done = Worker(log, leave, rows=1).round()
    assert done.held["a"].due == CoveredRange("a", 0, 1, 1)
    assert (done.ranges, log.coverage("a")) == (0, 0)


def test_a_range_that_another_worker_covered_first_is_lost_without_harm(log_engine: Engine) -> None:
    log, rival = installed(log_engine), open_log(log_engine, log_engine.dialect.name)
    add(log_engine, "a", ["delivered"] * 2)

    def effect(shard: str, after: int, through: int, rows: int) -> None:
        if after == 0:
            rival.cover(CoveredRange(shard, after, through, rows))
            add(log_engine, "a", ["delivered"])

    done = work_shard(log, "a", effect, rows=1)
    assert (done.lost, done.ranges, log.coverage("a")) == (1, 1, 3)


def test_violations_are_looked_for_once_a_minute(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 2)
    clock = ManualClock()
    told: list[object] = []
    worker = Worker(log, lambda *given: None, rows=1, clock=clock, report=told.append)
    worker.round()
    mark(log_engine, [1], "pending")
    worker.round()
    assert worker.done.violations == 0
    clock.advance(60)
    worker.round()
    assert worker.done.violations == 1
    assert [one.id for one in told if isinstance(one, Violation)] == [1]


def test_a_set_up_that_becomes_unsafe_ends_the_work(postgres_engine: Engine) -> None:
    log = installed(postgres_engine)
    clock = ManualClock()
    worker = Worker(log, lambda *given: None, rows=1, clock=clock)
    worker.round()
    run(postgres_engine, "ALTER SEQUENCE conversations_id_seq CACHE 10")
    clock.advance(60)
    with pytest.raises(UnsafeSetup):
        worker.run()


def test_run_ends_when_it_is_asked_to_after_the_range_in_hand(log_engine: Engine) -> None:
    log = installed(log_engine)
    for shard in ("a", "b"):
        add(log_engine, shard, ["delivered"])
    worker = Worker(log, lambda *given: worker.stop.set(), rows=1)
    done = worker.run(poll=60)
    assert (done.ranges, log.coverage("a"), log.coverage("b")) == (1, 1, 0)


def test_a_database_that_cannot_be_reached_is_asked_again(
    log_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"])
    worker = Worker(log, lambda *given: worker.stop.set(), rows=1, backoff=0)
    settled, left = MessageLog.settled, [2]

    def unreachable(self: MessageLog) -> Any:
        if left[0]:
            left[0] -= 1
            raise DatabaseUnavailable("the server is restarting")
        return settled(self)

    monkeypatch.setattr(MessageLog, "settled", unreachable)
    assert worker.run(poll=0).ranges == 1


def test_named_shards_alone_are_worked_on(log_engine: Engine) -> None:
    log = installed(log_engine)
    for shard in ("a", "b"):
        add(log_engine, shard, ["delivered"])
    Worker(log, lambda *given: None, rows=1, shards=["b"]).round()
    assert (log.coverage("a"), log.coverage("b")) == (0, 2)


class Killed(BaseException):
    """The process is gone."""


class Steps:
    """Counts statements and what the effect does; at the given one, the worker dies: before it, or just after it."""

    def __init__(self, engine: Engine, at: int, *, after: bool) -> None:
        self.count = 0
        self._at = at
        self._after = after
        self._engine = engine
        sa.event.listen(engine, "before_cursor_execute", self._before_statement)
        sa.event.listen(engine, "after_cursor_execute", self._after_statement)

    def named(self, name: str) -> None:
        self._before_statement()
        self._after_statement()

    def _before_statement(self, *_: Any) -> None:
        self.count += 1
        if self.count == self._at and not self._after:
            raise Killed

    def _after_statement(self, *_: Any) -> None:
        if self.count == self._at and self._after:
            self.count += 1
            raise Killed

    def remove(self) -> None:
        sa.event.remove(self._engine, "before_cursor_execute", self._before_statement)
        sa.event.remove(self._engine, "after_cursor_execute", self._after_statement)


@pytest.fixture
def little_to_collect() -> Iterator[None]:
    """What is there already stays until the end: a collection looks at what the test itself has made."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("little_to_collect")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_worker_may_be_killed_at_every_step(log_engine: Engine, tmp_path: Path, after: bool) -> None:
    """Each time more rows become terminal before the next worker begins: without a claim it would take a longer range."""
    create_table(log_engine)
    log = open_log(log_engine, log_engine.dialect.name)
    log.install()
    ids: list[int] = []
    effect = RememberedRanges(tmp_path / "effect.db")
    at, killed = 0, True
    while killed:
        at += 1
        add(log_engine, "a", ["delivered"] * 2)
        ids = [id_ for (id_,) in run(log_engine, "SELECT id FROM conversations ORDER BY id")]
        steps = Steps(log_engine, at, after=after)
        effect.step = steps.named
        try:
            work_shard(log, "a", effect, rows=1)
            killed = False
        except Killed as death:
            # A dead process has no cursors; here the traceback would keep them, and their locks.
            traceback.clear_frames(death.__traceback__)
            gc.collect()
        finally:
            steps.remove()
        judge(effect.ranges(), {"a": ids}, {"a": log.coverage("a")})
    assert at > 15
    assert log.coverage("a") == ids[-1]
    assert any(times > 1 for *_, times in effect.ranges()), "some range came again"
    assert log.audit(count=True) == []
