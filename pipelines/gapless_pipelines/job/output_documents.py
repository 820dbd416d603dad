"""The documents that `--json` prints, as models: their keys, and what each value means. Here `status` and `dataset`; those of
membership, of an audit and of message logs stand in the modules `output_of_...`.

Positions are canonical text in the scope's domain, as `--through` takes it: decimal integers, RFC 3339 in UTC with the
domain's full precision, text, or a JSON array of these. Instants (`…_at`, `since`, `as_of`) are RFC 3339 in UTC. A
later version may add keys; `format` changes where the meaning of one does."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from gapless.progress import BLOCKER_CODES

Instant: TypeAlias = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$")]
Count: TypeAlias = Annotated[int, Field(ge=0)]


def closed(codes: Collection[str]) -> AfterValidator:
    """Refuses a code that is not in the list."""

    def known(code: str) -> str:
        if code not in codes:
            raise ValueError("no code of the closed list")
        return code

    return AfterValidator(known)


Code: TypeAlias = Annotated[
    str, closed(BLOCKER_CODES), WithJsonSchema({"type": "string", "enum": sorted(BLOCKER_CODES)})
]
MemberState: TypeAlias = Literal[
    "not_started", "open", "held", "gap", "ended", "sealed", "replaced", "superseded"
]


class Printed(BaseModel):
    """Every key is there; what is not known is null. Further keys may be there."""

    model_config = ConfigDict(extra="allow", strict=True)


class BoundDocument(Printed):
    """A cut: everything up to and including `position`, or everything below it."""

    position: str
    inclusive: bool


class ClaimDocument(BoundDocument):
    """The claim: every eligible event after `after` through `position` has a durable outcome.

    `after` is null where the claim reaches back to the beginning. `violated`: the source was found to have broken a promise of
    the lineage, so that what it certified is not all."""

    after: str | None
    after_inclusive: bool | None
    basis: Literal["certified", "asserted"]
    violated: bool


class FrontierDocument(ClaimDocument):
    """The claim that is published; `age_s` is in seconds since it was."""

    published_at: Instant | None
    age_s: Count | None


class WithheldDocument(Printed):
    """Why the frontier stands where it does, or is not there at all."""

    code: Code
    detail: str


class RunDocument(Printed):
    """The newest run of the scope; `number` is its fencing token. `lost`: said to be running, and silent for a minute."""

    id: str
    number: Count
    engine: str
    state: Literal["running", "finished", "stopped", "failed", "lost"]
    started_at: Instant
    heartbeat_at: Instant


class CountsDocument(Printed):
    """Members by state, and what was read, written and found since the lineage began."""

    members: Count
    active: Count
    ended: Count
    held: Count
    not_started: Count
    pages: Count
    events: Count
    dead_letters: Count
    violations: Count
    schema_drift: Count


class ReleaseDocument(Printed):
    """What would release a blocker: time, or a command."""

    retry_at: Instant | None
    command: str | None


class BlockerDocument(Printed):
    """Who holds, and on what. `bound` is where the partition stands proved."""

    partition: str
    code: Code
    event_id: str | None
    position: str | None
    since: Instant | None
    bound: BoundDocument | None
    hint: str
    release: ReleaseDocument


class PartitionDocument(Printed):
    """A member where it durably stands; `bound` is null while nothing is proved of it."""

    partition: str
    state: MemberState
    fencing_token: Count
    sequence: Count
    events: Count
    bound: BoundDocument | None


class SupersededDocument(Printed):
    """A lineage that a rebuild has ended, and what was published of it; its files are listed by `dataset --lineage`."""

    lineage: Count
    membership_epoch: Count
    list: Literal["frozen", "certified"]
    frontier: ClaimDocument | None
    reason: str
    operator: str | None
    superseded_at: Instant


class StatusDocument(Printed):
    """`gapless status --json`. `partitions` holds the worst 100, all of them with `--partitions`."""

    format: Literal[1]
    gapless: Annotated[str, Field(description="version of gapless")]
    as_of: Instant
    scope: str
    domain: dict[str, Any]
    lineage: Count
    membership_epoch: Count
    routing_generation: str
    list: Annotated[
        Literal["frozen", "certified"],
        Field(description="whether the claim is about the members alone, or the whole scope"),
    ]
    frontier: FrontierDocument | None
    withheld: WithheldDocument | None
    run: RunDocument | None
    counts: CountsDocument
    blockers: Sequence[BlockerDocument]
    partitions: Sequence[PartitionDocument]
    superseded: Sequence[SupersededDocument]


class FileDocument(Printed):
    """A promoted file; `path` is absolute, or a URL. `bound` is how far its partition was proved with it."""

    path: str
    partition: str
    sequence: Count
    rows: Count
    bound: BoundDocument | None


class DatasetDocument(Printed):
    """`gapless dataset --json`: the promoted files and their rows; files that are not listed count for nothing."""

    format: Literal[1]
    scope: str
    lineage: Count
    files: list[FileDocument]
    rows: Count
