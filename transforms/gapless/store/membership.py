"""Membership as the store sees it: the first list freezes an epoch, every later one only adds candidates and facts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.errors import ForeignLineage, InvalidPage
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import ChainState, Domain
from gapless.store import schema
from gapless.store.base import StoreBase
from gapless.store.cap import first_cap, next_cap
from gapless.store.records import Observed
from gapless.store.rows import chain_row, frontier_row

_IDS_PER_STATEMENT = 5000


class Memberships(StoreBase):
    """Observing the source's list. Entering and leaving happen by cutover alone."""

    def observe(self, scope: str, assignment: Assignment, *, lineage: int | None = None) -> Observed:
        """Take note of the source's list, in one transaction. Seeing the same list again changes nothing.

        The first list that is not empty freezes membership epoch 1. Later, whoever is new is read as a candidate, as are the
        chains of another routing generation; whoever is no longer listed stays (`listed` < the observation); seals, successors
        and parents are kept; the cap follows the list's certificate. The frontier is not touched.

        `lineage` is the one the caller works in. Raises UnknownScope, ForeignLineage, and InvalidPage where the list names
        a partition twice."""
        listed = _by_id(assignment)

        def work(connection: Connection) -> Observed:
            row = self._scope_row(connection, scope, lock=True)
            if lineage is not None and row["lineage"] != lineage:
                raise ForeignLineage(
                    f"scope {scope!r} is in lineage {row['lineage']}, this run works in {lineage}",
                    where=self._database.where,
                    remedy="start a new run: it reads in the new lineage",
                )
            domain = self._domain(connection, scope)
            live = _live_chains(connection, row)
            if _take_note(connection, row, live, assignment, listed, domain, self._clock.now()):
                live = _live_chains(connection, row)
            chains = [chain_row(chain, domain) for chain in live]
            return Observed(frontier_row(self._scope_row(connection, scope)), assignment.generation, chains)

        return self._database.write(work)


def _by_id(assignment: Assignment) -> dict[str, ListedPartition]:
    listed: dict[str, ListedPartition] = {}
    for entry in assignment.partitions:
        if listed.setdefault(entry.partition.id, entry) is not entry:
            raise InvalidPage(
                f"the source's list names partition {entry.partition.id!r} twice",
                remedy="check `source.partitions`: every id once",
            )
    return listed


def _take_note(
    connection: Connection,
    scope: RowMapping,
    chains: Sequence[RowMapping],
    assignment: Assignment,
    listed: Mapping[str, ListedPartition],
    domain: Domain,
    now: datetime,
) -> bool:
    """Write what the list brings that was not known. Whether the live chains have changed by it."""
    first = scope["epoch"] == 0
    if first and not listed:
        return False
    live = {(row["partition"], row["generation"]): row for row in chains}
    present = {name: live.get((name, assignment.generation)) for name in listed}
    facts = {name: _facts(entry, present[name], domain) for name, entry in listed.items()}
    changed = _has_changed(scope, chains, present, facts, assignment.generation)
    observation = scope["observation"] + 1 if changed else scope["observation"]
    if changed:
        _insert_chains(
            connection, scope, assignment.generation, observation, 1 if first else None, facts, present
        )
        _update_chains(connection, observation, facts, present)
    list_bound = None if assignment.list_bound is None else domain.key(assignment.list_bound)
    values: dict[str, Any] = {"observation": observation}
    if first:
        values |= {"epoch": 1, "generation": assignment.generation}
        values["cap"], values["list_certified"] = first_cap(list_bound)
        _record_epoch(connection, scope, assignment.generation, list_bound or domain.key(None), now)
    else:
        unproven = assignment.generation != scope["generation"] or _has_candidate(connection, scope)
        values["cap"], values["list_certified"] = next_cap(
            scope["cap"], scope["list_certified"], scope["frontier"], list_bound, unproven
        )
    if any(scope[name] != value for name, value in values.items()):
        connection.execute(
            sa.update(schema.scope).where(schema.scope.c.scope == scope["scope"]).values(values)
        )
    return changed


