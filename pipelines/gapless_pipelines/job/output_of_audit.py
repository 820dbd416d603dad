"""What `gapless audit` prints with `--json`, as models: keys, and what each value means."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, WithJsonSchema

from gapless.audit import CODES
from gapless_pipelines.job.output_documents import BoundDocument, Count, Instant, Printed, closed

ContradictionCode: TypeAlias = Annotated[
    str, closed(CODES), WithJsonSchema({"type": "string", "enum": sorted(CODES)})
]


class ContradictionDocument(Printed):
    """A place where the store, or a file, says another thing than the evidence for it. Where it is: `chain` is the number of the
    chain's row, `sequence` a page; what says nothing of the place is null."""

    code: ContradictionCode
    lineage: Count | None
    membership_epoch: Count | None
    partition: str | None
    chain: int | None
    sequence: int | None
    path: str | None
    detail: str


class CheckedDocument(Printed):
    """How much was looked at; `receipts` are those of open pages, `bytes` those of the files."""

    chains: Count
    promotions: Count
    epochs: Count
    publishes: Count
    lists: Count
    dead_letters: Count
    receipts: Count
    files: Count
    bytes: Annotated[Count, Field(description="in the files that were read")]


class AuditDocument(Printed):
    """`gapless audit --json`. `frontier` is as it is published, proved or not; `clean`: there is no contradiction."""

    format: Literal[1]
    scope: str
    as_of: Instant
    lineage: int
    membership_epoch: int
    frontier: BoundDocument | None
    clean: bool
    checked: CheckedDocument
    contradictions: Sequence[ContradictionDocument]
