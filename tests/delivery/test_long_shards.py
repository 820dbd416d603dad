"""Shards that no entry of a PostgreSQL index takes: one clear error, and nothing created."""

import random

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, installed, open_log, run
from sqlalchemy.engine import Engine

from gapless.errors import NotAMessageLog, UnsafeSetup


def incompressible(length: int) -> str:
    draw = random.Random(length)
    return "".join(chr(draw.randrange(0x21, 0x7F)) for _ in range(length))


@pytest.mark.parametrize("length", [2690, 2800, 9000])
def test_a_shard_that_no_index_takes_is_refused_before_anything(postgres_engine: Engine, length: int) -> None:
    create_table(postgres_engine)
    add(postgres_engine, "short", ["delivered"])
    add(postgres_engine, incompressible(length), ["delivered"])
    log = open_log(postgres_engine, "postgresql")
    with pytest.raises(
        UnsafeSetup, match=r"(?s)the shard of row 2 takes \d+ bytes.*md5\(.channel_key.\)"
    ) as caught:
        log.install()
    assert caught.value.setup == "shard_too_long"
    inspector = sa.inspect(postgres_engine)
    assert inspector.get_table_names() == ["conversations"]
    assert inspector.get_indexes("conversations") == []


def test_what_the_error_says_to_do_helps(postgres_engine: Engine) -> None:
    create_table(postgres_engine)
    add(postgres_engine, incompressible(9000), ["delivered"] * 2)
    run(
        postgres_engine,
        "ALTER TABLE conversations ADD COLUMN short text GENERATED ALWAYS AS (md5(channel_key)) STORED NOT NULL",
    )
    log = open_log(postgres_engine, "postgresql", shard="short")
    log.install()
    (shard,) = log.shards()
    assert log.frontier(shard).through == 2


@pytest.mark.parametrize("shard", [incompressible(2500), "long " * 4000])
def test_a_long_shard_that_an_index_takes_is_handed_on_and_violated(
    postgres_engine: Engine, shard: str
) -> None:
    create_table(postgres_engine)
    add(postgres_engine, shard, ["delivered"] * 3)
    log = open_log(postgres_engine, "postgresql")
    log.install()
    claimed = log.claim(shard)
    assert claimed is not None
    log.cover(claimed)
    run(postgres_engine, "UPDATE conversations SET status = 'pending' WHERE id = 2")
    run(postgres_engine, "DELETE FROM conversations WHERE id = 1")
    assert {found.code for found in log.audit(count=True)} == {"open_behind_coverage", "rows_missing"}


def test_a_row_too_long_for_an_index_is_told_by_what_it_means(postgres_engine: Engine) -> None:
    """Where it comes while the indexes are being built: the server's own error, in words."""
    log = installed(postgres_engine)
    with (
        pytest.raises(NotAMessageLog, match="longer than an index takes"),
        log._database.write() as connection,
    ):
        connection.exec_driver_sql(
            "INSERT INTO gapless_coverage_conversations (shard) VALUES (%(shard)s)",
            {"shard": incompressible(9000)},
        )
