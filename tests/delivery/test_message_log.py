"""The delivery frontier, claims and coverage of a real table, on both databases."""

import uuid

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, installed, mark, open_log, run, set_coverage
from sqlalchemy.engine import Engine

from gapless.delivery import CoveredRange, DeliveryBlocker, Settled
from gapless.errors import (
    ConfigurationError,
    CoverageMoved,
    NotReached,
)
from gapless.progress import Bound, Scalar, Withheld


def test_six_rows_of_which_the_third_was_urgent(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "chan-1", ["pending"] * 6)
    mark(log_engine, [3], "delivered")
    assert log.frontier("chan-1").through == 0
    assert log.frontier("chan-1").blocker == DeliveryBlocker("non_terminal", id=1, status="pending")
    mark(log_engine, [1, 2], "delivered")
    assert log.frontier("chan-1").through == 3
    assert log.newly_covered("chan-1") == CoveredRange("chan-1", 0, 3, 3)
    mark(log_engine, [4, 5, 6], "delivered")
    assert log.frontier("chan-1").through == 6
    assert log.frontier("chan-1").blocker is None


def test_a_failed_row_is_terminal_and_a_pending_one_after_it_is_not(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "chan-1", ["delivered"] * 6 + ["failed", "pending"])
    assert log.frontier("chan-1").through == 7


def test_a_failed_tail_is_covered_to_its_end(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "chan-1", ["delivered", "failed", "failed"])
    assert log.frontier("chan-1").through == 3


@pytest.mark.parametrize("status", [None, "paused", "DELIVERED", "delivered ", ""])
def test_whatever_is_not_declared_terminal_holds(log_engine: Engine, status: str | None) -> None:
    log = installed(log_engine)
    add(log_engine, "chan-1", ["delivered", status, "delivered"])
    frontier = log.frontier("chan-1")
    assert (frontier.through, frontier.blocker) == (1, DeliveryBlocker("non_terminal", id=2, status=status))


def test_an_empty_shard_stands_at_its_coverage(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "other", ["delivered"] * 4)
    assert log.frontier("never seen").through == 0
    set_coverage(log_engine, "purged", 3)
    assert log.frontier("purged").through == 3
    assert log.newly_covered("purged") == CoveredRange("purged", 3, 3, 0)
    assert log.claim("purged") is None


