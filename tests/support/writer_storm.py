"""A storm of writers on a message log in PostgreSQL, and what was claimed about it meanwhile, judged afterwards.

Rows are never deleted and a terminal row stays terminal, so that after the storm the table tells for every claim which
rows ever became visible in its range.
"""

import contextlib
import random
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import psycopg
import sqlalchemy as sa
from own_postgres import OwnServer

SHARDS = ("a", "b", "c")
TERMINAL = ("delivered", "dead")

# The default of `note` is computed after the id is taken: a writer may linger between its id and everything else.
SCHEMA = """
CREATE FUNCTION linger() RETURNS text LANGUAGE plpgsql VOLATILE AS
  'BEGIN IF random() < 0.05 THEN PERFORM pg_sleep(random() * 0.01); END IF; RETURN NULL; END';
CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard text NOT NULL, status text, priority int NOT NULL,
  note text DEFAULT linger());
CREATE INDEX ON log (shard, id);
CREATE INDEX ON log (priority DESC) WHERE (status IN ('delivered', 'dead')) IS NOT TRUE
"""

_ENDED = (psycopg.OperationalError, psycopg.InterfaceError, sa.exc.OperationalError, sa.exc.InterfaceError)
_NOT_THERE = (psycopg.errors.UndefinedObject, psycopg.errors.ObjectNotInPrerequisiteState)

Look = Callable[["Observer"], None]
Act = Callable[[psycopg.Connection[Any], random.Random], None]


@dataclass(frozen=True)
class Claim:
    """That (after, through] of the shard holds exactly `rows` rows, with this sum of ids (None: not told), and no open one."""

    shard: str
    after: int
    through: int
    rows: int
    ids: int | None
    open: int


