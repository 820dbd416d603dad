"""What is unsafe about a log on PostgreSQL: one statement over the catalogue, one row of facts, one rule each."""

import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.delivery.barrier_session import of_log
from gapless.delivery.log_table import ReflectedLog, as_text, literal, quoted
from gapless.errors import NotAMessageLog, UnsafeSetup

# tgtype is a bit mask: 1 for each row, 2 before, 4 on insert. ev_type 3 is a rule on insert. The sequence's own row is read
# for its last value; pg_sequence says how it goes on.
_FACTS = """
SELECT pg_is_in_recovery() AS standby, c.relpersistence AS persistence, s.relpersistence AS sequence_persistence,
  c.relkind = 'p' OR c.relispartition AS partitioned,
  EXISTS (SELECT 1 FROM pg_inherits AS i WHERE c.oid IN (i.inhrelid, i.inhparent)) AS inherited,
  row_security_active(c.oid) AS row_security,
  EXISTS (SELECT 1 FROM pg_subscription_rel AS r WHERE r.srrelid = c.oid) AS subscriber,
  q.seqcache AS cache, q.seqcycle AS cycle, q.seqincrement AS increment, q.seqstart AS start,
  id.attidentity AS identity, id.attnotnull AS id_required, shard.attnotnull AS shard_required,
  pg_get_expr(d.adbin, d.adrelid) AS default_sql,
  EXISTS (SELECT 1 FROM pg_depend AS x WHERE x.classid = CAST('pg_attrdef' AS regclass) AND x.objid = d.oid
    AND x.refclassid = CAST('pg_class' AS regclass) AND x.refobjid = s.oid) AS default_of_sequence,
  ARRAY(SELECT CAST(t.tgname AS text) FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal
    AND t.tgenabled <> 'D' AND t.tgtype & 7 = 7 ORDER BY t.tgname) AS triggers,
  ARRAY(SELECT CAST(w.rulename AS text) FROM pg_rewrite AS w WHERE w.ev_class = c.oid AND w.ev_type = '3'
    AND w.ev_enabled <> 'D' ORDER BY w.rulename) AS rules,
  CAST(pg_get_serial_sequence({table}, {id}) AS regclass) = s.oid AS same_sequence,
  CASE WHEN v.is_called THEN v.last_value ELSE v.last_value - 1 END AS last
FROM pg_class AS c
JOIN pg_attribute AS id ON id.attrelid = c.oid AND id.attname = {id}
JOIN pg_attribute AS shard ON shard.attrelid = c.oid AND shard.attname = {shard}
LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = id.attnum AND id.attgenerated = ''
JOIN pg_class AS s ON s.oid = {sequence}
JOIN pg_sequence AS q ON q.seqrelid = s.oid
CROSS JOIN {sequence_name} AS v
WHERE c.oid = {relation}
"""

# As PostgreSQL writes a default back. Whatever else it computes, ids would not come in the sequence's order.
_ONLY_NEXTVAL = re.compile(r"\(*nextval\('(?:[^']|'')+'::regclass\)\)?(?:::\w+)?\)*")

_FIRST_ROW = "SELECT {id} FROM {table} WHERE {id} < 1 LIMIT 1"


def unsafe(
    log: ReflectedLog, connection: Connection, *, highest_coverage: int | None, rows: bool
) -> tuple[UnsafeSetup, ...]:
    """Everything that is unsafe. Raises NotAMessageLog where table or sequence are gone."""
    with of_log(log):
        facts = connection.execute(sa.text(as_text(_facts(log)))).one_or_none()
        if facts is None:
            raise NotAMessageLog(
                "the table is another one than at the start",
                where=log.where,
                remedy="start anew: it was replaced",
            )
        found = [
            *_kept(facts),
            *_seen(facts),
            *_in_order(facts, log),
            *_from_elsewhere(facts, log),
            *_held(facts, log),
        ]
        if highest_coverage is not None and highest_coverage > facts.last:
            found.append(_coverage_above(highest_coverage, facts.last))
        if rows and not found:
            found.extend(_below_one(log, connection))
    return tuple(
        UnsafeSetup(what, where=log.where, remedy=remedy, setup=setup) for setup, what, remedy in found
    )


Found = tuple[str, str, str]
"""The set-up's name, what it means here, and what to do."""


def _facts(log: ReflectedLog) -> str:
    return _FACTS.format(
        table=literal(log.table_sql),
        id=literal(log.id),
        shard=literal(log.shard),
        sequence=log.sequence,
        sequence_name=log.sequence_sql,
        relation=log.relation,
    )


def _kept(facts: Any) -> Iterator[Found]:
    """Rows and ids survive, and their writers can be seen on this server."""
    if facts.standby:
        yield (
            "standby",
            "the server is a standby: it shows no open writers of its primary",
            "connect to the primary",
        )
    if facts.subscriber:
        yield (
            "logical_subscriber",
            "a logical-replication subscription writes the table, with ids of another server",
            "follow the log on the publishing server",
        )
    if facts.persistence == "t":
        yield "temporary_table", "the table is temporary: it ends with its session", "use a permanent table"
    if facts.persistence == "u":
        yield "unlogged_table", "the table is unlogged: a crash empties it", "ALTER TABLE ... SET LOGGED"
    if facts.persistence == "p" and facts.sequence_persistence != "p":
        yield (
            "unlogged_sequence",
            "the ids' sequence is unlogged: after a crash it gives out the same ids again",
            "ALTER SEQUENCE ... SET LOGGED",
        )


