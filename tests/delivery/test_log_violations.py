"""What contradicts a coverage is found and recorded with its id: nothing is lost in silence."""

import pytest
import sqlalchemy as sa
from message_tables import add, installed, mark, open_log, run, set_coverage
from sqlalchemy.engine import Engine

from gapless.delivery import MessageLog, Violation


def hand_on(log: MessageLog, shard: str = "a") -> tuple[Violation, ...]:
    claimed = log.claim(shard)
    assert claimed is not None
    return log.cover(claimed)


def insert_with_id(engine: Engine, id_: int, shard: str, status: str) -> None:
    overriding = " OVERRIDING SYSTEM VALUE" if engine.dialect.name == "postgresql" else ""
    run(
        engine,
        f"INSERT INTO conversations (id, channel_key, status){overriding} VALUES (:id, :shard, :status)",
        id=id_,
        shard=shard,
        status=status,
    )


def test_a_row_that_goes_back_to_open_behind_the_coverage(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 4)
    hand_on(log)
    mark(log_engine, [2], "pending")
    assert log.frontier("a").through == 4, "what is handed on stays handed on"
    (found,) = log.audit()
    assert (found.shard, found.code, found.id) == ("a", "open_behind_coverage", 2)
    assert "'pending'" in found.detail
    assert log.audit() == [], "known"
    assert open_log(log_engine, log_engine.dialect.name).violations() == [found]


def test_a_row_that_goes_back_to_open_above_the_coverage_holds_again(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 4)
    assert log.frontier("a").through == 4
    mark(log_engine, [2], "pending")
    assert log.frontier("a").through == 1
    assert log.audit() == []


def test_a_row_of_a_claimed_range_that_goes_back_to_open_is_found_when_the_range_is_covered(
    log_engine: Engine,
) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 4)
    claimed = log.claim("a")
    assert claimed is not None
    mark(log_engine, [3], "pending")
    assert log.claim("a") == claimed, "the effect may have seen it: its range stays what it is"
    log.cover(claimed)
    assert [found.id for found in log.audit()] == [3]


def test_an_id_that_is_given_out_twice_after_a_reset(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 3)
    hand_on(log)
    run(log_engine, "DELETE FROM conversations")
    if log_engine.dialect.name == "postgresql":
        run(log_engine, "ALTER SEQUENCE conversations_id_seq RESTART WITH 1")
    else:
        run(log_engine, "DELETE FROM sqlite_sequence")
    add(log_engine, "a", ["pending"])
    assert log.frontier("a").through == 3
    assert [found.id for found in log.audit()] == [1]


def test_a_terminal_row_that_is_inserted_behind_the_coverage_by_hand(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "b", ["delivered"] * 2)
    add(log_engine, "a", ["delivered"] * 4)
    run(log_engine, "DELETE FROM conversations WHERE id = 4")
    hand_on(log)
    insert_with_id(log_engine, 4, "a", "delivered")
    assert log.audit() == [], "nothing is open: it takes a count to find it"
    (found,) = log.audit(["a"], count=True)
    assert (found.code, found.id, found.after, found.through) == ("rows_added", 4, 0, 6)
    assert log.audit(count=True) == []


def test_a_row_that_is_deleted_behind_the_coverage(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 4)
    hand_on(log)
    run(log_engine, "DELETE FROM conversations WHERE id = 3")
    (found,) = log.audit(count=True)
    assert (found.code, found.id, found.detail) == ("rows_missing", 3, "1 row: counted 4, now 3")
    run(log_engine, "DELETE FROM conversations WHERE id IN (1, 2)")
    (found,) = log.audit(count=True)
    assert (found.code, found.id, found.detail) == ("rows_missing", None, "2 rows: counted 3, now 1")
    insert_with_id(log_engine, 3, "a", "delivered")
    run(log_engine, "DELETE FROM conversations WHERE id = 4")
    (found,) = log.audit(count=True)
    assert found.detail == "rows were exchanged: counted 1, now 1"
    assert len(log.violations()) == 3


def test_the_same_again_is_recorded_again(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 4)
    hand_on(log)
    for _ in range(2):
        run(log_engine, "DELETE FROM conversations WHERE id = 3")
        assert [found.code for found in log.audit(count=True)] == ["rows_missing"]
        insert_with_id(log_engine, 3, "a", "failed")
        assert [found.code for found in log.audit(count=True)] == ["rows_added"]
    assert [found.id for found in log.violations()] == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("statement", "code", "id_"),
    [
        ("DELETE FROM conversations WHERE id = 2", "rows_missing", 2),
        ("UPDATE conversations SET channel_key = 'b' WHERE id = 3", "rows_missing", 3),
        ("UPDATE conversations SET channel_key = 'a' WHERE id = 4", "rows_added", 4),
        ("DELETE FROM conversations WHERE id < 3", "rows_missing", None),
    ],
)
def test_rows_that_change_between_claim_and_cover(
    log_engine: Engine, statement: str, code: str, id_: int | None
) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 3)
    add(log_engine, "b", ["delivered"])
    add(log_engine, "a", ["delivered"])
    claimed = log.claim("a")
    assert claimed is not None
    run(log_engine, statement)
    assert log.claim("a") == claimed
    (found,) = log.cover(claimed)
    assert (found.code, found.id, found.after, found.through) == (code, id_, 0, 5)
    assert log.violations() == [found]
    assert log.audit(count=True) == [], "what was found is where the next count begins"


def test_an_open_row_that_is_deleted_holds_no_longer(log_engine: Engine) -> None:
    """Deleting is how some tables give up; nothing was handed on of it."""
    log = installed(log_engine)
    add(log_engine, "a", ["delivered", "pending", "delivered"])
    run(log_engine, "DELETE FROM conversations WHERE id = 2")
    assert log.claim("a") is not None
    assert log.audit(count=True) == []


def test_ids_beyond_the_modulus_are_named_too(log_engine: Engine) -> None:
    log = installed(log_engine)
    far = 2**40
    insert_with_id(log_engine, far + 1, "a", "delivered")
    insert_with_id(log_engine, far + 2, "a", "delivered")
    if log_engine.dialect.name == "postgresql":
        run(log_engine, f"ALTER SEQUENCE conversations_id_seq RESTART WITH {far + 3}")
    set_coverage(log_engine, "a", far)
    claimed = log.claim("a")
    assert claimed is not None
    run(log_engine, f"DELETE FROM conversations WHERE id = {far + 1}")
    assert [found.id for found in log.cover(claimed)] == [far + 1]


def test_many_open_rows_behind_coverage_are_recorded_look_by_look(
    log_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gapless.delivery.violations.MOST_AT_ONCE", 3)
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 5)
    add(log_engine, "b", ["delivered"] * 2)
    hand_on(log, "a")
    hand_on(log, "b")
    run(log_engine, "UPDATE conversations SET status = NULL")
    found = [log.audit() for _ in range(4)]
    assert [len(some) for some in found] == [3, 3, 1, 0]
    assert sorted(one.id or 0 for some in found for one in some) == list(range(1, 8))


def test_two_auditors_record_once(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 3)
    hand_on(log)
    mark(log_engine, [1], "pending")
    other = open_log(log_engine, log_engine.dialect.name)
    assert len(log.audit()) + len(other.audit()) == 1
    with log_engine.connect() as connection:
        count = connection.execute(
            sa.text("SELECT count(*) FROM gapless_violation_conversations")
        ).scalar_one()
    assert count == 1
