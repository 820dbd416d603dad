"""`gapless status --json` as a dict of JSON values: pure, from one snapshot of the durable rows.

Positions are canonical text of the scope's domain, instants RFC 3339 in UTC. Every key is always there; what is not known is
null, and a member that no run has taken yet is `not_started`, never left out.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from gapless._version import __version__
from gapless.clock import instant_text
from gapless.explain import Explanation, Holding, explain, lowest_first, members_of
from gapless.progress import Bound, ChainState, Domain
from gapless.store.records import Blocker, ChainRow, FrontierRow, RunRow, Snapshot, SupersededLineage

FORMAT = 1
WORST = 100
"""How many partitions are shown unless all are asked for."""


def status_document(
    snapshot: Snapshot, explanation: Explanation | None = None, *, all_partitions: bool = False
) -> dict[str, Any]:
    """Format 1. `partitions` holds the `WORST` members, the lowest bound first, or every one."""
    explanation = explanation or explain(snapshot)
    scope = snapshot.scope
    members = sorted(members_of(snapshot), key=lowest_first)
    shown = members if all_partitions else members[:WORST]
    return {
        "format": FORMAT,
        "gapless": __version__,
        "as_of": instant(snapshot.as_of),
        "scope": scope.scope,
        "domain": scope.domain.describe(),
        "lineage": scope.lineage,
        "membership_epoch": scope.epoch,
        "routing_generation": scope.generation,
        "list": list_word(scope.list_certified),
        "frontier": frontier_value(snapshot),
        "withheld": _withheld_value(explanation.withheld),
        "run": _run_value(snapshot.run),
        "counts": counts(snapshot, members),
        "blockers": [blocker_value(held, scope.domain) for held in explanation.holding],
        "partitions": [_partition_value(row, scope.domain) for row in shown],
        "superseded": [superseded_value(one, scope.domain) for one in snapshot.superseded],
    }


def frontier_value(snapshot: Snapshot) -> dict[str, Any] | None:
    """The published frontier with where its claim starts; None where nothing is claimed."""
    scope = snapshot.scope
    if scope.frontier is None:
        return None
    published_at = scope.published_at
    age = None if published_at is None else max(0, int((snapshot.as_of - published_at).total_seconds()))
    return {
        **_claim_fields(scope.frontier, scope.after, scope.domain),
        "basis": scope.basis,
        "violated": snapshot.violations > 0,
        "published_at": instant(published_at),
        "age_s": age,
    }


def superseded_value(one: SupersededLineage, domain: Domain) -> dict[str, Any]:
    """A lineage that a rebuild has ended, and what was claimed of it."""
    frontier = None
    if one.frontier is not None:
        frontier = {
            **_claim_fields(one.frontier, one.after, domain),
            "basis": one.basis,
            "violated": one.violated,
        }
    return {
        "lineage": one.lineage,
        "membership_epoch": one.epoch,
        "list": list_word(one.list_certified),
        "frontier": frontier,
        "reason": one.reason,
        "operator": one.operator,
        "superseded_at": instant(one.superseded_at),
    }


def list_word(certified: bool) -> str:
    """Whether a claim is about the members alone, or the whole scope."""
    return "certified" if certified else "frozen"


def _claim_fields(bound: Bound, after: Bound | None, domain: Domain) -> dict[str, Any]:
    return {
        **bound_fields(bound, domain),
        "after": None if after is None else domain.text(after.position),
        "after_inclusive": None if after is None else after.inclusive,
    }


def counts(snapshot: Snapshot, members: Sequence[ChainRow]) -> dict[str, int]:
    """Members by state (each in exactly one), and sums over the chains that are in the data set."""
    states = [member_state(row) for row in members]
    apart = {name: states.count(name) for name in ("open", "held", "gap", "not_started")}
    return {
        "members": len(members),
        "active": apart["open"],
        "ended": len(members) - sum(apart.values()),
        "held": apart["held"] + apart["gap"],
        "not_started": apart["not_started"],
        "pages": snapshot.totals.pages,
        "events": snapshot.totals.events,
        "dead_letters": snapshot.totals.dead_letters,
        "violations": snapshot.violations,
        "schema_drift": snapshot.totals.drift,
    }


def member_state(row: ChainRow) -> str:
    """`not_started` before any run has taken it, else the chain's own state: `open` while it is read."""
    if row.state is ChainState.OPEN and row.fencing_token == 0:
        return "not_started"
    return str(row.state)


def blocker_value(held: Holding, domain: Domain) -> dict[str, Any]:
    """Who holds, on what, since when, and what releases it."""
    return _blocker_value(held.blocker, domain, held.row.partition, held.row.bound, held.command)


def list_blocker_value(blocker: Blocker, scope: FrontierRow) -> dict[str, Any]:
    """The same for what no partition holds but the member list as a whole: `partition` null, `bound` its cap."""
    return _blocker_value(blocker, scope.domain, None, scope.cap, None)


def _blocker_value(
    blocker: Blocker, domain: Domain, partition: str | None, bound: Bound | None, command: str | None
) -> dict[str, Any]:
    return {
        "partition": partition,
        "code": blocker.code,
        "event_id": blocker.event_id,
        "position": None if blocker.position is None else domain.text(blocker.position),
        "since": instant(blocker.since),
        "bound": bound_value(bound, domain),
        "hint": blocker.hint,
        "release": {"retry_at": instant(blocker.retry_at), "command": command},
    }


def bound_value(bound: Bound | None, domain: Domain) -> dict[str, Any] | None:
    """`{"position": text, "inclusive": bool}`; None for no bound."""
    return None if bound is None else bound_fields(bound, domain)


def bound_fields(bound: Bound, domain: Domain) -> dict[str, Any]:
    return {"position": domain.text(bound.position), "inclusive": bound.inclusive}


def instant(moment: datetime | None) -> str | None:
    """As JSON has it; what is not known is null."""
    return None if moment is None else instant_text(moment)


def _withheld_value(blocker: Blocker | None) -> dict[str, Any] | None:
    return None if blocker is None else {"code": blocker.code, "detail": blocker.hint}


def _run_value(run: RunRow | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "id": run.run_id,
        "number": run.number,
        "engine": run.engine,
        "state": run.state,
        "started_at": instant(run.started_at),
        "heartbeat_at": instant(run.heartbeat_at),
    }


def _partition_value(row: ChainRow, domain: Domain) -> dict[str, Any]:
    return {
        "partition": row.partition,
        "state": member_state(row),
        "fencing_token": row.fencing_token,
        "sequence": row.sequence,
        "events": row.events,
        "bound": bound_value(row.bound, domain),
    }
