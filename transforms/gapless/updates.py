"""The elements that travel between the transforms. Self-describing, immutable, the same bytes for the same value."""

from dataclasses import dataclass
from typing import Any

from gapless.clock import instant_text
from gapless.progress import Bound, ChainState, Domain
from gapless.store.records import PARTITION, Blocker


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What starts a run: `run_id` is created at submission, so that every retry of the plan gets the same number.

    `observe` reads the source's list; a later pass of the same run goes by the durable rows alone."""

    scope: str
    run_id: str
    engine: str
    observe: bool = True


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One chain to read: its durable id, the fencing token of the run, and the membership epoch as planned.

    `members` is how many partitions that epoch has; `member` is False for a candidate. `kind` is the chain's."""

    scope: str
    domain: Domain
    chain: int
    partition: str
    fields: str
    fencing_token: int
    lineage: int
    epoch: int
    members: int
    member: bool
    run_id: str
    kind: str = PARTITION


@dataclass(frozen=True, slots=True)
class PlannedTasks:
    """All chains that one run is to read, the lowest bound first."""

    tasks: tuple[ReadTask, ...]


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """Where one chain durably stands. Later values have a higher sequence, bound or fencing token, never a lower one."""

    scope: str
    domain: Domain
    chain: int
    partition: str
    lineage: int
    epoch: int
    members: int
    member: bool
    state: ChainState
    fencing_token: int
    sequence: int
    events: int
    bound: Bound | None
    basis: str
    blocker: str | None = None
    blocker_hint: str | None = None


@dataclass(frozen=True, slots=True)
class FrontierUpdate:
    """The published frontier with the membership epoch under which it holds, or why there is none.

    `bound` None: withheld, and `withheld` names the first blocker's code. `basis` is `certified` or `asserted`; `after` is
    where the claim starts (None: from the beginning of the source)."""

    scope: str
    domain: Domain
    lineage: int
    membership_epoch: int
    after: Bound | None
    bound: Bound | None
    basis: str
    withheld: str | None
    blockers: tuple[tuple[str, Blocker], ...] = ()

    def _repr_html_(self) -> str:
        """For a notebook: the frontier and its blockers."""
        from gapless.notebook import frontier_html

        frontier = None
        if self.bound is not None:
            frontier = {
                **_fields(self.bound, self.domain),
                "after": None if self.after is None else self.domain.text(self.after.position),
                "after_inclusive": None if self.after is None else self.after.inclusive,
                "basis": self.basis,
            }
        return frontier_html(
            {
                "scope": self.scope,
                "lineage": self.lineage,
                "membership_epoch": self.membership_epoch,
                "frontier": frontier,
                "withheld": None if self.withheld is None else {"code": self.withheld, "detail": ""},
                "blockers": [_blocker(partition, one, self.domain) for partition, one in self.blockers],
            }
        )


def _fields(bound: Bound, domain: Domain) -> dict[str, Any]:
    return {"position": domain.text(bound.position), "inclusive": bound.inclusive}


def _blocker(partition: str, blocker: Blocker, domain: Domain) -> dict[str, Any]:
    return {
        "partition": partition,
        "code": blocker.code,
        "event_id": blocker.event_id,
        "position": None if blocker.position is None else domain.text(blocker.position),
        "since": None if blocker.since is None else instant_text(blocker.since),
        "hint": blocker.hint,
    }
