"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# A migration states what it creates by itself: what the package's tables become later must not change it.
_INSTANT = sa.TIMESTAMP(timezone=True).with_variant(sa.Text(), "sqlite")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_scope()
    _create_chain()
    _create_observation()
    _create_promotion()
    _create_receipt()
    _create_findings()
    _create_epoch()
    _create_run()
    _create_history()


def _create_scope() -> None:
    op.create_table(
        "gapless_scope",
        sa.Column("scope", sa.Text(), primary_key=True),
        _text("fingerprint"),
        _text("identity"),
        _text("domain"),
        _key("after"),
        _integer("lineage"),
        _integer("epoch"),
        _text("generation"),
        _integer("observation"),
        sa.Column("list_certified", sa.Boolean(), nullable=False),
        _key("frontier"),
        _key("cap"),
        _text("basis"),
        _text("observed_generation"),
        _key("list_bound"),
        sa.Column("changing", sa.Boolean(), nullable=False),
        _text("membership", nullable=True),
        sa.Column("published_at", _INSTANT),
        _text("data_schema", nullable=True),
        sa.Column("registered_at", _INSTANT, nullable=False),
    )


def _create_chain() -> None:
    op.create_table(
        "gapless_chain",
        _numbered("chain"),
        _text("scope"),
        _integer("lineage"),
        _text("partition"),
        _text("kind"),
        _text("fields"),
        _text("generation"),
        _integer("epoch_in", nullable=True),
        _integer("epoch_out", nullable=True),
        _integer("listed"),
        _text("state"),
        _integer("fencing_token"),
        _integer("sequence"),
        _text("page_token", nullable=True),
        _key("bound"),
        _key("read_to"),
        _text("basis"),
        _integer("events"),
        _integer("dead_letters"),
        _integer("drift"),
        _text("blocker_code", nullable=True),
        _text("blocker_hint", nullable=True),
        _text("blocker_event_id", nullable=True),
        _text("blocker_position", nullable=True),
        sa.Column("blocker_since", _INSTANT),
        sa.Column("blocker_retry_at", _INSTANT),
        _key("seal"),
        _text("seal_basis"),
        _text("successors", nullable=True),
        _text("parents", nullable=True),
        sqlite_autoincrement=True,
    )
    member = "epoch_in IS NOT NULL AND epoch_out IS NULL"
    _partial_index("live", ["scope", "lineage", "partition", "generation"], "epoch_out IS NULL", unique=True)
    _partial_index("minimum", ["scope", "lineage", "bound"], member)
    _partial_index("asserted", ["scope", "lineage"], f"{member} AND basis = 'asserted'")
    _partial_index("candidate", ["scope", "lineage"], "epoch_in IS NULL AND epoch_out IS NULL")
    departed = "state = 'sealed' AND epoch_out IS NOT NULL"
    _partial_index("departed", ["scope", "lineage", "partition"], departed)
    op.create_index("gapless_chain_lineage", "gapless_chain", ["scope", "lineage"])


def _create_observation() -> None:
    op.create_table(
        "gapless_observation",
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("observation", sa.BigInteger(), primary_key=True, autoincrement=False),
        _integer("lineage"),
        _text("generation"),
        _key("list_bound"),
        _integer("partitions"),
        sa.Column("observed_at", _INSTANT, nullable=False),
    )


def _create_promotion() -> None:
    op.create_table(
        "gapless_promotion",
        sa.Column("chain", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.BigInteger(), primary_key=True, autoincrement=False),
        _integer("pages"),
        _integer("fencing_token"),
        _text("attempt"),
        _text("generation"),
        _text("token_in", nullable=True),
        _text("token_out", nullable=True),
        _key("bound"),
        _text("basis"),
        _key("read_to"),
        _integer("events"),
        _integer("rows"),
        _text("path", nullable=True),
        _text("digest", nullable=True),
        _integer("size"),
        _integer("drift"),
        _text("evidence", nullable=True),
        sa.Column("promoted_at", _INSTANT, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_receipt() -> None:
    op.create_table(
        "gapless_receipt",
        sa.Column("chain", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("event_id", sa.Text(), primary_key=True),
        _text("outcome"),
        sa.Column("recorded_at", _INSTANT, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_findings() -> None:
    op.create_table(
        "gapless_dead_letter",
        _numbered("number"),
        _text("scope"),
        _integer("lineage"),
        _integer("chain"),
        _text("partition"),
        _integer("sequence"),
        _text("event_id"),
        _text("position"),
        _text("reason"),
        _text("payload"),
        _text("path", nullable=True),
        _text("operator", nullable=True),
        sa.Column("recorded_at", _INSTANT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("gapless_dead_letter_event", "gapless_dead_letter", ["chain", "event_id"], unique=True)
    op.create_index("gapless_dead_letter_scope", "gapless_dead_letter", ["scope", "number"])
    op.create_table(
        "gapless_violation",
        _numbered("number"),
        _text("scope"),
        _integer("lineage"),
        _integer("chain"),
        _text("partition"),
        _text("kind"),
        _integer("sequence"),
        _text("event_id", nullable=True),
        _text("position", nullable=True),
        _key("bound"),
        _text("detail"),
        _text("mark"),
        sa.Column("recorded_at", _INSTANT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("gapless_violation_mark", "gapless_violation", ["chain", "mark"], unique=True)
    op.create_index("gapless_violation_scope", "gapless_violation", ["scope", "number"])


def _create_epoch() -> None:
    op.create_table(
        "gapless_epoch",
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("lineage", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger(), primary_key=True, autoincrement=False),
        _text("generation"),
        _key("list_bound"),
        _key("frontier"),
        _text("basis"),
        _text("proof", nullable=True),
        sa.Column("opened_at", _INSTANT, nullable=False),
    )


def _create_run() -> None:
    op.create_table(
        "gapless_run",
        _numbered("number"),
        _text("run_id"),
        _text("scope"),
        _text("engine"),
        _text("state"),
        sa.Column("started_at", _INSTANT, nullable=False),
        sa.Column("heartbeat_at", _INSTANT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("gapless_run_id", "gapless_run", ["run_id"], unique=True)
    op.create_index("gapless_run_scope", "gapless_run", ["scope", "number"])


def _create_history() -> None:
    op.create_table(
        "gapless_frontier_history",
        _numbered("number"),
        _text("scope"),
        _integer("lineage"),
        _integer("epoch"),
        _key("frontier"),
        _text("basis"),
        sa.Column("published_at", _INSTANT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("gapless_frontier_history_scope", "gapless_frontier_history", ["scope", "number"])
    op.create_table(
        "gapless_journal",
        _numbered("number"),
        _text("scope"),
        _integer("lineage"),
        _integer("chain", nullable=True),
        _text("partition", nullable=True),
        _text("action"),
        _text("detail"),
        _text("reason"),
        _text("operator", nullable=True),
        sa.Column("recorded_at", _INSTANT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("gapless_journal_scope", "gapless_journal", ["scope", "number"])


def _text(name: str, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _integer(name: str, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def _key(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def _numbered(name: str) -> sa.Column[int]:
    return sa.Column(name, _NUMBER, sa.Identity(always=True), primary_key=True)


def _partial_index(name: str, columns: list[str], where: str, unique: bool = False) -> None:
    op.create_index(
        f"gapless_chain_{name}",
        "gapless_chain",
        columns,
        unique=unique,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )
