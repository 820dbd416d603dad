"""The cutover: what the pure step decides, carried out in one transaction under the scope's lock, with its proof kept."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.progress import Bound, ChainState, Domain, MemberBlocker, Step
from gapless.store import schema
from gapless.store.base import StoreBase
from gapless.store.batches import batches
from gapless.store.cap import cap_after_cutover
from gapless.store.listing import departed_successors
from gapless.store.membership import is_changing, is_frozen, live_chains
from gapless.store.next_step import next_step
from gapless.store.records import PARTITION, TRANSIT, CutoverResult
from gapless.store.rows import chain_row, frontier_row, policy_of

_chain = schema.chain.c
_WAITING_FOR_A_CUTOVER = ("membership_changed", "handoff_unproven")


class Cutovers(StoreBase):
    """The only way from one membership epoch to the next."""

    def cutover(self, scope: str, *, dry_run: bool = False) -> CutoverResult:
        """Take the step towards the latest list that is proved now; refused, with all that is missing, where none is.

        Excludes publishing by the scope's lock; the frontier does not move. `dry_run` decides and writes nothing. Raises
        UnknownScope."""
        attempt, decided = uuid4().hex, []

        def work(connection: Connection) -> CutoverResult:
            result = self._cut_over(connection, scope, attempt, dry_run=dry_run)
            decided.append(result)
            return result

        def again(connection: Connection) -> CutoverResult:
            """Where an attempt did commit, its epoch stands there under their mark."""
            done = next((one for one in decided if _opened_by(connection, one, attempt)), None)
            return done or work(connection)

        return self._database.read(work) if dry_run else self._database.write(work, again)

    def _cut_over(self, connection: Connection, scope: str, attempt: str, *, dry_run: bool) -> CutoverResult:
        row = self._scope_row(connection, scope, lock=not dry_run)
        domain = self._domain(connection, scope)
        if not is_frozen(connection, row):
            nobody = MemberBlocker("not_started", "", "no run has frozen the list of partitions yet")
            return _result(row, Step(row["generation"], missing=(nobody,)), {}, accepted=False)
        # What is promoted meanwhile makes nobody less complete. But it may pass what a handoff certificate covers.
        rerouted = row["observed_generation"] != row["generation"]
        live = live_chains(connection, row, lock=rerouted and not dry_run)
        chains = {chain["chain"]: chain for chain in live if chain["kind"] == PARTITION}
        transit = next((chain for chain in live if chain["kind"] == TRANSIT), None)
        step = _decide(connection, row, live, domain)
        accepted = step.changes
        if accepted and not dry_run:
            _carry_out(connection, row, chains, transit, step, domain, attempt, self._clock.now())
        return _result(row, step, chains, accepted=accepted)


def _decide(connection: Connection, scope: RowMapping, live: Sequence[RowMapping], domain: Domain) -> Step:
    rows = [chain_row(row, domain) for row in live]
    return next_step(frontier_row(scope), rows, departed_successors(connection, scope, rows))


def _carry_out(
    connection: Connection,
    scope: RowMapping,
    chains: Mapping[int, RowMapping],
    transit: RowMapping | None,
    step: Step,
    domain: Domain,
    attempt: str,
    now: datetime,
) -> None:
    epoch = scope["epoch"] + 1
    # The order matters: a partition has one live chain a generation, and a rerouted one takes the place of a candidate.
    _set(connection, step.dropped, epoch_out=epoch, state=ChainState.SUPERSEDED.value)
    _set(connection, step.replaced, epoch_out=epoch, state=ChainState.REPLACED.value)
    _reroute(connection, scope, step)
    _set(connection, step.entering, epoch_in=epoch)
    _set(connection, step.leaving, epoch_out=epoch, state=ChainState.SEALED.value)
    if step.read_again:
        _replace_departed(connection, scope, [chains[chain]["partition"] for chain in step.entering], epoch)
        _replace_transit(connection, scope, step.generation)
    elif transit is not None and step.generation != scope["generation"]:
        # Its events count from here on; it is no member of any epoch.
        _set(connection, [transit["chain"]], epoch_in=epoch, epoch_out=epoch)
    remaining = _remaining(connection, scope)
    basis = _basis(scope, [chains[chain] for chain in (*step.leaving, *step.entering)])
    after = {**scope, "generation": step.generation}
    unproven = step.generation != scope["observed_generation"] or any(
        row["epoch_in"] is None for row in remaining
    )
    cap, certified = cap_after_cutover(
        scope["cap"], scope["list_certified"], scope["frontier"], scope["list_bound"] or None, unproven
    )
    connection.execute(
        sa.update(schema.scope)
        .where(schema.scope.c.scope == scope["scope"])
        .values(
            epoch=epoch,
            generation=step.generation,
            cap=cap,
            list_certified=certified,
            basis=basis,
            changing=is_changing(after, scope["observation"], scope["observed_generation"], remaining),  # type: ignore[arg-type]
        )
    )
    connection.execute(
        sa.insert(schema.epoch).values(
            scope=scope["scope"],
            lineage=scope["lineage"],
            epoch=epoch,
            generation=step.generation,
            list_bound=scope["list_bound"],
            frontier=scope["frontier"],
            basis=basis,
            proof=_proof(scope, chains, transit, step, domain, attempt),
            opened_at=now,
        )
    )


def _set(connection: Connection, chains: Sequence[int], **values: Any) -> None:
    for some in batches(chains):
        connection.execute(sa.update(schema.chain).where(_chain.chain.in_(some)).values(values))


def _reroute(connection: Connection, scope: RowMapping, step: Step) -> None:
    """Tokens and bounds go on; what held a chain because of the routing holds it no more. The departed are carried along, so
    that a list which still names them does not bring them back."""
    if not step.rerouted:
        return
    waits = _chain.blocker_code.in_(_WAITING_FOR_A_CUTOVER)
    released: dict[str, Any] = {
        column.name: sa.case((waits, None), else_=column)
        for column in schema.chain.c
        if column.name.startswith("blocker_")
    }
    opened = sa.and_(waits, _chain.state == ChainState.HELD.value)
    released["state"] = sa.case((opened, ChainState.OPEN.value), else_=_chain.state)
    _set(connection, step.rerouted, generation=step.generation, **released)
    departed = sa.and_(
        _chain.scope == scope["scope"], _chain.lineage == scope["lineage"], schema.has_departed()
    )
    connection.execute(sa.update(schema.chain).where(departed).values(generation=step.generation))


def _replace_departed(connection: Connection, scope: RowMapping, names: Sequence[str], epoch: int) -> None:
    """Whoever had left in order under a name that was read again: its events stand in the new chain's files."""
    for some in batches(names):
        earlier = sa.and_(
            _chain.scope == scope["scope"],
            _chain.lineage == scope["lineage"],
            schema.has_departed(),
            _chain.epoch_out < epoch,
            _chain.partition.in_(some),
        )
        connection.execute(sa.update(schema.chain).where(earlier).values(state=ChainState.REPLACED.value))


