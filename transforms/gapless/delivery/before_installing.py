"""What would end an installation half-way, found before anything is created."""

from sqlalchemy.engine import Connection

from gapless.delivery.database import execute
from gapless.delivery.indexes import usable_indexes
from gapless.delivery.log_table import ReflectedLog
from gapless.delivery.own_tables import OwnTables
from gapless.delivery.statements import psycopg_text
from gapless.errors import NotAMessageLog, UnsafeSetup

_LONGEST_SHARD = 2600
"""In bytes. An entry of a PostgreSQL index takes 2704, and the one of a violation has its code and range beside the shard."""

_OWNER = (
    "SELECT current_user AS role, pg_get_userbyid(c.relowner) AS name, pg_has_role(c.relowner, 'USAGE') AS may"
    ", current_setting('transaction_read_only') = 'on' AS reads FROM pg_class AS c WHERE c.oid = %(relation)s"
)


def refuse_before_anything(connection: Connection, log: ReflectedLog, own: OwnTables) -> None:
    """Raises for what would end an installation half-way: an index that is invalid, a role that may not build one, a
    session that only reads, or a shard that no index takes."""
    found = usable_indexes(connection, log, own)
    if log.dialect == "sqlite" or found.complete is not None:
        return
    owner = execute(connection, _OWNER, {"relation": log.relation}).one()
    if owner.reads:
        raise NotAMessageLog(
            "the session only reads by default, and so would the building of indexes",
            where=log.where,
            remedy="connect with options=-cdefault_transaction_read_only=off, or to the primary",
        )
    if not owner.may:
        raise NotAMessageLog(
            f"role {owner.role} does not own the table, and only its owner {owner.name} may build indexes",
            where=log.where,
            remedy="install as the owner; whoever works on the log needs no more than SELECT, and what is gapless's own",
        )
    if log.shard_kind == "text":
        _refuse_long_shards(connection, log)


def _refuse_long_shards(connection: Connection, log: ReflectedLog) -> None:
    """Reads the table once, as the building of an index does. The size is the one kept: an index compresses as the table does."""
    long = execute(
        connection,
        psycopg_text(
            f"SELECT {log.id_sql} AS id, pg_column_size({log.shard_sql}) AS size FROM {log.table_sql}"  # noqa: S608
            f" WHERE pg_column_size({log.shard_sql}) > {_LONGEST_SHARD} LIMIT 1"
        ),
        {},
    ).one_or_none()
    if long is not None:
        raise UnsafeSetup(
            f"the shard of row {long.id} takes {long.size} bytes, and an index of PostgreSQL's takes {_LONGEST_SHARD} of one",
            where=f"{log.where}, column {log.shard}",
            remedy="shorten it; or declare a column with a digest of it as the shard, such as"
            f" GENERATED ALWAYS AS (md5({log.shard_sql})) STORED NOT NULL",
            setup="shard_too_long",
        )