def test_coverage_above_every_row_of_the_shard_is_never_taken_back(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered", "pending"])
    add(log_engine, "b", ["delivered"] * 8)
    set_coverage(log_engine, "a", 10)
    assert log.frontier("a").through == 10


def test_a_gap_at_the_end_belongs_to_nobody(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered", "delivered"])
    add(log_engine, "b", ["delivered"] * 5)
    add(log_engine, "a", ["pending"])
    assert log.frontier("a").through == 7, "one below the open row, in a gap of the shard's own ids"
    run(log_engine, "DELETE FROM conversations WHERE id = 8")
    assert log.frontier("a").through == 2, "the last row: a range ends on one where nothing is open"


def test_a_range_without_rows_is_not_claimed(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "other", ["delivered"] * 4)
    add(log_engine, "a", ["pending"])
    assert log.newly_covered("a") == CoveredRange("a", 0, 4, 0)
    assert log.claim("a") is None


def test_a_claimed_range_stays_what_it_is_until_it_is_covered(log_engine: Engine) -> None:
    log, rival = installed(log_engine), open_log(log_engine, log_engine.dialect.name)
    add(log_engine, "a", ["delivered"] * 3)
    claimed = log.claim("a")
    assert claimed == CoveredRange("a", 0, 3, 3)
    add(log_engine, "a", ["delivered"] * 5)
    assert log.claim("a") == rival.claim("a", at_least=100) == claimed
    assert rival.frontier("a").through == 8
    log.cover(claimed)
    assert log.claim("a") == CoveredRange("a", 3, 8, 5)


def test_too_few_rows_are_not_claimed(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 3)
    assert log.claim("a", at_least=4) is None
    assert run(log_engine, "SELECT * FROM gapless_coverage_conversations") == []
    assert log.claim("a", at_least=3) == CoveredRange("a", 0, 3, 3)
    with pytest.raises(ConfigurationError):
        log.claim("a", at_least=0)


def test_coverage_moves_by_compare_and_swap(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 12)
    set_coverage(log_engine, "a", 3)
    log.cover(CoveredRange("a", 3, 10, 7))
    with pytest.raises(CoverageMoved, match="stands at 10, not at 3"):
        log.cover(CoveredRange("a", 3, 12, 9))
    with pytest.raises(CoverageMoved, match="no range"):
        log.cover(CoveredRange("a", 10, 10, 0))
    claimed = log.claim("a")
    assert claimed == CoveredRange("a", 10, 12, 2)
    with pytest.raises(CoverageMoved, match=r"\(10, 12\] is claimed"):
        log.cover(CoveredRange("a", 10, 11, 1))
    log.cover(claimed)
    assert log.coverage("a") == 12


def test_an_end_that_nobody_claimed_is_covered_only_where_it_is_settled(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 3)
    with pytest.raises(NotReached, match=r"\(0, 1000\] is not claimed, and rows are settled through 3 only"):
        log.cover(CoveredRange("a", 0, 1000, 5))
    assert run(log_engine, "SELECT * FROM gapless_coverage_conversations") == []
    log.cover(CoveredRange("a", 0, 3, 3))
    assert log.coverage("a") == 3


def test_a_claimed_end_stays_coverable_when_less_is_settled(log_engine: Engine) -> None:
    """As after a restart: nothing is known of open writers then."""

    class Forgetful:
        incarnation_sql = "'x'"
        through = 3

        def settled(self, connection: sa.Connection) -> Settled:
            return Settled(self.through, (), "x")

    barrier = Forgetful()
    log = installed(log_engine, barrier=barrier)
    add(log_engine, "a", ["delivered"] * 3)
    claimed = log.claim("a")
    assert claimed == CoveredRange("a", 0, 3, 3)
    barrier.through = 0
    log.cover(claimed)
    assert log.coverage("a") == 3


def test_shards_know_nothing_of_each_other(log_engine: Engine) -> None:
    log = installed(log_engine)
    for status in ("delivered", "pending"):
        for shard in ("a", "b", "c"):
            add(log_engine, shard, [status])
    mark(log_engine, [5], "failed")
    assert [log.frontier(shard).through for shard in ("a", "b", "c")] == [3, 5, 5]
    assert log.shards() == ["a", "b", "c"]
    assert [found.shard for found in log.frontiers()] == ["a", "b", "c"]


def test_the_table_is_complete_where_all_shards_are(log_engine: Engine) -> None:
    log = installed(log_engine)
    assert isinstance(log.table_frontier(), Withheld)
    add(log_engine, "a", ["delivered"])
    add(log_engine, "b", ["delivered", "pending", "delivered"])
    add(log_engine, "a", ["delivered"])
    assert log.table_frontier() == Scalar(Bound.through(2))
    mark(log_engine, [3], "failed")
    assert log.table_frontier() == Scalar(Bound.through(5))


@pytest.mark.parametrize(
    ("shard_type", "shards", "other"),
    [
        ("integer", [7, -1], "7"),
        ("varchar(36)", ["ä'%:x", 'q"'], 7),
        ("uuid", [uuid.UUID(int=5), str(uuid.UUID(int=9))], "no uuid"),
    ],
)
def test_shards_may_be_texts_integers_and_uuids(
    log_engine: Engine, shard_type: str, shards: list[object], other: object
) -> None:
    if shard_type == "uuid" and log_engine.dialect.name == "sqlite":
        shard_type = "char(36)"
        shards, other = [str(shard) for shard in shards], 7
    create_table(log_engine, shard_type=shard_type)
    log = open_log(log_engine, log_engine.dialect.name)
    log.install()
    for shard in shards:
        add(log_engine, str(shard) if isinstance(shard, uuid.UUID) else shard, ["delivered", "delivered"])
    for shard in shards:
        claimed = log.claim(shard)  # type: ignore[arg-type]
        assert claimed is not None
        assert claimed.rows == 2
        log.cover(claimed)
    assert sorted(map(str, log.shards())) == sorted(map(str, shards))
    with pytest.raises(ConfigurationError, match="no shard of this log"):
        log.frontier(other)  # type: ignore[arg-type]


def test_names_are_the_users_own(log_engine: Engine) -> None:
    create_table(
        log_engine, table='Odd "%s" :log', shard="the:shard%", status="it's", shard_type="varchar(20)"
    )
    log = open_log(
        log_engine,
        log_engine.dialect.name,
        table='Odd "%s" :log',
        shard="the:shard%",
        status="it's",
        terminal=("100% done", "o'k", "a:b"),
    )
    assert log.install().built
    with log_engine.connect() as connection:
        connection.execute(
            sa.text('INSERT INTO "Odd ""%s"" \\:log" ("the\\:shard%", "it\'s") VALUES (:s, :t)'),
            [{"s": "a", "t": status} for status in ("o'k", "100% done", "a:b", "pending")],
        )
        connection.commit()
    assert log.shards() == ["a"]
    claimed = log.claim("a")
    assert claimed == CoveredRange("a", 0, 3, 3)
    assert log.cover(claimed) == ()
    assert log.audit(count=True) == []
    assert [check.problem for check in log.check()] == ["", "", "", ""]


@pytest.mark.parametrize("status_type", ["integer", "enum"])
def test_statuses_may_be_integers_and_enums(postgres_engine: Engine, status_type: str) -> None:
    if status_type == "enum":
        run(postgres_engine, "CREATE TYPE fate AS ENUM ('pending', 'delivered', 'failed')")
    create_table(postgres_engine, status_type={"enum": "fate"}.get(status_type, status_type))
    terminal: tuple[object, ...] = ("delivered", "failed") if status_type == "enum" else (2, 3)
    log = open_log(postgres_engine, "postgresql", terminal=terminal)
    log.install()
    values = ("'delivered'", "'pending'") if status_type == "enum" else ("2", "1")
    for value in values:
        run(postgres_engine, f"INSERT INTO conversations (channel_key, status) VALUES ('a', {value})")
    frontier = log.frontier("a")
    assert frontier.through == 1
    assert frontier.blocker is not None
    assert frontier.blocker.status == ("pending" if status_type == "enum" else 1)
