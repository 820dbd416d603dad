"""The tables. All names begin with `gapless_`, so that a PostgreSQL database can be shared with other applications.

PostgreSQL finds and creates them along the role's `search_path`: a schema of one's own is chosen there, not here. There are
no foreign keys: a chain's row is rewritten with every promotion and must not lock, or be locked by, what refers to it.

The migrations are what creates the tables; a test holds this description and theirs together.
"""

import sqlalchemy as sa

from gapless.store.columns import ExactText, Json, Key, Number, UtcTime

VERSION_TABLE = "gapless_schema_version"

metadata = sa.MetaData()

scope = sa.Table(
    "gapless_scope",
    metadata,
    sa.Column("scope", ExactText, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("identity", Json, nullable=False),
    sa.Column("domain", Json, nullable=False),
    sa.Column("after", Key, nullable=False),
    sa.Column("lineage", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("generation", ExactText, nullable=False),
    sa.Column("observation", sa.BigInteger, nullable=False),
    sa.Column("list_certified", sa.Boolean, nullable=False),
    sa.Column("frontier", Key, nullable=False),
    sa.Column("cap", Key, nullable=False),
    sa.Column("basis", sa.Text, nullable=False),
    sa.Column("observed_generation", ExactText, nullable=False),
    sa.Column("list_bound", Key, nullable=False),
    sa.Column("changing", sa.Boolean, nullable=False),
    sa.Column("membership", Json),
    sa.Column("published_at", UtcTime),
    sa.Column("data_schema", ExactText),
    sa.Column("registered_at", UtcTime, nullable=False),
)
"""One row a scope. `epoch` 0: no membership is frozen yet; it never restarts, also not over a rebuild.

`observed_generation` and `list_bound` are those of the latest list; `changing`: that list is not what the epoch is made of;
`membership` is what the job says of changes.

Frontier, epoch and cap stand in one row, so that a publish and a cutover exclude each other by its lock."""

chain = sa.Table(
    "gapless_chain",
    metadata,
    sa.Column("chain", Number, sa.Identity(always=True), primary_key=True),
    sa.Column("scope", ExactText, nullable=False),
    sa.Column("lineage", sa.BigInteger, nullable=False),
    sa.Column("partition", ExactText, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("fields", Json, nullable=False),
    sa.Column("generation", ExactText, nullable=False),
    sa.Column("epoch_in", sa.BigInteger),
    sa.Column("epoch_out", sa.BigInteger),
    sa.Column("listed", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("fencing_token", sa.BigInteger, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("page_token", ExactText),
    sa.Column("bound", Key, nullable=False),
    sa.Column("read_to", Key, nullable=False),
    sa.Column("basis", sa.Text, nullable=False),
    sa.Column("events", sa.BigInteger, nullable=False),
    sa.Column("dead_letters", sa.BigInteger, nullable=False),
    sa.Column("drift", sa.BigInteger, nullable=False),
    sa.Column("blocker_code", sa.Text),
    sa.Column("blocker_hint", ExactText),
    sa.Column("blocker_event_id", ExactText),
    sa.Column("blocker_position", ExactText),
    sa.Column("blocker_since", UtcTime),
    sa.Column("blocker_retry_at", UtcTime),
    sa.Column("seal", Key, nullable=False),
    sa.Column("seal_basis", sa.Text, nullable=False),
    sa.Column("successors", Json),
    sa.Column("parents", Json),
    sqlite_autoincrement=True,
)
"""One row a chain. (epoch_in, epoch_out): (null, null) candidate; (n, null) member since n; (n, m) left at m.

`kind` is `partition`, or `transit` for the events in transit between two routing generations. `listed` is the last
observation whose list named it. `seal_basis` is `operator` where a person stated the end, else `source`. `basis` is
`asserted` once an assertion has raised the bound."""


def is_member() -> sa.ColumnElement[bool]:
    """Its bound counts. Spelled like the index conditions below, by which PostgreSQL recognises them."""
    return sa.and_(chain.c.epoch_in.is_not(None), chain.c.epoch_out.is_(None))


def is_candidate() -> sa.ColumnElement[bool]:
    return sa.and_(chain.c.epoch_in.is_(None), chain.c.epoch_out.is_(None))


def is_live() -> sa.ColumnElement[bool]:
    return chain.c.epoch_out.is_(None)


def has_departed() -> sa.ColumnElement[bool]:
    """It left in order: sealed, drained, its successors accounted for."""
    return sa.and_(chain.c.state == sa.text("'sealed'"), chain.c.epoch_out.is_not(None))


def in_data_set() -> sa.ColumnElement[bool]:
    """Its promoted runs with rows make up the data set of its lineage."""
    return sa.and_(chain.c.epoch_in.is_not(None), chain.c.state != "replaced")


def _partial_index(name: str, *columns: sa.Column[object], where: str, unique: bool = False) -> sa.Index:
    return sa.Index(
        name, *columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where)
    )


_MEMBER = "epoch_in IS NOT NULL AND epoch_out IS NULL"

_partial_index(
    "gapless_chain_live",
    chain.c.scope,
    chain.c.lineage,
    chain.c.partition,
    chain.c.generation,
    where="epoch_out IS NULL",
    unique=True,
)
_partial_index("gapless_chain_minimum", chain.c.scope, chain.c.lineage, chain.c.bound, where=_MEMBER)
_partial_index(
    "gapless_chain_asserted", chain.c.scope, chain.c.lineage, where=f"{_MEMBER} AND basis = 'asserted'"
)
_partial_index(
    "gapless_chain_candidate", chain.c.scope, chain.c.lineage, where="epoch_in IS NULL AND epoch_out IS NULL"
)
_partial_index(
    "gapless_chain_departed",
    chain.c.scope,
    chain.c.lineage,
    chain.c.partition,
    where="state = 'sealed' AND epoch_out IS NOT NULL",
)
sa.Index("gapless_chain_lineage", chain.c.scope, chain.c.lineage)

observation = sa.Table(
    "gapless_observation",
    metadata,
    sa.Column("scope", ExactText, primary_key=True),
    sa.Column("observation", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("lineage", sa.BigInteger, nullable=False),
    sa.Column("generation", ExactText, nullable=False),
    sa.Column("list_bound", Key, nullable=False),
    sa.Column("partitions", sa.BigInteger, nullable=False),
    sa.Column("observed_at", UtcTime, nullable=False),
)
"""One row a list of the source's that differed from the one before it; `list_bound` is the highest it was certified through."""

promotion = sa.Table(
    "gapless_promotion",
    metadata,
    sa.Column("chain", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("pages", sa.BigInteger, nullable=False),
    sa.Column("fencing_token", sa.BigInteger, nullable=False),
    sa.Column("attempt", sa.Text, nullable=False),
    sa.Column("generation", ExactText, nullable=False),
    sa.Column("token_in", ExactText),
    sa.Column("token_out", ExactText),
    sa.Column("bound", Key, nullable=False),
    sa.Column("basis", sa.Text, nullable=False),
    sa.Column("read_to", Key, nullable=False),
    sa.Column("events", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("path", ExactText),
    sa.Column("digest", sa.Text),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("drift", sa.BigInteger, nullable=False),
    sa.Column("evidence", Json),
    sa.Column("promoted_at", UtcTime, nullable=False),
    sqlite_with_rowid=False,
)
"""One row a promoted run of pages: manifest and evidence in one. `attempt` tells a writer's own row from a twin's."""

receipt = sa.Table(
    "gapless_receipt",
    metadata,
    sa.Column("chain", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("event_id", ExactText, primary_key=True),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("recorded_at", UtcTime, nullable=False),
    sqlite_with_rowid=False,
)
"""Outcomes of events of open pages only: deleted with the promotion."""

dead_letter = sa.Table(
    "gapless_dead_letter",
    metadata,
    sa.Column("number", Number, sa.Identity(always=True), primary_key=True),
    sa.Column("scope", ExactText, nullable=False),
    sa.Column("lineage", sa.BigInteger, nullable=False),
    sa.Column("chain", sa.BigInteger, nullable=False),
    sa.Column("partition", ExactText, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("event_id", ExactText, nullable=False),
    sa.Column("position", ExactText, nullable=False),
    sa.Column("reason", ExactText, nullable=False),
    sa.Column("payload", ExactText, nullable=False),
    sa.Column("path", ExactText),
    sa.Column("operator", ExactText),
    sa.Column("recorded_at", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)
sa.Index("gapless_dead_letter_event", dead_letter.c.chain, dead_letter.c.event_id, unique=True)
sa.Index("gapless_dead_letter_scope", dead_letter.c.scope, dead_letter.c.number)

violation = sa.Table(
    "gapless_violation",
    metadata,
    sa.Column("number", Number, sa.Identity(always=True), primary_key=True),
    sa.Column("scope", ExactText, nullable=False),
    sa.Column("lineage", sa.BigInteger, nullable=False),
    sa.Column("chain", sa.BigInteger, nullable=False),
    sa.Column("partition", ExactText, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("event_id", ExactText),
    sa.Column("position", ExactText),
    sa.Column("bound", Key, nullable=False),
    sa.Column("detail", ExactText, nullable=False),
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("recorded_at", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)
"""`mark` is a digest of what was found: the same finding, met again by a retry, is one violation."""

sa.Index("gapless_violation_mark", violation.c.chain, violation.c.mark, unique=True)
sa.Index("gapless_violation_scope", violation.c.scope, violation.c.number)

epoch = sa.Table(
    "gapless_epoch",
    metadata,
    sa.Column("scope", ExactText, primary_key=True),
    sa.Column("lineage", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("generation", ExactText, nullable=False),
    sa.Column("list_bound", Key, nullable=False),
    sa.Column("frontier", Key, nullable=False),
    sa.Column("basis", sa.Text, nullable=False),
    sa.Column("proof", Json),
    sa.Column("opened_at", UtcTime, nullable=False),
)
"""One row a membership epoch; its members are the chains with epoch_in <= epoch < epoch_out."""

run = sa.Table(
    "gapless_run",
    metadata,
    sa.Column("number", Number, sa.Identity(always=True), primary_key=True),
    sa.Column("run_id", ExactText, nullable=False),
    sa.Column("scope", ExactText, nullable=False),
    sa.Column("engine", ExactText, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("heartbeat_at", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)
"""`number` is the run's fencing token: handed out by the database, never a second time, also not after a deletion."""

sa.Index("gapless_run_id", run.c.run_id, unique=True)
sa.Index("gapless_run_scope", run.c.scope, run.c.number)

frontier_history = sa.Table(
    "gapless_frontier_history",
    metadata,
    sa.Column("number", Number, sa.Identity(always=True), primary_key=True),
    sa.Column("scope", ExactText, nullable=False),
    sa.Column("lineage", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("frontier", Key, nullable=False),
    sa.Column("basis", sa.Text, nullable=False),
    sa.Column("published_at", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)
"""One row a publish that moved the frontier, written in its transaction."""

sa.Index("gapless_frontier_history_scope", frontier_history.c.scope, frontier_history.c.number)

journal = sa.Table(
    "gapless_journal",
    metadata,
    sa.Column("number", Number, sa.Identity(always=True), primary_key=True),
    sa.Column("scope", ExactText, nullable=False),
    sa.Column("lineage", sa.BigInteger, nullable=False),
    sa.Column("chain", sa.BigInteger),
    sa.Column("partition", ExactText),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("detail", Json, nullable=False),
    sa.Column("reason", ExactText, nullable=False),
    sa.Column("operator", ExactText),
    sa.Column("recorded_at", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)
"""What moved a chain otherwise than by a promotion (a restart), and every operator's word (a skip)."""

sa.Index("gapless_journal_scope", journal.c.scope, journal.c.number)
