"""Tables of messages for tests: created on either database, filled, and opened as a log."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from gapless.delivery import MessageLog
from gapless.delivery.log_table import as_text, quoted

TERMINAL = ("delivered", "failed")
IDS = {"sqlite": "autoincrement", "postgresql": "identity"}


def create_table(
    engine: Engine,
    *,
    table: str = "conversations",
    shard: str = "channel_key",
    shard_type: str = "text",
    status: str = "status",
    status_type: str = "text",
) -> None:
    ids = {
        "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "postgresql": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    }[engine.dialect.name]
    columns = f"{quoted(shard)} {shard_type} NOT NULL, {quoted(status)} {status_type}, body text"
    run(engine, as_text(f"CREATE TABLE {quoted(table)} (id {ids}, {columns})"))


def open_log(database: Any, kind: str, **declared: Any) -> MessageLog:
    """The table above as a log. `kind` is the dialect's name."""
    words: dict[str, Any] = {
        "table": "conversations",
        "shard": "channel_key",
        "terminal": TERMINAL,
        "ids": IDS[kind],
        **declared,
    }
    return MessageLog(database, **words)


def installed(engine: Engine, **declared: Any) -> MessageLog:
    """The table and its log, installed."""
    create_table(engine)
    log = open_log(engine, engine.dialect.name, **declared)
    log.install()
    return log


def run(engine: Engine, statement: str, **values: Any) -> Any:
    """One statement in a transaction of its own; `:name` are parameters. Its rows, where it has any."""
    with engine.connect() as connection:
        result = connection.execute(sa.text(statement), values)
        rows = result.all() if result.returns_rows else None
        connection.commit()
    return rows


def add(engine: Engine, shard: Any, statuses: Iterable[Any], *, table: str = "conversations") -> None:
    """A row a status, in this order."""
    rows = [{"shard": shard, "status": status} for status in statuses]
    with engine.connect() as connection:
        if rows:
            connection.execute(
                sa.text(f'INSERT INTO "{table}" (channel_key, status) VALUES (:shard, :status)'), rows
            )
        connection.commit()


def mark(engine: Engine, ids: Iterable[int], status: str | None) -> None:
    for id_ in ids:
        run(engine, "UPDATE conversations SET status = :status WHERE id = :id", status=status, id=id_)


def set_coverage(engine: Engine, shard: Any, through: int, *, table: str = "conversations") -> None:
    run(
        engine,
        f'INSERT INTO "gapless_coverage_{table}" (shard, through) VALUES (:shard, :through)'
        " ON CONFLICT (shard) DO UPDATE SET through = excluded.through",
        shard=shard,
        through=through,
    )
