"""What goes into the store and comes out of it, as values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gapless.progress import Bound, ChainState, Domain, MemberBlocker, Position

PARTITION, TRANSIT = "partition", "transit"
"""Kinds of chains: a partition's, or that of the events in transit between two routing generations."""


RUNNING, FINISHED, STOPPED, FAILED = "running", "finished", "stopped", "failed"
"""States of a run, as stored. Stopped: by whoever started it, before its end; what was promoted stays."""

LOST = "lost"
"""A run that said it was running, and has given no sign of life for `LOST_AFTER`. Never stored: who reads finds it out."""

LOST_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class ScopeIdentity:
    """Name, domain and what the fingerprint covers (JSON values). `after` is where the claim starts; None: from the beginning."""

    scope: str
    domain: Domain
    identity: Mapping[str, object]
    after: Bound | None = None


@dataclass(frozen=True, slots=True)
class MembershipPolicy:
    """What the job says of a list that changes. `on_change`: `cutover` as soon as everything is proved, or `hold` for an
    operator's word. The proof by which another routing generation enters: `moves` is the source's promise in the job's words,
    `handoff` its certificate, `reading_again` where the effect can replace what it has written; else there is none."""

    on_change: str = "cutover"
    moves: str | None = None
    handoff: bool = False
    reading_again: bool = True

    @property
    def carries_on(self) -> bool:
        """Under another routing generation, tokens and bounds go on (or stand still): nothing is read again."""
        return self.moves is not None or self.handoff or not self.reading_again


@dataclass(frozen=True, slots=True)
class Blocker:
    """Who holds a chain and why: `code` of the closed list; `hint` one line; `retry_at` where time may release it."""

    code: str
    hint: str
    event_id: str | None = None
    position: Position | None = None
    since: datetime | None = None
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A chain's durable row: its checkpoint, and what is needed to explain it."""

    chain: int
    scope: str
    lineage: int
    partition: str
    fields: Mapping[str, object]
    generation: str
    epoch_in: int | None
    epoch_out: int | None
    listed: int
    state: ChainState
    fencing_token: int
    sequence: int
    page_token: str | None
    bound: Bound | None
    read_to: Bound | None
    basis: str
    events: int
    dead_letters: int
    drift: int
    blocker: Blocker | None
    seal: Bound | None = None
    successors: tuple[str, ...] | None = None
    parents: tuple[str, ...] | None = None
    kind: str = PARTITION
    seal_basis: str = "source"

    @property
    def is_live(self) -> bool:
        """It has not left: a member or a candidate."""
        return self.epoch_out is None

    @property
    def is_member(self) -> bool:
        """Its bound counts in the minimum."""
        return self.is_live and self.epoch_in is not None

    @property
    def is_candidate(self) -> bool:
        """It was seen and has not entered."""
        return self.is_live and self.epoch_in is None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    partition: str
    sequence: int
    event_id: str
    position: Position
    reason: str
    payload: str
    path: str | None = None
    operator: str | None = None
    recorded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """The source broke its promise. `kind`: event_behind_bound, certificate_went_back, certificate_behind_events."""

    partition: str
    kind: str
    sequence: int
    detail: str
    event_id: str | None = None
    position: Position | None = None
    bound: Bound | None = None
    recorded_at: datetime | None = None
    lineage: int | None = None


@dataclass(frozen=True, slots=True)
class Promotion:
    """A run of pages to promote in one transaction, by compare-and-swap on the row `expected` was read from.

    `pages` pages from `expected.sequence`; `token_in` equals the committed token. `bound` is the highest certified (or
    asserted, then `basis` says so) bound of the run, None where the run brought none. `read_to` covers its last position.
    `end` closes the chain as ended. `evidence` is the certificate as JSON values. `settled` are the event ids whose receipts
    end with this run; None: all of the chain's (right only where the run holds every event that has one)."""

    expected: ChainRow
    pages: int
    token_in: str | None
    token_out: str | None
    bound: Bound | None
    basis: str
    read_to: Bound | None
    end: bool
    events: int
    path: str | None
    digest: str | None
    rows: int
    size: int = 0
    drift: int = 0
    evidence: Mapping[str, object] | None = None
    dead_letters: Sequence[DeadLetter] = ()
    violations: Sequence[Violation] = ()
    settled: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class PromotionRow:
    """A promoted run as the manifest lists it."""

    chain: int
    partition: str
    sequence: int
    pages: int
    fencing_token: int
    token_in: str | None
    token_out: str | None
    bound: Bound | None
    path: str | None
    digest: str | None
    rows: int
    size: int
    promoted_at: datetime
    evidence: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class FrontierRow:
    """The scope's row: the published frontier with its membership epoch, read together."""

    scope: str
    fingerprint: str
    domain: Domain
    lineage: int
    epoch: int
    generation: str
    observation: int
    list_certified: bool
    after: Bound | None
    frontier: Bound | None
    cap: Bound | None
    capped: bool
    basis: str
    published_at: datetime | None
    identity: Mapping[str, object] = field(default_factory=dict)
    observed_generation: str = ""
    list_bound: Bound | None = None
    changing: bool = False
    membership: MembershipPolicy = MembershipPolicy()


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it looks to whoever has read it: `state` is as stored, or `lost`."""

    run_id: str
    number: int
    scope: str
    engine: str
    state: str
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the chains of a lineage that are in its data set, those that have left included."""

    pages: int = 0
    events: int = 0
    dead_letters: int = 0
    drift: int = 0


