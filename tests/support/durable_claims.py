"""One consistent read of everything that a store claims, by SQL of its own: what the oracle judges."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from gapless.paging.page_token import PageToken
from gapless.progress import Bound, IntegerDomain

DOMAIN = IntegerDomain()


@dataclass(frozen=True)
class Chain:
    number: int
    partition: str
    state: str
    fencing_token: int
    sequence: int
    bound: Bound | None
    events: int
    dead_letters: int


@dataclass(frozen=True)
class Listed:
    """A promotion: `path` None where it has no file."""

    chain: int
    sequence: int
    pages: int
    fencing_token: int
    token_in: str | None
    token_out: str | None
    path: str | None
    digest: str | None
    rows: int
    events: int


@dataclass(frozen=True)
class Instant:
    """One consistent read of everything that is claimed."""

    frontier: Bound | None
    history: Sequence[Bound]
    schema: str | None
    chains: Mapping[int, Chain]
    manifest: Sequence[Listed]
    dead: Mapping[int, frozenset[str]]
    restarts: Mapping[int, Sequence[tuple[int, int]]]
    """Chain -> (sequence, position) at which it was restarted, and from which."""


def read_only_engine(url: str) -> sa.Engine:
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        return sa.create_engine(
            f"sqlite:///file:{path}?mode=ro&uri=true", poolclass=NullPool, connect_args={"timeout": 30}
        )
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=NullPool)


def instant(engine: sa.Engine, scope: str) -> Instant | None:
    """What is claimed now; None where no store, or no scope, is there yet."""
    try:
        return _at_once(engine, scope)
    except sa.exc.OperationalError:
        if engine.dialect.name == "sqlite" and Path(engine.url.database or "").exists():
            raise
        return None


def _at_once(engine: sa.Engine, scope: str) -> Instant | None:
    with _one_snapshot(engine) as ask:
        if ask is None:
            return None
        scopes = ask("SELECT frontier, data_schema FROM gapless_scope WHERE scope = :scope", scope=scope)
        if not scopes:
            return None
        frontier, schema = scopes[0]
        history = ask(
            "SELECT frontier FROM gapless_frontier_history WHERE scope = :scope ORDER BY number",
            scope=scope,
        )
        chains = ask(
            "SELECT chain, partition, state, fencing_token, sequence, bound, events, dead_letters FROM gapless_chain"
            " WHERE scope = :scope",
            scope=scope,
        )
        manifest = ask(
            "SELECT p.chain, p.sequence, p.pages, p.fencing_token, p.token_in, p.token_out, p.path, p.digest, p.rows,"
            " p.events FROM gapless_promotion p JOIN gapless_chain c ON c.chain = p.chain WHERE c.scope = :scope"
            " ORDER BY p.chain, p.sequence",
            scope=scope,
        )
        dead = ask("SELECT chain, event_id FROM gapless_dead_letter WHERE scope = :scope", scope=scope)
        journal = ask(
            "SELECT chain, detail FROM gapless_journal WHERE scope = :scope AND action = 'restart'",
            scope=scope,
        )
    letters: dict[int, set[str]] = {}
    for chain, event_id in dead:
        letters.setdefault(chain, set()).add(event_id)
    restarts: dict[int, list[tuple[int, int]]] = {}
    for chain, detail in journal:
        written = json.loads(detail)
        since = PageToken.decode(written["to"]).since
        restarts.setdefault(chain, []).append((written["sequence"], int(str(since))))
    return Instant(
        frontier=DOMAIN.from_key(bytes(frontier)),
        history=[bound for (key,) in history if (bound := DOMAIN.from_key(bytes(key))) is not None],
        schema=schema,
        chains={row[0]: Chain(*row[:5], DOMAIN.from_key(bytes(row[5])), *row[6:]) for row in chains},
        manifest=[Listed(*row) for row in manifest],
        dead={chain: frozenset(events) for chain, events in letters.items()},
        restarts=restarts,
    )


@contextmanager
def _one_snapshot(engine: sa.Engine) -> Iterator[Any]:
    """A function that asks within one read transaction; None where no store is there yet."""
    with engine.connect() as connection:
        if engine.dialect.name != "sqlite":
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        else:
            connection.exec_driver_sql("BEGIN")
        if not sa.inspect(connection).has_table("gapless_journal"):
            yield None
            return
        yield lambda statement, **values: list(map(tuple, connection.execute(sa.text(statement), values)))