@dataclass
class Storm:
    server: OwnServer
    seed: int
    writers: int = 6
    prepare: float = 0.1
    claims: dict[str, list[Claim]] = field(default_factory=lambda: defaultdict(list))
    coverage: dict[str, dict[str, int]] = field(
        default_factory=lambda: defaultdict(lambda: dict.fromkeys(SHARDS, 0))
    )
    failures: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self._turn = threading.Lock()

    def create(self) -> None:
        with self.server.connect(autocommit=True) as admin:
            admin.execute(SCHEMA)

    def blow(
        self, observers: dict[str, Look], seconds: float, trouble: Callable[[], None] | None = None
    ) -> None:
        """Writers and observers run for so long; `trouble` happens half-way. Afterwards every transaction has ended."""
        self._stop = threading.Event()
        self.engine = sa.create_engine(self.server.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        acts: list[Act] = [*[self._writer] * self.writers, self._slow_writer, *[self._dispatcher] * 2]
        acts.extend(Observer(self, name, look).run for name, look in observers.items())
        threads = [threading.Thread(target=self._session, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        try:
            self.pause(seconds / 2)
            if trouble is not None:
                trouble()
            self.pause(seconds / 2)
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
            self.engine.dispose()
        if self.failures:
            raise self.failures[0]
        with self.server.connect(autocommit=True) as admin:
            _end_prepared(admin, older="0 s")

    @property
    def over(self) -> bool:
        return self._stop.is_set()

    def pause(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def false(self) -> dict[str, int]:
        """By observer: how many of its claims are contradicted by the table as it is now."""
        with self.server.connect() as admin:
            ids: dict[str, list[int]] = {shard: [] for shard in SHARDS}
            for shard, id_ in admin.execute("SELECT shard, id FROM log ORDER BY id"):
                ids[shard].append(id_)
        sums = {shard: [0, *accumulate(known)] for shard, known in ids.items()}

        def contradicted(claim: Claim) -> bool:
            first, last = (bisect_right(ids[claim.shard], bound) for bound in (claim.after, claim.through))
            rows, total = last - first, sums[claim.shard][last] - sums[claim.shard][first]
            ids_as_told = total if claim.ids is None else claim.ids
            return (claim.rows, ids_as_told, claim.open) != (rows, total, 0)

        return {name: sum(map(contradicted, claims)) for name, claims in self.claims.items()}

    def _session(self, act: Act) -> None:
        """`act` again and again on a connection, and on another one whenever the server has ended it."""
        with self._turn:
            dice = random.Random(self._dice.random())
        try:
            while not self.over:
                with contextlib.suppress(*_ENDED), self.server.connect(autocommit=True) as connection:
                    while not self.over:
                        act(connection, dice)
                    return
                self.pause(0.05)
        except BaseException as error:  # noqa: BLE001 - told to the thread that judges
            self.failures.append(error)
            self._stop.set()

    def _writer(self, connection: psycopg.Connection[Any], dice: random.Random) -> None:
        connection.execute("BEGIN")
        for _ in range(dice.choice((1, 1, 1, 2, 4))):
            self._rows(connection, dice)
            if dice.random() < 0.3:
                self.pause(dice.random() * 0.01)
        end = dice.random()
        if end < self.prepare:
            gid = f"{dice.random()}"
            connection.execute(f"PREPARE TRANSACTION '{gid}'")
            self.pause(dice.random() * 0.03)
            with contextlib.suppress(*_NOT_THERE):
                connection.execute(f"{dice.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} PREPARED '{gid}'")
        else:
            connection.execute("ROLLBACK" if end < self.prepare + 0.15 else "COMMIT")
        self.pause(dice.random() * 0.06)

    def _slow_writer(self, connection: psycopg.Connection[Any], dice: random.Random) -> None:
        connection.execute("BEGIN")
        self._rows(connection, dice)
        self.pause(0.05 + dice.random() * 0.2)
        connection.execute("COMMIT")
        self.pause(0.3 + dice.random() * 0.3)

    def _rows(self, connection: psycopg.Connection[Any], dice: random.Random) -> None:
        insert = "INSERT INTO log (shard, status, priority) VALUES "
        kind = dice.random()
        if kind < 0.5:
            connection.execute(insert + _row(dice))
        elif kind < 0.7:
            connection.execute(insert + ", ".join(_row(dice) for _ in range(dice.randrange(2, 9))))
        elif kind < 0.85:
            connection.execute("SAVEPOINT before")
            connection.execute(insert + _row(dice))
            connection.execute("ROLLBACK TO before" if dice.random() < 0.7 else "RELEASE before")
        else:
            with connection.cursor().copy("COPY log (shard, status, priority) FROM STDIN") as copy:
                for _ in range(dice.randrange(1, 6)):
                    copy.write_row((dice.choice(SHARDS), "delivered", dice.randrange(3)))

    def _dispatcher(self, connection: psycopg.Connection[Any], dice: random.Random) -> None:
        """The urgent ones first, whatever their ids; some are tried again later, some end as dead letters."""
        outcome = dice.choice(("delivered", "delivered", "delivered", "retry", "dead", None))
        connection.execute(
            "UPDATE log SET status = %s WHERE id IN (SELECT id FROM log WHERE (status IN ('delivered', 'dead')) IS NOT TRUE"
            " ORDER BY priority DESC LIMIT %s FOR UPDATE SKIP LOCKED)",
            [outcome, dice.randrange(1, 40)],
        )
        if dice.random() < 0.05:
            _end_prepared(connection, older="1 s")
        self.pause(dice.random() * 0.01)


class Observer:
    """Asks for one shard after another, and goes on from what it claimed, or now and then once more from the same."""

    def __init__(self, storm: Storm, name: str, look: Look) -> None:
        self.storm = storm
        self.name = name
        self.look = look
        self.coverage = storm.coverage[name]
        self.connection: psycopg.Connection[Any]
        self.alchemy: sa.Connection
        self.dice: random.Random

    def run(self, connection: psycopg.Connection[Any], dice: random.Random) -> None:
        with self.storm.engine.connect() as alchemy:
            self.connection, self.alchemy, self.dice = connection, alchemy, dice
            while not self.storm.over:
                self.look(self)
                self.storm.pause(0.002)

    def frontiers(self, settled: int, also: str = "true") -> None:
        """Claims the frontier of each shard up to the settled id, where `also` holds in the same statement."""
        for shard in SHARDS:
            after = self.coverage[shard]
            bounds = {"shard": shard, "after": after, "settled": settled}
            row = self.connection.execute(FRONTIER.replace("{also}", also), bounds).fetchone()
            if row is None or row[0] == after or not row[4]:
                continue
            through, rows, ids, open_, _ = row
            self.storm.claims[self.name].append(Claim(shard, after, through, rows, int(ids), open_))
            if self.dice.random() < 0.5:
                self.coverage[shard] = through


def _end_prepared(connection: psycopg.Connection[Any], older: str) -> None:
    """The second phase of transactions whose writers the server has ended."""
    left = "SELECT gid FROM pg_prepared_xacts WHERE prepared <= clock_timestamp() - CAST(%s AS interval)"
    for (gid,) in connection.execute(left, [older]).fetchall():
        with contextlib.suppress(*_NOT_THERE):
            connection.execute(f"COMMIT PREPARED '{gid}'")


# Law: min(non-terminal id in (c, S]) - 1, else the largest visible id in (c, S], else c; and what is there, in one statement.
FRONTIER = """
WITH open AS (SELECT min(id) AS id FROM log WHERE shard = %(shard)s AND id > %(after)s AND id <= %(settled)s
    AND (status IN ('delivered', 'dead')) IS NOT TRUE),
  last AS (SELECT max(id) AS id FROM log WHERE shard = %(shard)s AND id > %(after)s AND id <= %(settled)s),
  frontier AS (SELECT coalesce(open.id - 1, last.id, %(after)s) AS through FROM open, last)
SELECT through, count(log.id), coalesce(sum(log.id), 0),
  count(log.id) FILTER (WHERE (status IN ('delivered', 'dead')) IS NOT TRUE), {also}
FROM frontier LEFT JOIN log ON shard = %(shard)s AND log.id > %(after)s AND log.id <= through GROUP BY through
"""


def _row(dice: random.Random) -> str:
    status = dice.choice(("'delivered'", "'delivered'", "'pending'", "'pending'", "NULL"))
    return f"('{dice.choice(SHARDS)}', {status}, {dice.randrange(3)})"
