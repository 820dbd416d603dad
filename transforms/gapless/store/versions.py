"""Which schema a database holds: checked at every opening, created or upgraded where that is asked for.

Alembic is imported only where something is to be upgraded.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.errors import StoreAbsent, StoreError, StoreNewer, StoreUnreadable, StoreUnwritable
from gapless.store.engine import Database
from gapless.store.schema import VERSION_TABLE, metadata

HEAD = "0001"
"""The schema this code reads and writes: the last of the migrations."""

MIGRATIONS = Path(__file__).parent / "migrations"

_OUR_TABLES = frozenset(metadata.tables)
_ADVISORY_LOCK = 0x6761706C657373
_alembic_is_global = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Contents:
    """`version` None: there is no version table. `foreign`: tables of another application in a SQLite file."""

    version: str | None
    tables: frozenset[str]
    foreign: tuple[str, ...] = ()


def prepare(database: Database, *, create: bool) -> None:
    """Check that the database holds a store of this schema; with `create`, make or upgrade it.

    Raises StoreUnreadable (no store, not ours, damaged), StoreNewer or StoreUnwritable. Refusals change nothing: a
    database that is not ours is not even switched to WAL."""
    found = database.read(_look)
    if not create:
        _require_current(found, database.where)
        return
    _require_ours(found, database.where)
    if database.sqlite:
        _switch_to_wal(database)
    if found.version != HEAD:
        database.write(lambda connection: _upgrade(connection, database.where))


def _look(connection: Connection) -> _Contents:
    if connection.dialect.name == "sqlite":
        names = set(
            connection.exec_driver_sql(
                "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            ).scalars()
        )
        indexes = {index.name for table in metadata.tables.values() for index in table.indexes}
        foreign = tuple(sorted(names - _OUR_TABLES - indexes - {VERSION_TABLE}))
    else:
        # Not to_regclass: it looks past the snapshot, and half of a store that is being created is not a damaged one.
        present = sa.text(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = ANY (current_schemas(false)) AND c.relname = ANY (:wanted)"
        )
        names = set(connection.execute(present, {"wanted": [*_OUR_TABLES, VERSION_TABLE]}).scalars())
        foreign = ()
    version = None
    if VERSION_TABLE in names:
        rows = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalars().all()  # noqa: S608
        version = rows[0] if len(rows) == 1 else ""
    return _Contents(version, frozenset(names & _OUR_TABLES), foreign)


def _require_ours(found: _Contents, where: str) -> None:
    """Raises unless the database is empty (of ours, on PostgreSQL), or holds a store that is not newer."""
    if found.version is None:
        if found.foreign:
            raise StoreUnreadable(
                f"not a gapless store: it holds {', '.join(found.foreign[:3])}"
                + (" and more" if len(found.foreign) > 3 else ""),
                where=where,
                remedy="a SQLite store has a file of its own: name another one",
            )
        if found.tables:
            raise _damaged(f"its table {VERSION_TABLE} is missing", where)
        return
    if not found.version.isdecimal():
        raise _damaged(f"its schema version reads {found.version!r}", where)
    if int(found.version) > int(HEAD):
        raise StoreNewer(
            f"the store has schema {found.version}, this gapless knows {HEAD}",
            where=where,
            remedy="upgrade gapless: pip install --upgrade gapless",
        )
    if found.version == HEAD and (missing := sorted(_OUR_TABLES - found.tables)):
        raise _damaged(f"tables are missing: {', '.join(missing)}", where)


def _require_current(found: _Contents, where: str) -> None:
    _require_ours(found, where)
    if found.version is None:
        raise StoreAbsent(
            "there is no gapless store yet", where=where, remedy="a backfill or a stream creates it"
        )
    if found.version != HEAD:
        raise StoreUnreadable(
            f"the store has the older schema {found.version}, this gapless reads {HEAD}",
            where=where,
            remedy="the next `gapless backfill` upgrades it",
        )


def _damaged(what: str, where: str) -> StoreError:
    return StoreUnreadable(
        f"the store is damaged: {what}",
        where=where,
        remedy="restore it from a backup, or start over with a new store",
    )


def _switch_to_wal(database: Database) -> None:
    """Readers and the writer do not wait for each other in WAL; the file remembers it."""
    with database.bare() as connection:
        mode = connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar()
    if mode != "wal":
        raise StoreUnwritable(
            f"SQLite cannot use its write-ahead log here (journal mode {mode})",
            where=database.where,
            remedy="put the store on a local disk, or use a PostgreSQL store",
        )


def create(connection: Connection) -> None:
    """What all migrations together make, and the version they end with; a test holds the two against each other.

    Alembic need not be loaded for that, which is a tenth of a second of every first run."""
    metadata.create_all(connection)
    version = sa.Table(
        VERSION_TABLE,
        sa.MetaData(),
        sa.Column("version_num", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
    )
    version.create(connection)
    connection.execute(version.insert().values(version_num=sa.literal_column(f"'{HEAD}'")))


def _upgrade(connection: Connection, where: str) -> None:
    """Bring the schema to HEAD within the present transaction: all of it, or nothing. Whoever is second finds it done."""
    if connection.dialect.name != "sqlite":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
    found = _look(connection)
    _require_ours(found, where)
    if found.version == HEAD:
        return
    if found.version is None:
        create(connection)
    else:
        migrate(connection)


def migrate(connection: Connection) -> None:
    """Run the migrations from the version that is there, or from none, to HEAD."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(MIGRATIONS))
    steps = lambda revision, context: script._upgrade_revs(HEAD, revision)  # noqa: E731
    with _alembic_is_global, EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE, transactional_ddl=True)
        environment.run_migrations()