def _live_chains(connection: Connection, scope: RowMapping) -> Sequence[RowMapping]:
    wanted = sa.select(schema.chain).where(
        schema.chain.c.scope == scope["scope"], schema.chain.c.lineage == scope["lineage"], schema.is_live()
    )
    return connection.execute(wanted.order_by(schema.chain.c.chain)).mappings().all()


def _facts(entry: ListedPartition, stored: RowMapping | None, domain: Domain) -> dict[str, Any]:
    """What the list says of a partition, over what is known already: a fact once stated is not forgotten by silence.

    A seal is a promise about the end: a lower one does not take back what a higher one says there is to drain."""
    seal = domain.key(entry.seal)
    successors = None if entry.successors is None else list(entry.successors)
    parents = None if entry.parents is None else list(entry.parents)
    if stored is not None:
        seal = max(seal, stored["seal"])
        successors = stored["successors"] if successors is None else successors
        parents = stored["parents"] if parents is None else parents
    return {
        "fields": dict(entry.partition.fields),
        "seal": seal,
        "successors": successors,
        "parents": parents,
    }


def _has_changed(
    scope: RowMapping,
    live: Sequence[RowMapping],
    present: Mapping[str, RowMapping | None],
    facts: Mapping[str, Mapping[str, Any]],
    generation: str,
) -> bool:
    """Whether this list differs from the last one: only then is there a new observation, and anything to write."""
    last = {(row["partition"], row["generation"]) for row in live if row["listed"] == scope["observation"]}
    if last != {(name, generation) for name in present}:
        return True
    return any(row is None or _differs(row, facts[name]) for name, row in present.items())


def _differs(row: RowMapping, facts: Mapping[str, Any]) -> bool:
    return any(row[name] != value for name, value in facts.items())


def _insert_chains(
    connection: Connection,
    scope: RowMapping,
    generation: str,
    observation: int,
    epoch: int | None,
    facts: Mapping[str, Mapping[str, Any]],
    present: Mapping[str, RowMapping | None],
) -> None:
    common = {
        "scope": scope["scope"],
        "lineage": scope["lineage"],
        "generation": generation,
        "epoch_in": epoch,
        "listed": observation,
        "state": ChainState.OPEN.value,
        "fencing_token": 0,
        "sequence": 0,
        "bound": b"",
        "read_to": b"",
        "basis": "certified",
        "events": 0,
        "dead_letters": 0,
        "drift": 0,
    }
    rows = [{**common, "partition": name, **facts[name]} for name, row in present.items() if row is None]
    if rows:
        connection.execute(sa.insert(schema.chain), rows)


def _update_chains(
    connection: Connection,
    observation: int,
    facts: Mapping[str, Mapping[str, Any]],
    present: Mapping[str, RowMapping | None],
) -> None:
    known = {name: row for name, row in present.items() if row is not None}
    ids = [row["chain"] for row in known.values()]
    for start in range(0, len(ids), _IDS_PER_STATEMENT):
        some = schema.chain.c.chain.in_(ids[start : start + _IDS_PER_STATEMENT])
        connection.execute(sa.update(schema.chain).where(some).values(listed=observation))
    for name, row in known.items():
        if _differs(row, facts[name]):
            connection.execute(
                sa.update(schema.chain).where(schema.chain.c.chain == row["chain"]).values(facts[name])
            )


def _has_candidate(connection: Connection, scope: RowMapping) -> bool:
    wanted = sa.select(sa.literal(1)).where(
        schema.chain.c.scope == scope["scope"],
        schema.chain.c.lineage == scope["lineage"],
        schema.is_candidate(),
    )
    return connection.execute(wanted.limit(1)).first() is not None


def _record_epoch(
    connection: Connection, scope: RowMapping, generation: str, list_bound: bytes, now: datetime
) -> None:
    connection.execute(
        sa.insert(schema.epoch).values(
            scope=scope["scope"],
            lineage=scope["lineage"],
            epoch=1,
            generation=generation,
            list_bound=list_bound,
            frontier=scope["frontier"],
            basis=scope["basis"],
            opened_at=now,
        )
    )
