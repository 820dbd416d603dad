"""What is asked of a log over one connection: a shard's frontier, its state, and the range that is due."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from gapless.delivery import coverage, installing
from gapless.delivery.coverage import NEVER_SEEN, CoveredRange, Shard, ShardState, Tally
from gapless.delivery.database import execute, transaction
from gapless.delivery.log_table import ReflectedLog
from gapless.delivery.own_tables import OwnTables
from gapless.delivery.plans import check_plans, refuse_other_plans
from gapless.delivery.settled import Barrier, OpenWriter
from gapless.delivery.setups import refuse_unsafe, watch
from gapless.delivery.statements import Indexes, Statements, statements
from gapless.delivery.violations import shard_of
from gapless.errors import DatabaseUnavailable, UnsafeSetup
from gapless.progress import DeliveryBlocker, DeliveryFrontier, delivered_through

_ATTEMPTS = 3
"""A statement that met another incarnation of the server than its settled id is asked again."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A shard's frontier, the rows that are newly covered, and the end of the range that is claimed, None where none is."""

    frontier: DeliveryFrontier
    newly_covered: int
    claimed: int | None


@dataclass(frozen=True, slots=True)
class Due:
    """The state of a shard, and the range that is due where nothing is claimed. It holds for one `incarnation` of the
    server."""

    state: ShardState
    covered: CoveredRange
    counted: Tally
    incarnation: str


@dataclass(frozen=True, slots=True)
class _Look:
    frontier: DeliveryFrontier
    state: ShardState
    incarnation: str


class LogReader:
    """One log's questions. It keeps the statements, once the log is known to be installed; threads may share it."""

    def __init__(self, log: ReflectedLog, own: OwnTables, barrier: Barrier) -> None:
        self.log = log
        self.own = own
        self.barrier = barrier
        self._prepared: Statements | None = None

    def ready(self, connection: Connection) -> Statements:
        """The statements. The first time: raises NotInstalled, and UnsafeSetup where the log is not as it was installed or a
        predicate is not answered by its index."""
        if self._prepared is None:
            installing.refuse_other_declaration(connection, self.log, self.own)
            self.prepare(connection, installing.installed_indexes(connection, self.log, self.own))
        return self._prepared or self.ready(connection)

    def prepare(self, connection: Connection, indexes: Indexes) -> None:
        """Settle on these indexes. Raises UnsafeSetup."""
        prepared = self.statements(indexes)
        refuse_other_plans(check_plans(connection, self.log, prepared, indexes), self.log)
        highest = installing.highest_coverage(connection, self.log, self.own)
        refuse_unsafe(self.log, connection, highest_coverage=highest)
        self._prepared = prepared

    def statements(self, indexes: Indexes, *, for_driver: bool = True) -> Statements:
        incarnation = self.barrier.incarnation_sql
        return statements(self.log, self.own, indexes, incarnation, for_driver=for_driver)

    def watch(self, connection: Connection) -> None:
        """Raises UnsafeSetup where the set-up is no longer a safe one."""
        highest = installing.highest_coverage(connection, self.log, self.own)
        watch(self.log, connection, highest_coverage=highest)

    def frontier(self, connection: Connection, shard: Shard) -> tuple[DeliveryFrontier, ShardState]:
        found = self._look(connection, shard)
        return found.frontier, found.state

    def due(self, connection: Connection, shard: Shard) -> Due:
        """What is claimed; else the range that could be, with its tally."""
        found = self._look(connection, shard)
        if found.state.claimed is not None:
            nothing = CoveredRange(shard, found.state.through, found.state.through, 0)
            return Due(found.state, nothing, Tally(0, 0), found.incarnation)
        covered, counted = self.counted(connection, shard, found.frontier)
        return Due(found.state, covered, counted, found.incarnation)

    def _look(self, connection: Connection, shard: Shard) -> _Look:
        known = self.ready(connection)
        for _ in range(_ATTEMPTS):
            settled = self.barrier.settled(connection)
            row = execute(connection, known.frontier, {"shard": shard, "settled": settled.id}).one()
            if row.incarnation != settled.incarnation:
                continue
            state = coverage.state_of(row)
            through = delivered_through(state.through, settled.id, row.first_open, row.last)
            blocker = _blocker(row.first_open, _status(row.status), settled.blockers)
            frontier = DeliveryFrontier(shard, state.through, through, blocker, settled.id)
            return _Look(frontier, state, settled.incarnation)
        raise DatabaseUnavailable(
            "the server was started anew while it was asked", where=self.log.where, remedy="try again"
        )

    def counted(
        self, connection: Connection, shard: Shard, frontier: DeliveryFrontier
    ) -> tuple[CoveredRange, Tally]:
        """The range from the coverage to the frontier, and its tally."""
        after, through = frontier.coverage, frontier.through
        counted = Tally(0, 0)
        if through > after:
            known = self.ready(connection)
            with transaction(connection):
                counted = coverage.tally(connection, known, shard, after, through)
        return CoveredRange(shard, after, through, counted.count), counted

    def standing(self, connection: Connection, shard: Shard) -> Standing:
        frontier, state = self.frontier(connection, shard)
        _, counted = self.counted(connection, shard, frontier)
        return Standing(frontier, counted.count, state.claimed)

    def state(self, connection: Connection, shard: Shard) -> ShardState:
        return coverage.read_state(connection, self.ready(connection), shard) or NEVER_SEEN

    def shards(self, connection: Connection) -> list[Shard]:
        known = self.ready(connection)
        with_rows = [self.shard_found(shard) for (shard,) in execute(connection, known.shards, {})]
        seen = set(with_rows)
        covered = (shard_of(shard) for (shard,) in execute(connection, known.covered_shards, {}))
        return with_rows + [shard for shard in covered if shard not in seen]

    def shard_found(self, value: object) -> Shard:
        """A shard of a row, as the driver gives it. Raises UnsafeSetup for one that SQLite keeps under another type than its
        column's: nobody can ask for it, so that its rows would be in no range."""
        kind = self.log.shard_kind
        if kind == "uuid" or isinstance(value, int if kind == "integer" else str):
            return shard_of(value)
        raise UnsafeSetup(
            f"shard {value!r} is kept as {type(value).__name__}, and column {self.log.shard} is {kind}: its rows are in no range",
            where=self.log.where,
            remedy="write it anew as the column's type; a STRICT table lets no other in",
            setup="shard_of_another_type",
        )


def _status(value: object) -> str | int | None:
    """As it is told: SQLite may keep one under a type that is neither text nor integer."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return value if value is None or isinstance(value, str | int) else str(value)


def _blocker(
    first_open: int | None, status: str | int | None, writers: Sequence[OpenWriter]
) -> DeliveryBlocker | None:
    if first_open is not None:
        return DeliveryBlocker("non_terminal", id=first_open, status=status)
    for writer in writers:
        return DeliveryBlocker(
            writer.code,
            pid=writer.pid,
            user=writer.user,
            application=writer.application,
            since=writer.since,
            gid=writer.gid,
        )
    return None
