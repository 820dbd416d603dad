"""What `gapless epoch show`, `epoch cutover` and `history` print with `--json`, as models: keys, and what each value means."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from gapless_pipelines.job.output_documents import (
    BoundDocument,
    Code,
    Count,
    FrontierDocument,
    Instant,
    MemberState,
    Printed,
)

By: TypeAlias = Annotated[
    Literal["source", "operator"],
    Field(description="who stated the end: a certificate, or an operator's word"),
]
Basis: TypeAlias = Literal["certified", "asserted"]


class MissingDocument(Printed):
    """What a cutover lacks, and of whom; `partition` null: of the list as a whole."""

    partition: str | None
    code: Code
    detail: str


class LiveDocument(Printed):
    """A member or a candidate. `sealed` is its end, null where none is stated; `successors` and `parents` are null where they are
    unknown, and empty where there are none. `listed`: the latest list names it."""

    partition: str
    state: MemberState
    bound: BoundDocument | None
    routing_generation: str
    listed: bool
    sealed: BoundDocument | None
    sealed_by: By | None
    successors: list[str] | None
    parents: list[str] | None


class LatestListDocument(Printed):
    """The source's latest list: `complete` is how far it is certified, null where it is not."""

    routing_generation: str
    complete: BoundDocument | None


class TransitDocument(Printed):
    """The events in transit between two routing generations; `complete` is the handoff certificate's bound, null without one."""

    from_: Annotated[str, Field(alias="from")]
    to: str
    state: MemberState
    complete: BoundDocument | None


class EpochDocument(Printed):
    """`gapless epoch show --json`. `cap` is how far the list lets the frontier go, null for as far as the members do; `ready`: a
    cutover would be accepted now."""

    format: Literal[1]
    scope: str
    lineage: Count
    membership_epoch: Count
    routing_generation: str
    frontier: FrontierDocument | None
    list: Literal["frozen", "certified"]
    latest_list: LatestListDocument
    cap: BoundDocument | None
    on_change: Literal["cutover", "hold"]
    routing_proof: Annotated[
        Literal["moves", "handoff", "reading_again"] | None,
        Field(description="by what another routing generation may enter; null where the job offers no proof"),
    ]
    members: Sequence[LiveDocument]
    candidates: Sequence[LiveDocument]
    in_transit: TransitDocument | None
    ready: bool
    missing: Sequence[MissingDocument]


class CutoverDocument(Printed):
    """`gapless epoch cutover --json`. Not `accepted` with nothing `missing`: the epoch is made of the latest list already, and
    `to` is `from`. Partitions in both `entered` and `left` did both at once; `replaced` were read again."""

    format: Literal[1]
    scope: str
    lineage: Count
    dry_run: bool
    from_: Annotated[Count, Field(alias="from")]
    to: Count
    accepted: bool
    routing_generation: str
    entered: Sequence[str]
    left: Sequence[str]
    replaced: Sequence[str]
    missing: Sequence[MissingDocument]


class PointDocument(BoundDocument):
    """A bound was reached."""

    at: Instant


class FrontierPointDocument(PointDocument):
    """The frontier was reached, in this membership epoch."""

    membership_epoch: Count
    basis: Basis


class FrontierHistoryDocument(Printed):
    """The frontier of one lineage: it moved `moves` times, of which `points` are some."""

    lineage: Count
    superseded: bool
    moves: Count
    points: Sequence[FrontierPointDocument]


class BoundHistoryDocument(Printed):
    """One partition's bound over its promotions; `points` are some of those that raised it."""

    partition: str
    state: MemberState
    bound: BoundDocument | None
    promotions: Count
    points: Sequence[PointDocument]


class EnteredDocument(Printed):
    """Who entered, and how far it was complete then."""

    partition: str
    bound: BoundDocument | None


class LeftDocument(Printed):
    """Who left, and the end by which it could."""

    partition: str
    seal: BoundDocument | None
    by: By


class EpochHistoryDocument(Printed):
    """One membership epoch as it was opened. `members` is how many the first list named, null for a cutover; `routing` says what
    proved another routing generation, null where it stayed; `dropped` are candidates that nobody needed any more."""

    lineage: Count
    membership_epoch: Count
    routing_generation: str
    opened_at: Instant
    by: Literal["first list", "cutover"]
    frontier: BoundDocument | None
    basis: Basis
    members: Count | None
    entered: Sequence[EnteredDocument]
    left: Sequence[LeftDocument]
    replaced: Sequence[str]
    dropped: Sequence[str]
    routing: dict[str, Any] | None


class DecisionDocument(Printed):
    """What a person decided, such as a `seal`, a `skip` or a `rebuild`."""

    at: Instant
    lineage: Count
    action: str
    partition: str | None
    reason: str
    operator: str | None


class HistoryDocument(Printed):
    """`gapless history --json`, the oldest first. `bounds` are the lowest 100 of `partitions` live ones, all of them with
    `--partitions`; `restarts` counts page tokens that were replaced after they had died."""

    format: Literal[1]
    scope: str
    as_of: Instant
    lineage: Count
    membership_epoch: Count
    frontiers: Sequence[FrontierHistoryDocument]
    epochs: Sequence[EpochHistoryDocument]
    partitions: Count
    bounds: Sequence[BoundHistoryDocument]
    decisions: Sequence[DecisionDocument]
    restarts: Count
