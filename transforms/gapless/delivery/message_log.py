"""`MessageLog`: the delivery frontier, coverage and claims of a table of messages, shard by shard."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy.engine import URL, Connection, Engine, make_url

from gapless.clock import Clock, SystemClock, instant_text
from gapless.delivery import before_installing, coverage, installing, violations
from gapless.delivery.barrier import barrier_for
from gapless.delivery.coverage import CoveredRange, Shard, ShardState
from gapless.delivery.database import LogDatabase, execute
from gapless.delivery.failures import ConnectionBroke
from gapless.delivery.indexes import find_indexes
from gapless.delivery.installing import Installation
from gapless.delivery.log_reader import Due, LogReader, Standing
from gapless.delivery.log_table import Ids, LogTable, ReflectedLog
from gapless.delivery.own_tables import own_tables
from gapless.delivery.plans import PlanCheck, check_plans
from gapless.delivery.settled import Barrier, Settled
from gapless.delivery.setups import refuse_unsafe
from gapless.delivery.sql_text import sql_text
from gapless.delivery.statements import Indexes
from gapless.delivery.violations import Violation
from gapless.errors import ConfigurationError, NotReached
from gapless.progress import (
    Bound,
    DeliveryFrontier,
    FrontierValue,
    table_frontier,
)

_INTEGERS = range(-(2**63), 2**63)
"""What the widest column of either database takes."""


class MessageLog:
    """A table whose rows are delivered in any order, followed without gaps.

    `database`: a SQLAlchemy URL, engine or connection. `terminal`: the statuses after which nothing more happens to a row;
    every other one, null included, holds the frontier. `ids`: how ids are given out; `triggers`: BEFORE INSERT triggers that
    leave the id alone (see `LogTable`). `freshness`: for how many seconds what is known of open writers is good enough, so
    that many shards are asked about at once. `barrier`: who knows of open writers; None: the one that belongs to the database.

    Opening it creates nothing. Raises ConfigurationError for words that cannot be meant so, NotAMessageLog where the table
    is not as declared, UnsafeSetup where no safe answer exists on it, and DatabaseUnavailable. It may be shared between
    threads, and pickled where it was made by URL; a password does not travel."""

    def __init__(
        self,
        database: str | URL | Engine | Connection,
        *,
        table: str,
        terminal: Sequence[str | int],
        ids: Ids,
        id: str = "id",
        shard: str = "shard",
        status: str = "status",
        schema: str | None = None,
        triggers: Sequence[str] = (),
        freshness: float = 0.0,
        barrier: Barrier | None = None,
        clock: Clock | None = None,
    ) -> None:
        if isinstance(terminal, str) or not isinstance(terminal, Sequence):
            raise ConfigurationError(
                f"{terminal!r} is no list of statuses",
                where="terminal",
                remedy='as in ("delivered", "failed")',
            )
        self.declared = LogTable(
            table=table,
            terminal=tuple(terminal),
            ids=ids,
            schema=schema,
            id=id,
            shard=shard,
            status=status,
            triggers=tuple(triggers),
        )
        self._clock = clock or SystemClock()
        self._freshness = freshness
        self._database = LogDatabase(database)
        self._url = make_url(database) if isinstance(database, str | URL) else None
        with self._database.connection() as connection:
            self._log = self.declared.reflect(connection)
            refuse_unsafe(self._log, connection)
        self._own = own_tables(self._log)
        self._reader = LogReader(self._log, self._own, barrier or barrier_for(self._log, freshness=freshness))

    @property
    def found(self) -> ReflectedLog:
        """The table as the database has it."""
        return self._log

    @property
    def where(self) -> str:
        """The log as a line of an error: never a password."""
        return f"{self._log.where} in {self._database.shown}"

    def install(self, *, redeclare: bool = False) -> Installation:
        """Create the two indexes and gapless's own tables, beside the user's; what is there is kept, so that it may run
        every time.

        PostgreSQL's indexes are built concurrently: no insert waits. `redeclare`: the terminal statuses, the columns or the
        table itself are meant to differ from what was installed before; coverage stays as it is. Raises UnsafeSetup, where
        they differ and this was not said, where an invalid index stands in the way, and where a plan does not use its index."""
        with self._database.connection() as connection:
            before_installing.refuse_before_anything(connection, self._log, self._own)
        with self._database.write() as connection:
            created = installing.create_tables(connection, self._log, self._own, redeclare=redeclare)
        with self._database.connection() as connection:
            indexes, built = installing.create_indexes(connection, self._log, self._own)
            self._reader.prepare(connection, indexes)
        return Installation(created, built, indexes)

    def frontier(self, shard: Shard | UUID) -> DeliveryFrontier:
        """Through which id every row of the shard is terminal, and who keeps it there. Never waits; costs the same however
        many rows are settled. A shard without rows, or one that was never seen, stands at its coverage."""
        key = self._key(shard)
        return self._database.read(lambda connection: self._reader.frontier(connection, key)[0])

    def frontiers(self, shards: Iterable[Shard | UUID] | None = None) -> list[DeliveryFrontier]:
        """The same for several shards; None: for all of them, in the order of the index."""

        def look(connection: Connection) -> list[DeliveryFrontier]:
            keys = self._reader.shards(connection) if shards is None else list(map(self._key, shards))
            return [self._reader.frontier(connection, key)[0] for key in keys]

        return self._database.read(look)

    def standings(self, shards: Iterable[Shard | UUID] | None = None) -> list[Standing]:
        """Where each shard stands, in full; None: all of them."""

        def look(connection: Connection) -> list[Standing]:
            keys = self._reader.shards(connection) if shards is None else list(map(self._key, shards))
            return [self._reader.standing(connection, key) for key in keys]

        return self._database.read(look)

    def table_frontier(self) -> FrontierValue:
        """Through which id every row of the whole table is terminal: the minimum over all shards. Withheld where there is
        none."""

        def look(connection: Connection) -> FrontierValue:
            # Known before the shards are listed: no other shard can appear at or below it.
            settled = self._reader.barrier.settled(connection).id
            bounds: dict[str, Bound | None] = {
                str(shard): self._reader.frontier(connection, shard)[0].complete
                for shard in self._reader.shards(connection)
            }
            return table_frontier(bounds, settled)

        return self._database.read(look)

    def newly_covered(self, shard: Shard | UUID) -> CoveredRange:
        """The range from the coverage to the frontier, with its number of rows: by the shard's own index only. Empty where
        nothing is new.

        For looking: what is handed on is claimed first, since this range may be another one at the next look."""
        key = self._key(shard)

        def look(connection: Connection) -> CoveredRange:
            frontier, _ = self._reader.frontier(connection, key)
            return self._reader.counted(connection, key, frontier)[0]

        return self._database.read(look)

    def claim(self, shard: Shard | UUID, *, at_least: int = 1) -> CoveredRange | None:
        """The range to hand on now, its end fixed durably; None where fewer than `at_least` rows are newly covered.

        A retry or a rival gets this very range until it is covered, whatever `at_least` it asks for."""
        if at_least < 1:
            raise ConfigurationError(
                f"a range of {at_least} rows is none", where="at_least", remedy="an integer from 1 on"
            )
        key = self._key(shard)
        while True:
            due = self._database.read(lambda connection: self._reader.due(connection, key))
            state: ShardState | None = due.state
            if due.state.claimed is None:
                if due.covered.rows < at_least:
                    return None
                state = self._claim(due)
            # Else a rival has claimed and covered it in the meantime, or the server has restarted: the next look tells.
            if state is not None and state.claimed is not None:
                rows = state.claimed_tally.count if state.claimed_tally else 0
                return CoveredRange(key, state.through, state.claimed, rows)

    def cover(self, covered: CoveredRange) -> tuple[Violation, ...]:
        """After the effect: the shard's coverage becomes the range's end, durably.

        What has changed in the range since it was claimed is recorded, and returned. Raises CoverageMoved where another
        worker was first, and NotReached where the end is neither claimed nor at or below the settled id: rows may still appear
        below it. Nothing is changed then."""
        try:
            return self._cover(covered)
        except ConnectionBroke:
            # The answer was lost: whether it was done can be read.
            if self.coverage(covered.shard) >= covered.through:
                return ()
            return self._cover(covered)

    def coverage(self, shard: Shard | UUID) -> int:
        """Through which id the shard is handed on; 0 where it never was."""
        key = self._key(shard)
        state = self._database.read(lambda connection: self._reader.state(connection, key))
        return state.through

    def shards(self) -> list[Shard]:
        """Every shard that has a row or a coverage, by as many steps along the index as there are shards."""
        return self._database.read(self._reader.shards)

    def shards_between(self, after: int, through: int) -> list[Shard]:
        """The shards that have rows with `after` < id <= `through`."""
        names = {"after": after, "settled": through}

        def look(connection: Connection) -> list[Shard]:
            rows = execute(connection, self._reader.ready(connection).shards_between, names)
            return [self._reader.shard_found(shard) for (shard,) in rows]

        return self._database.read(look)

    def settled(self) -> Settled:
        """The settled id, and the open writers that keep it from rising."""
        return self._database.read(self._reader.barrier.settled)

    def audit(self, shards: Iterable[Shard | UUID] | None = None, *, count: bool = False) -> list[Violation]:
        """Look for violations, record them, and return those that were not known.

        Rows that are open behind their coverage are looked for in all shards, by the index on open rows. `count` also counts
        every covered row of `shards` (None: all), to find rows that are gone or were added there."""
        found: list[Violation] = []
        with self._database.write() as connection:
            known = self._reader.ready(connection)
            for violation in violations.open_behind(connection, known, self._clock):
                if violations.record(connection, known, violation):
                    found.append(violation)
        if count:
            for key in self.shards() if shards is None else map(self._key, shards):
                with self._database.write() as connection:
                    known = self._reader.ready(connection)
                    change = violations.audit_shard(connection, known, key, self._clock)
                    if change is not None and violations.record(connection, known, change):
                        found.append(change)
        return found

    def violations(self) -> list[Violation]:
        """Every violation on record, the oldest first."""
        return self._database.read(
            lambda connection: violations.stored(connection, self._reader.ready(connection))
        )

    def check(self) -> tuple[PlanCheck, ...]:
        """The set-up and the plan of each statement, asked anew. Writes nothing.

        Raises UnsafeSetup and NotInstalled; a plan that is not as it has to be is a `problem` of its check."""
        with self._database.connection() as connection:
            installing.refuse_other_declaration(connection, self._log, self._own)
            self._reader.watch(connection)
            indexes = installing.installed_indexes(connection, self._log, self._own)
            return check_plans(connection, self._log, self._reader.statements(indexes), indexes)

    def watch(self) -> None:
        """Whether the set-up is still a safe one. Raises UnsafeSetup and NotInstalled. Cheap: once a minute is often."""
        with self._database.connection() as connection:
            self._reader.watch(connection)

    def sql(self) -> str:
        """Tables, indexes and statements as text, for any language."""
        with self._database.connection() as connection:
            found = find_indexes(connection, self._log, self._own)
        indexes = Indexes(found.open or self._own.open_index, found.all or self._own.all_index)
        return sql_text(self._log, self._own, self._reader.statements(indexes, for_driver=False))

    def reference(self) -> "LogRef":
        """The log as it may travel. Raises ConfigurationError where it was opened by something that does not."""
        if self._url is None or self._url.password is not None:
            what = "an engine or a connection" if self._url is None else "a password in its URL"
            raise ConfigurationError(
                f"the log was opened by {what}, which does not travel",
                where=self.where,
                remedy="open it by a URL without a password: PGPASSWORD or .pgpass give it on the workers",
            )
        return LogRef(self._url.render_as_string(hide_password=False), self.declared, self._freshness)

    def __reduce__(self) -> tuple[object, ...]:
        return LogRef.open, (self.reference(),)

    def close(self) -> None:
        """Close the connections that were opened here."""
        self._database.close()

    def _claim(self, due: Due) -> ShardState | None:
        """The state after the attempt. None where the server has restarted since the range was found: what was seen then may
        be lost."""

        def attempt() -> ShardState | None:
            with self._database.write() as connection:
                known = self._reader.ready(connection)
                if execute(connection, known.incarnation, {}).scalar_one() != due.incarnation:
                    return None
                found = due.covered
                return coverage.claim(connection, known, found.shard, found.after, found.through, due.counted)

        try:
            return attempt()
        except ConnectionBroke:
            # Whether or not the first attempt took effect, the second finds what is claimed.
            return attempt()

    def _cover(self, covered: CoveredRange) -> tuple[Violation, ...]:
        try:
            return self._swap(covered, None)
        except NotReached:
            # Nobody has claimed it. Only here the settled id is asked for, outside of any transaction: a claimed end is settled.
            return self._swap(covered, self.settled().id)

    def _swap(self, covered: CoveredRange, settled: int | None) -> tuple[Violation, ...]:
        with self._database.write() as connection:
            known = self._reader.ready(connection)
            claimed, now = coverage.cover(connection, known, covered, settled=settled)
            if claimed is None:
                return ()
            found = violations.range_violation(covered, claimed, now, instant_text(self._clock.now()))
            if found is None:
                return ()
            violations.record(connection, known, found)
            return (found,)

    def _key(self, shard: object) -> Shard:
        """A shard as the database compares it. Raises ConfigurationError for one of another type."""
        return shard_key(self._log, shard)


class PasswordReference(Protocol):
    """Names a password without holding it; a `SecretReference` is one."""

    def resolve(self) -> Any:
        """An object whose `reveal()` gives the password."""


@dataclass(frozen=True, slots=True)
class LogRef:
    """Where a log is and how it is declared: what travels to other processes, and is opened there.

    `password` says where the password stands, and is asked when the log is opened."""

    url: str
    declared: LogTable
    freshness: float = 0.0
    password: PasswordReference | None = None

    def open(self) -> MessageLog:
        """Raises as `MessageLog`, and ConfigurationError for a password that is not where it should be."""
        declared, url = self.declared, make_url(self.url)
        if self.password is not None:
            url = url.set(password=self.password.resolve().reveal())
        return MessageLog(
            url,
            table=declared.table,
            terminal=declared.terminal,
            ids=declared.ids,
            schema=declared.schema,
            id=declared.id,
            shard=declared.shard,
            status=declared.status,
            triggers=declared.triggers,
            freshness=self.freshness,
        )


def shard_key(log: ReflectedLog, shard: object) -> Shard:
    """`shard` as the column's values are written here: an integer, a text, or a UUID as its text."""
    kind = log.shard_kind
    if kind == "integer" and isinstance(shard, int) and type(shard) is not bool and shard in _INTEGERS:
        return shard
    # SQLite keeps a text with such a character, and PostgreSQL takes none.
    if kind == "text" and isinstance(shard, str) and (log.dialect == "sqlite" or "\0" not in shard):
        return shard
    if kind == "uuid" and isinstance(shard, UUID | str):
        try:
            return str(UUID(str(shard)))
        except ValueError:
            pass
    raise ConfigurationError(
        f"{shard!r} is no shard of this log",
        where=f"{log.where}, column {log.shard}",
        remedy=f"give a value of type {kind}",
    )
