"""A message log as its user declares it, and as it was found in the database.

`LogTable` holds names and words; `reflect` looks whether the database agrees and gives a `ReflectedLog`, from which
statements are written. Nothing here creates or changes anything.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy.engine import Connection

from gapless.errors import ConfigurationError, NotAMessageLog

Ids = Literal["autoincrement", "identity", "serial"]
ShardKind = Literal["text", "integer", "uuid"]
DialectName = Literal["sqlite", "postgresql"]

_LARGEST_INTEGER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTable:
    """What the user says about the table. Raises ConfigurationError for what cannot be meant so.

    `terminal`: the statuses after which nothing more happens to a row, a dead letter's included, a scheduled retry's not.
    `ids`: how ids are given out: `autoincrement` (SQLite), `identity` (PostgreSQL, GENERATED ALWAYS) or `serial` (PostgreSQL, the
    column's own sequence by default; declaring it is the user's word that no statement writes an id of its own).
    `triggers`: the BEFORE INSERT triggers of which the user says that they change no id.
    `schema`: None is the first one on the search path that has the table; on SQLite, `main`.

    >>> log = LogTable(table="conversations", shard="channel_key", terminal=("delivered", "failed"), ids="autoincrement")
    >>> log.name
    'conversations'
    """

    table: str
    terminal: tuple[str | int, ...]
    ids: Ids
    schema: str | None = None
    id: str = "id"
    shard: str = "shard"
    status: str = "status"
    triggers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _names(self)
        _terminal(self)
        if self.ids not in get_args(Ids):
            raise ConfigurationError(
                f"{self.ids!r} is no way to give out ids",
                where="ids",
                remedy="allowed: autoincrement (SQLite), identity or serial (PostgreSQL)",
            )

    @property
    def name(self) -> str:
        """For messages."""
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    def reflect(self, connection: Connection) -> "ReflectedLog":
        """The table as the database has it. Raises NotAMessageLog, which names what is there and the likely one."""
        if connection.dialect.name == "postgresql":
            from gapless.delivery.log_on_postgresql import reflect
        elif connection.dialect.name == "sqlite":
            from gapless.delivery.log_on_sqlite import reflect
        else:
            raise NotAMessageLog(
                f"{connection.dialect.name} is no database whose open writers gapless can follow",
                where=f"message log {self.name}",
                remedy="use SQLite or PostgreSQL",
            )
        return reflect(self, connection)


@dataclass(frozen=True, slots=True)
class ReflectedLog:
    """The table as it was found. Names are spelt as the database has them; what ends in `_sql` is SQL text, quoted.

    `schema` is never None. `shard_ddl` and `id_ddl` are the columns' own types, the shard's with its collation, as a
    CREATE TABLE takes them. `terminal_sql` are literals of the status column's type. `sequence_sql` is what remembers the
    last id given out: the column's sequence on PostgreSQL, SQLite's table of them. `relation` and `sequence` are the oids
    of table and sequence on PostgreSQL, None on SQLite."""

    log: LogTable
    dialect: DialectName
    schema: str
    table: str
    id: str
    shard: str
    status: str
    shard_kind: ShardKind
    id_ddl: str
    shard_ddl: str
    terminal_sql: tuple[str, ...]
    sequence_sql: str
    relation: int | None = None
    sequence: int | None = None

    @property
    def table_sql(self) -> str:
        """The table, qualified."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"

    @property
    def id_sql(self) -> str:
        return quoted(self.id)

    @property
    def shard_sql(self) -> str:
        return quoted(self.shard)

    @property
    def status_sql(self) -> str:
        return quoted(self.status)

    @property
    def open_sql(self) -> str:
        """The predicate of a non-terminal row: every status that is not declared terminal, null and unknown ones too."""
        return f"({self.status_sql} IN ({', '.join(self.terminal_sql)})) IS NOT TRUE"

    @property
    def where(self) -> str:
        """The log as a line of an error."""
        return f"message log {self.schema}.{self.table}"


def quoted(name: str) -> str:
    """An identifier of either database, as the server takes it: a `%` or `:` in it is left to whoever sends the statement.

    >>> print(quoted('say "b" twice'))
    "say ""b"" twice"
    """
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def literal(value: str | int) -> str:
    """A text or an integer as an SQL literal.

    >>> literal("it's"), literal(3)
    ("'it''s'", '3')
    """
    if isinstance(value, int):
        return str(value)
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def as_text(fragment: str) -> str:
    r"""SQL without parameters, as `sqlalchemy.text` takes it: a colon in a name or literal starts no parameter.

    >>> print(as_text(quoted("a:b")))
    "a\:b"
    """
    return fragment.replace(":", r"\:")


def _names(log: LogTable) -> None:
    given = {"table": log.table, "id": log.id, "shard": log.shard, "status": log.status}
    if log.schema is not None:
        given["schema"] = log.schema
    for field, name in given.items():
        if not isinstance(name, str) or not name or "\0" in name:
            raise ConfigurationError(
                f"{name!r} is no name", where=field, remedy="give the name as it is in the database"
            )
    columns = (log.id, log.shard, log.status)
    if len(set(columns)) < len(columns):
        raise ConfigurationError(
            f"id, shard and status need a column each, not {', '.join(columns)}",
            where=f"message log {log.name}",
            remedy="name three columns; a table without shards needs one with a constant",
        )


def _terminal(log: LogTable) -> None:
    where = "terminal"
    if isinstance(log.terminal, str) or not isinstance(log.terminal, tuple):
        raise ConfigurationError(
            f"{log.terminal!r} is no tuple of statuses", where=where, remedy='as in ("delivered", "failed")'
        )
    if not log.terminal:
        raise ConfigurationError(
            "no status is terminal, so that no row would ever be handed on",
            where=where,
            remedy="name the statuses after which nothing more happens to a row, dead letters too",
        )
    for status in log.terminal:
        text = isinstance(status, str) and "\0" not in status
        integer = isinstance(status, int) and not isinstance(status, bool) and abs(status) <= _LARGEST_INTEGER
        if not text and not integer:
            raise ConfigurationError(f"{status!r} is no status", where=where, remedy="a text, or an integer")
    if len(set(log.terminal)) < len(log.terminal):
        raise ConfigurationError(
            f"a status is named twice: {', '.join(map(str, log.terminal))}",
            where=where,
            remedy="name each once",
        )