@dataclass(frozen=True, slots=True)
class SupersededLineage:
    """A lineage that a rebuild has ended: what was published of it until then. Its files stay listed under it.

    `violated`: the source was found to have broken a promise in it."""

    lineage: int
    epoch: int
    after: Bound | None
    frontier: Bound | None
    basis: str
    list_certified: bool
    violated: bool
    reason: str
    operator: str | None
    superseded_at: datetime


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that `status` needs, of one consistent read. Candidates are in `chains` too (epoch_in None).

    `violations` are the present lineage's. `frozen`: the lineage has a membership epoch. `departed` are those of the chains'
    successors that have left in order; `superseded` the lineages before this one, the oldest first."""

    scope: FrontierRow
    chains: Sequence[ChainRow]
    run: RunRow | None
    violations: int
    as_of: datetime
    totals: Totals = Totals()
    frozen: bool = True
    departed: frozenset[str] = frozenset()
    superseded: Sequence[SupersededLineage] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What observing a list came to. `chains` are all live ones: members and candidates, in any state and generation.

    `tasks` are those of them to read: of the list's routing generation (another one's have stopped), open or held. `late`: the
    list was not taken note of, since another one was followed while it was read."""

    scope: FrontierRow
    generation: str
    chains: Sequence[ChainRow]
    late: bool = False

    @property
    def observation(self) -> int:
        return self.scope.observation

    @property
    def epoch(self) -> int:
        """0 while no membership is frozen: the list was empty."""
        return self.scope.epoch

    @property
    def tasks(self) -> list[ChainRow]:
        readable = (ChainState.OPEN, ChainState.HELD)
        return [row for row in self.chains if row.generation == self.generation and row.state in readable]


@dataclass(frozen=True, slots=True)
class IdentityDifference:
    """A key in which a stored scope and a given one differ; values as JSON, `(absent)` where there is none."""

    key: str
    stored: str
    given: str

    def __str__(self) -> str:
        return f"{self.key} is {self.stored} in the store, {self.given} here"


@dataclass(frozen=True, slots=True)
class Listed:
    """What a sweep may not touch: the paths any promotion of the scope lists, and every partition's fencing token.

    An unlisted file of a lower token than its partition's can never be listed any more."""

    paths: frozenset[str]
    fencing_tokens: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CutoverResult:
    """What a cutover came to. `accepted`: the scope went from membership epoch `from_epoch` to `to_epoch`; else nothing changed.

    `entered` and `left` are partition ids (one that is in both entered and left at once), `replaced` those that were read again.
    `missing` is what the latest list still lacks."""

    scope: str
    lineage: int
    from_epoch: int
    to_epoch: int
    accepted: bool
    generation: str
    entered: Sequence[str] = ()
    left: Sequence[str] = ()
    replaced: Sequence[str] = ()
    missing: Sequence[MemberBlocker] = ()


@dataclass(frozen=True, slots=True)
class Sealed:
    """An operator's word that a partition holds nothing beyond `at`; it leaves at a cutover once it is promoted that far."""

    scope: str
    partition: str
    at: Bound
    reason: str
    operator: str


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A rebuild: `superseded` is what it has ended, `lineage` the new one, `differences` what the identity took over."""

    scope: str
    lineage: int
    superseded: SupersededLineage
    differences: tuple[IdentityDifference, ...]