def _seen(facts: Any) -> Iterator[Found]:
    """Every row can be seen, and stands in this table."""
    if facts.partitioned:
        yield (
            "partitioned_table",
            "the table is partitioned, or a partition",
            "use a table that is not partitioned",
        )
    elif facts.inherited:
        yield "inherited_table", "the table inherits, or is inherited from", "use a table without inheritance"
    if facts.row_security:
        yield (
            "row_security",
            "row security hides rows from this role",
            "use a role with BYPASSRLS, or the table's owner where row security is not forced",
        )


def _in_order(facts: Any, log: ReflectedLog) -> Iterator[Found]:
    """Ids are given out in order, each inside the transaction that writes it."""
    alter = f"ALTER SEQUENCE {log.sequence_sql}"
    if not facts.same_sequence:
        yield (
            "replaced_sequence",
            f"ids are given out by another sequence than {log.sequence_sql}",
            "start anew: table or sequence were replaced",
        )
    if facts.cache > 1:
        yield (
            "cached_sequence",
            f"sessions take {facts.cache} ids at a time, and write them in later transactions",
            f"{alter} CACHE 1",
        )
    if facts.cycle:
        yield "cycling_sequence", "the sequence begins again at its end", f"{alter} NO CYCLE"
    if facts.increment < 0:
        yield "descending_sequence", "the sequence counts down", "use one that counts up"
    elif facts.increment > 1 and log.log.ids == "serial":
        yield (
            "spaced_sequence",
            f"the sequence counts in steps of {facts.increment}: whoever fills the steps takes ids in one transaction and"
            " writes them in another",
            f"{alter} INCREMENT 1, or an identity column GENERATED ALWAYS",
        )
    if facts.start < 1:
        yield "ids_below_one", f"the sequence begins at {facts.start}, and coverage at 0", f"{alter} START 1"


def _from_elsewhere(facts: Any, log: ReflectedLog) -> Iterator[Found]:
    """No row gets an id that the sequence did not give out for it."""
    column = f"ALTER TABLE {log.table_sql} ALTER COLUMN {log.id_sql}"
    if log.log.ids == "identity" and facts.identity != "a":
        yield (
            "explicit_ids",
            f"column {log.id} is not GENERATED ALWAYS, so that any statement may write an id of its own",
            f"{column} SET GENERATED ALWAYS, or declare ids: serial, your word that no statement does"
            if facts.identity == "d"
            else f"{column} ADD GENERATED ALWAYS AS IDENTITY, or declare ids: serial, your word that no statement does",
        )
    by_sequence = facts.default_of_sequence and _ONLY_NEXTVAL.fullmatch(facts.default_sql)
    if log.log.ids == "serial" and not facts.identity and not by_sequence:
        yield (
            "foreign_default",
            f"column {log.id} is filled by {facts.default_sql or 'no default'}, not by its sequence {log.sequence_sql}",
            f"{column} SET DEFAULT nextval({literal(log.sequence_sql)})",
        )
    undeclared = [name for name in facts.triggers if name not in log.log.triggers]
    if undeclared:
        yield (
            "insert_triggers",
            f"triggers run before a row is inserted, and may change its id: {', '.join(undeclared)}",
            "name those that leave the id alone in `triggers`, your word for it; drop the others",
        )
    if facts.rules:
        yield (
            "insert_rules",
            f"rules rewrite inserts: {', '.join(facts.rules)}",
            f"DROP RULE {quoted(facts.rules[0])} ON {log.table_sql}",
        )


def _held(facts: Any, log: ReflectedLog) -> Iterator[Found]:
    """Every row belongs to a range of a shard."""
    alter = f"ALTER TABLE {log.table_sql} ALTER COLUMN"
    if not facts.shard_required:
        yield (
            "nullable_shard",
            f"column {log.shard} may be null: rows without a shard are in none",
            f"{alter} {log.shard_sql} SET NOT NULL",
        )
    if not facts.id_required:
        yield "nullable_id", f"column {log.id} may be null", f"{alter} {log.id_sql} SET NOT NULL"


def _coverage_above(coverage: int, last: int) -> Found:
    return (
        "coverage_above_sequence",
        f"coverage has reached id {coverage}, but the last id given out is {last}: the rows to come would be behind it",
        "the coverage is another table's, or the sequence was set back: set the sequence above it, or start over",
    )


def _below_one(log: ReflectedLog, connection: Connection) -> Iterator[Found]:
    first = connection.execute(
        sa.text(as_text(_FIRST_ROW.format(id=log.id_sql, table=log.table_sql)))
    ).scalar_one_or_none()
    if first is not None:
        yield (
            "ids_below_one",
            f"there is a row with id {first}, and coverage begins at 0",
            "give it an id from 1 on",
        )
