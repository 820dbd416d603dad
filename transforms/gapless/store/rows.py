"""Between rows of the tables and records: keys become bounds of the scope's domain, and positions its canonical text."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy.engine import RowMapping

from gapless.progress import NO_CAP, ChainState, Domain, Position, domain_from
from gapless.store.records import (
    LOST,
    LOST_AFTER,
    RUNNING,
    Blocker,
    ChainRow,
    DeadLetter,
    FrontierRow,
    MembershipPolicy,
    PromotionRow,
    RunRow,
    SupersededLineage,
    Violation,
)


def frontier_row(row: RowMapping) -> FrontierRow:
    domain = domain_from(row["domain"])
    capped = row["cap"] != NO_CAP
    return FrontierRow(
        scope=row["scope"],
        fingerprint=row["fingerprint"],
        domain=domain,
        lineage=row["lineage"],
        epoch=row["epoch"],
        generation=row["generation"],
        observation=row["observation"],
        list_certified=row["list_certified"],
        after=domain.from_key(row["after"]),
        frontier=domain.from_key(row["frontier"]),
        cap=domain.from_key(row["cap"]) if capped else None,
        capped=capped,
        basis=row["basis"],
        published_at=row["published_at"],
        identity=row["identity"],
        observed_generation=row["observed_generation"],
        list_bound=domain.from_key(row["list_bound"]),
        changing=row["changing"],
        membership=policy_of(row["membership"]),
    )


def policy_of(stored: Mapping[str, Any] | None) -> MembershipPolicy:
    return MembershipPolicy() if stored is None else MembershipPolicy(**stored)


def chain_row(row: RowMapping, domain: Domain) -> ChainRow:
    return ChainRow(
        chain=row["chain"],
        scope=row["scope"],
        lineage=row["lineage"],
        partition=row["partition"],
        fields=row["fields"],
        generation=row["generation"],
        epoch_in=row["epoch_in"],
        epoch_out=row["epoch_out"],
        listed=row["listed"],
        state=ChainState(row["state"]),
        fencing_token=row["fencing_token"],
        sequence=row["sequence"],
        page_token=row["page_token"],
        bound=domain.from_key(row["bound"]),
        read_to=domain.from_key(row["read_to"]),
        basis=row["basis"],
        events=row["events"],
        dead_letters=row["dead_letters"],
        drift=row["drift"],
        blocker=_blocker(row, domain),
        seal=domain.from_key(row["seal"]),
        successors=_names(row["successors"]),
        parents=_names(row["parents"]),
        kind=row["kind"],
        seal_basis=row["seal_basis"],
    )


def _blocker(row: RowMapping, domain: Domain) -> Blocker | None:
    if row["blocker_code"] is None:
        return None
    return Blocker(
        code=row["blocker_code"],
        hint=row["blocker_hint"],
        event_id=row["blocker_event_id"],
        position=read_position(domain, row["blocker_position"]),
        since=row["blocker_since"],
        retry_at=row["blocker_retry_at"],
    )


def promotion_row(row: RowMapping, domain: Domain) -> PromotionRow:
    return PromotionRow(
        chain=row["chain"],
        partition=row["partition"],
        sequence=row["sequence"],
        pages=row["pages"],
        fencing_token=row["fencing_token"],
        token_in=row["token_in"],
        token_out=row["token_out"],
        bound=domain.from_key(row["bound"]),
        path=row["path"],
        digest=row["digest"],
        rows=row["rows"],
        size=row["size"],
        promoted_at=row["promoted_at"],
        evidence=row["evidence"],
    )


def dead_letter(row: RowMapping, domain: Domain) -> DeadLetter:
    return DeadLetter(
        partition=row["partition"],
        sequence=row["sequence"],
        event_id=row["event_id"],
        position=domain.from_text(row["position"]),
        reason=row["reason"],
        payload=row["payload"],
        path=row["path"],
        operator=row["operator"],
        recorded_at=row["recorded_at"],
    )


def violation(row: RowMapping, domain: Domain) -> Violation:
    return Violation(
        partition=row["partition"],
        kind=row["kind"],
        sequence=row["sequence"],
        detail=row["detail"],
        event_id=row["event_id"],
        position=read_position(domain, row["position"]),
        bound=domain.from_key(row["bound"]),
        recorded_at=row["recorded_at"],
        lineage=row["lineage"],
    )


def superseded_lineage(row: RowMapping, domain: Domain, *, violated: bool) -> SupersededLineage:
    """Of a rebuild's entry in the journal."""
    detail = row["detail"]
    return SupersededLineage(
        lineage=row["lineage"],
        epoch=detail["epoch"],
        after=domain.from_key(bytes.fromhex(detail["after"])),
        frontier=domain.from_key(bytes.fromhex(detail["frontier"])),
        basis=detail["basis"],
        list_certified=detail["list_certified"],
        violated=violated,
        reason=row["reason"],
        operator=row["operator"],
        superseded_at=row["recorded_at"],
    )


def run_row(row: RowMapping, as_of: datetime) -> RunRow:
    silent = row["state"] == RUNNING and as_of - row["heartbeat_at"] > LOST_AFTER
    return RunRow(
        run_id=row["run_id"],
        number=row["number"],
        scope=row["scope"],
        engine=row["engine"],
        state=LOST if silent else row["state"],
        started_at=row["started_at"],
        heartbeat_at=row["heartbeat_at"],
    )


def read_position(domain: Domain, text: str | None) -> Position | None:
    return None if text is None else domain.from_text(text)


def write_position(domain: Domain, position: Position | None) -> str | None:
    return None if position is None else domain.text(position)


def _names(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)
