"""A message log on a PostgreSQL of its own, who asks about it, and any number of writers in sessions of their own."""

import psycopg
import pytest
from own_postgres import OwnServer
from sqlalchemy.engine import Engine

from gapless.delivery import LogTable, Settled, barrier_for

TABLE = (
    "CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard text NOT NULL, status text)"
)
INSERT = "INSERT INTO log (shard, status) VALUES ('s', 'done')"

# An older major version too: locks, counters and their names are the server's.
ON_EACH_VERSION = [
    pytest.mark.postgres,
    pytest.mark.parametrize(
        "postgres_of_its_own", [None, 16], indirect=True, ids=["newest", "16"], scope="package"
    ),
]


class Scene:
    """A log, who asks about it, and any number of writers in sessions of their own."""

    def __init__(self, server: OwnServer, engine: Engine) -> None:
        self.server = server
        self.engine = engine
        self.admin = server.connect(autocommit=True)
        self.admin.execute(TABLE)
        self.connection = engine.connect()
        self.reflect()
        self.writers: list[psycopg.Connection] = []

    def reflect(self) -> None:
        self.log = LogTable(table="log", terminal=("done",), ids="identity").reflect(self.connection)
        self.barrier = barrier_for(self.log)

    def settled(self) -> Settled:
        return self.barrier.settled(self.connection)

    def writer(self, **options: object) -> psycopg.Connection:
        """Inside a transaction that has one row."""
        writer = self.server.connect(**options)
        self.writers.append(writer)
        writer.execute(INSERT)
        return writer

    def insert(self, rows: int = 1) -> None:
        for _ in range(rows):
            self.admin.execute(INSERT)

    def reconnect(self) -> None:
        """After the server's sessions have all ended."""
        for one in (self.admin, *self.writers):
            one.close()
        self.writers.clear()
        self.connection.invalidate()
        self.connection.close()
        self.admin = self.server.connect(autocommit=True)
        self.connection = self.engine.connect()

    def close(self) -> None:
        self.connection.close()
        for one in (self.admin, *self.writers):
            one.close()