def _remaining(connection: Connection, scope: RowMapping) -> Sequence[RowMapping]:
    """Of who is live now as much as tells whether somebody is still to enter or to leave."""
    wanted = sa.select(_chain.epoch_in, _chain.listed, _chain.seal).where(
        _chain.scope == scope["scope"],
        _chain.lineage == scope["lineage"],
        schema.is_live(),
        _chain.kind == PARTITION,
    )
    return connection.execute(wanted).mappings().all()


def _replace_transit(connection: Connection, scope: RowMapping, generation: str) -> None:
    """Events that once were in transit have been read again, each where it lies now; unless somebody of another generation has
    left and keeps what it had: it may be one of its own that nobody else holds."""
    mine = sa.and_(_chain.scope == scope["scope"], _chain.lineage == scope["lineage"])
    keeps = sa.select(_chain.chain).where(mine, schema.has_departed(), _chain.generation != generation)
    if connection.execute(keeps.limit(1)).first() is None:
        drained = sa.and_(mine, _chain.kind == TRANSIT, _chain.epoch_in.is_not(None))
        connection.execute(sa.update(schema.chain).where(drained).values(state=ChainState.REPLACED.value))


def _basis(scope: RowMapping, moved: Collection[RowMapping]) -> str:
    """An operator's word, and an assertion of who leaves, taint the rest of the lineage."""
    by_word = any(
        row["basis"] == "asserted" or (row["seal"] != b"" and row["seal_basis"] == "operator")
        for row in moved
    )
    return "asserted" if by_word else str(scope["basis"])


