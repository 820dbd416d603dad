"""What gapless keeps beside a user's table: its format is pinned. Changing one is a migration, and a line in the changelog."""

import sqlalchemy as sa
from message_tables import add, installed, open_log, run
from sqlalchemy.engine import Engine

from gapless.delivery.own_tables import FORMAT, own_tables


def test_the_tables_and_indexes_are_those_of_format_1(log_engine: Engine) -> None:
    log = installed(log_engine)
    inspector = sa.inspect(log_engine)
    assert FORMAT == 1
    assert {
        table: [column["name"] for column in inspector.get_columns(table)]
        for table in inspector.get_table_names()
        if table.startswith("gapless_")
    } == {
        "gapless_message_log": ["log", "format", "declaration", "relation", "system_identifier"],
        "gapless_coverage_conversations": [
            *("shard", "through", "claimed", "claimed_count", "claimed_sum", "covered_count", "covered_sum")
        ],
        "gapless_violation_conversations": [
            *("shard", "code", "after", "through", "number", "id", "detail", "found_at")
        ],
    }
    indexes = log.install().indexes
    assert (indexes.open, indexes.all) == (
        "gapless_open_conversations_017871cf",
        "gapless_all_conversations_9c50d504",
    )


def test_the_declaration_is_text_that_stays_the_same(log_engine: Engine) -> None:
    installed(log_engine)
    assert run(log_engine, "SELECT log, format, declaration FROM gapless_message_log") == [
        (
            "conversations",
            1,
            '{"id": "id", "shard": "channel_key", "status": "status", "terminal": ["delivered", "failed"]}',
        )
    ]


def test_rows_of_the_coverage_and_of_violations(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"] * 3)
    claimed = log.claim("a")
    assert claimed is not None
    assert run(log_engine, "SELECT * FROM gapless_coverage_conversations") == [("a", 0, 3, 3, 6, 0, 0)]
    log.cover(claimed)
    assert run(log_engine, "SELECT * FROM gapless_coverage_conversations") == [
        ("a", 3, None, None, None, 3, 6)
    ]
    run(log_engine, "DELETE FROM conversations WHERE id = 2")
    (found,) = log.audit(count=True)
    assert run(log_engine, "SELECT * FROM gapless_violation_conversations") == [
        ("a", "rows_missing", 0, 3, 0, 2, "1 row: counted 3, now 2", found.found_at)
    ]


def test_shards_are_equal_in_the_coverage_where_they_are_in_the_table(sqlite_engine: Engine) -> None:
    run(
        sqlite_engine,
        "CREATE TABLE conversations (id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " channel_key TEXT COLLATE NOCASE NOT NULL, status TEXT)",
    )
    log = open_log(sqlite_engine, "sqlite")
    log.install()
    for shard in ("A", "a"):
        add(sqlite_engine, shard, ["delivered"])
    claimed = log.claim("a")
    assert claimed is not None
    assert claimed.rows == 2
    log.cover(claimed)
    assert log.coverage("A") == 2
    assert own_tables(log.found).coverage == "gapless_coverage_conversations"
