"""`gapless epoch ... --json` as dicts of JSON values: pure. Positions are canonical text of the scope's domain.

Every key is always there; what is not known is null. What is missing for a cutover is told by the cutover's own rule.
"""

from collections.abc import Iterable
from typing import Any

from gapless.explain import candidates_of, lowest_first, members_of
from gapless.membership_change import change_of
from gapless.progress import Domain, MemberBlocker
from gapless.status_document import (
    FORMAT,
    bound_value,
    frontier_value,
    list_word,
    member_state,
    superseded_value,
)
from gapless.store.next_step import routing_proof, transit_of
from gapless.store.records import ChainRow, CutoverResult, FrontierRow, Rebuilt, Sealed, Snapshot

_NOT_FROZEN = MemberBlocker("not_started", "", "no run has frozen the list of partitions yet")
_PROOFS = {"Moves": "moves", "Handoff": "handoff", "ReadingAgain": "reading_again"}


def epoch_document(snapshot: Snapshot) -> dict[str, Any]:
    """Who the epoch is made of, who is to enter, and what a cutover lacks; `ready`: it would be accepted now."""
    scope = snapshot.scope
    live = [row for row in snapshot.chains if row.is_live]
    transit = transit_of(live)
    change = change_of(snapshot) if snapshot.frozen else None
    missing = () if change is None else change.step.missing
    if not snapshot.frozen:
        missing = (_NOT_FROZEN,)
    return {
        "format": FORMAT,
        "scope": scope.scope,
        "lineage": scope.lineage,
        "membership_epoch": scope.epoch,
        "routing_generation": scope.generation,
        "frontier": frontier_value(snapshot),
        "list": list_word(scope.list_certified),
        "latest_list": {
            "routing_generation": scope.observed_generation,
            "complete": bound_value(scope.list_bound, scope.domain),
        },
        "cap": bound_value(scope.cap, scope.domain) if scope.capped else None,
        "on_change": scope.membership.on_change,
        "routing_proof": _PROOFS.get(type(routing_proof(scope, live)).__name__),
        "members": [_chain_value(row, scope) for row in sorted(members_of(snapshot), key=lowest_first)],
        "candidates": [_chain_value(row, scope) for row in sorted(candidates_of(snapshot), key=lowest_first)],
        "in_transit": None if transit is None else _transit_value(transit, scope),
        "ready": change is not None and change.proved,
        "missing": missing_values(missing),
    }


def cutover_document(result: CutoverResult, *, dry_run: bool) -> dict[str, Any]:
    """What a cutover came to, or with `dry_run` would come to. Where there is nothing to do, `to` is `from`."""
    stays = not result.accepted and not result.missing
    return {
        "format": FORMAT,
        "scope": result.scope,
        "lineage": result.lineage,
        "dry_run": dry_run,
        "from": result.from_epoch,
        "to": result.from_epoch if stays else result.to_epoch,
        "accepted": result.accepted,
        "routing_generation": result.generation,
        "entered": list(result.entered),
        "left": list(result.left),
        "replaced": list(result.replaced),
        "missing": missing_values(result.missing),
    }


def sealed_document(sealed: Sealed, domain: Domain, *, dry_run: bool) -> dict[str, Any]:
    """An operator's word on where a partition ends."""
    return {
        "format": FORMAT,
        "scope": sealed.scope,
        "dry_run": dry_run,
        "partition": sealed.partition,
        "sealed": bound_value(sealed.at, domain),
        "reason": sealed.reason,
        "operator": sealed.operator,
    }


def rebuilt_document(rebuilt: Rebuilt, domain: Domain, *, dry_run: bool) -> dict[str, Any]:
    """A rebuild: `lineage` is the new one, `differences` what its identity has taken over from the job."""
    return {
        "format": FORMAT,
        "scope": rebuilt.scope,
        "dry_run": dry_run,
        "lineage": rebuilt.lineage,
        "superseded": superseded_value(rebuilt.superseded, domain),
        "differences": [
            {"key": one.key, "stored": one.stored, "given": one.given} for one in rebuilt.differences
        ],
    }


def missing_values(missing: Iterable[MemberBlocker]) -> list[dict[str, Any]]:
    """What is missing, and of whom; `partition` null: of the list as a whole."""
    return [{"partition": one.partition or None, "code": one.code, "detail": one.detail} for one in missing]


def _chain_value(row: ChainRow, scope: FrontierRow) -> dict[str, Any]:
    return {
        "partition": row.partition,
        "state": member_state(row),
        "bound": bound_value(row.bound, scope.domain),
        "routing_generation": row.generation,
        "listed": row.listed == scope.observation,
        "sealed": bound_value(row.seal, scope.domain),
        "sealed_by": None if row.seal is None else row.seal_basis,
        "successors": None if row.successors is None else list(row.successors),
        "parents": None if row.parents is None else list(row.parents),
    }


def _transit_value(row: ChainRow, scope: FrontierRow) -> dict[str, Any]:
    return {
        "from": row.fields.get("from"),
        "to": row.fields.get("to"),
        "state": member_state(row),
        "complete": bound_value(row.bound, scope.domain),
    }