def _proof(
    scope: RowMapping,
    chains: Mapping[int, RowMapping],
    transit: RowMapping | None,
    step: Step,
    domain: Domain,
    attempt: str,
) -> dict[str, Any]:
    """Everything the cutover rested on, as JSON values, by chain."""

    def bounds(ids: Sequence[int], column: str) -> dict[str, Any]:
        return {str(chain): _json_bound(domain.from_key(chains[chain][column]), domain) for chain in ids}

    proof: dict[str, Any] = {
        "by": "cutover",
        "attempt": attempt,
        "observation": scope["observation"],
        "entered": bounds(step.entering, "bound"),
        "left": {
            str(chain): {
                "seal": _json_bound(domain.from_key(chains[chain]["seal"]), domain),
                "by": chains[chain]["seal_basis"],
                "successors": chains[chain]["successors"],
            }
            for chain in step.leaving
        },
        "replaced": list(step.replaced),
        "dropped": list(step.dropped),
    }
    if step.generation != scope["generation"]:
        proof["routing"] = _routing(scope, transit, step, domain)
    return proof


def _routing(scope: RowMapping, transit: RowMapping | None, step: Step, domain: Domain) -> dict[str, Any]:
    change: dict[str, Any] = {"from": scope["generation"], "to": step.generation}
    policy = policy_of(scope["membership"])
    if step.read_again:
        return {**change, "by": "reading again"}
    if policy.moves is not None:
        return {**change, "by": "moves", "reason": policy.moves}
    if transit is None:
        raise AssertionError("a rerouted scope without the source's promise has a handoff certificate")
    complete = _json_bound(domain.from_key(transit["bound"]), domain)
    return {**change, "by": "handoff", "transit": transit["chain"], "complete": complete}


def _json_bound(bound: Bound | None, domain: Domain) -> dict[str, Any] | None:
    if bound is None:
        return None
    return {"position": domain.text(bound.position), "inclusive": bound.inclusive}


def _opened_by(connection: Connection, decided: CutoverResult, attempt: str) -> bool:
    column = schema.epoch.c
    wanted = sa.select(column.proof).where(
        column.scope == decided.scope,
        column.lineage == decided.lineage,
        column.epoch == decided.to_epoch,
    )
    proof = connection.execute(wanted).scalar_one_or_none()
    return decided.accepted and proof is not None and proof.get("attempt") == attempt


def _result(
    scope: RowMapping, step: Step, chains: Mapping[int, RowMapping], *, accepted: bool
) -> CutoverResult:
    def names(ids: Sequence[int]) -> list[str]:
        return sorted(str(chains[chain]["partition"]) for chain in ids)

    return CutoverResult(
        scope=scope["scope"],
        lineage=scope["lineage"],
        from_epoch=scope["epoch"],
        to_epoch=scope["epoch"] + 1,
        accepted=accepted,
        generation=step.generation,
        entered=names(step.entering),
        left=names(step.leaving),
        replaced=names(step.replaced),
        missing=step.missing,
    )
