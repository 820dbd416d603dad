"""What `gapless delivery status` prints with `--json`, as models: keys, and what each value means. Ids are integers."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from gapless_pipelines.job.output_documents import Count, Instant, Printed

Shard: TypeAlias = Annotated[str | int, Field(description="as the shard's column has it; a UUID as its text")]


class NonTerminalDocument(Printed):
    """The first row that is not terminal, with its status."""

    code: Literal["non_terminal"]
    id: int
    status: str | int | None


class OpenWriterDocument(Printed):
    """A session that was given an id and has not ended; what the role may not see is null."""

    code: Literal["open_writer"]
    pid: int | None
    user: str | None
    application: str | None
    since: Instant | None


class PreparedTransactionDocument(Printed):
    """A prepared transaction that was given an id and waits for its second phase."""

    code: Literal["prepared_transaction"]
    gid: str | None
    user: str | None
    since: Instant | None


class ShardDocument(Printed):
    """Every row of the shard at or below `frontier` is terminal; those at or below `coverage` are handed on, and `newly_covered`
    rows lie between. `claimed` is the end of a range that was begun, null where none is."""

    shard: Shard
    coverage: Count
    frontier: Count
    newly_covered: Count
    claimed: Count | None
    blocker: Annotated[
        NonTerminalDocument | OpenWriterDocument | PreparedTransactionDocument | None,
        Field(discriminator="code"),
    ]


class DeliveryViolationDocument(Printed):
    """What contradicts a coverage, of the rows with `after` < id <= `through`; `id` where it is one row, and known."""

    shard: Shard
    code: Literal["open_behind_coverage", "rows_missing", "rows_added"]
    id: int | None
    after: int
    through: int
    detail: str
    found_at: Instant


class DeliveryStatusDocument(Printed):
    """`gapless delivery status --json`: every shard, or the one that `--shard` names, and what is on record against them."""

    format: Literal[1]
    table: str
    shards: Sequence[ShardDocument]
    violations: Sequence[DeliveryViolationDocument]
