"""Membership as the store sees it: the first list freezes an epoch, every later one only adds candidates and facts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.errors import ForeignLineage, InvalidPage
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Domain
from gapless.store import schema
from gapless.store.base import StoreBase
from gapless.store.batches import batches
from gapless.store.cap import first_cap, next_cap
from gapless.store.listing import (
    facts_of,
    require_ends_ahead,
    require_new_generation,
    require_sound,
    still_listed,
)
from gapless.store.records import PARTITION, MembershipPolicy, Observed
from gapless.store.rows import chain_row, frontier_row
from gapless.store.transit import follow_transit, new_chain

_FACTS = ("fields", "seal", "seal_basis", "successors", "parents")
_SET_FACTS = (
    sa.update(schema.chain)
    .where(schema.chain.c.chain == sa.bindparam("at_chain", type_=schema.chain.c.chain.type))
    .values({fact: sa.bindparam(f"new_{fact}", type_=schema.chain.c[fact].type) for fact in _FACTS})
)


class Memberships(StoreBase):
    """Observing the source's list. Entering and leaving happen by cutover alone."""

    def observe(
        self,
        scope: str,
        assignment: Assignment,
        *,
        lineage: int | None = None,
        policy: MembershipPolicy | None = None,
        renew: bool = True,
        epoch: int | None = None,
        observation: int | None = None,
    ) -> Observed:
        """Take note of the source's list, in one transaction. Seeing the same list again changes nothing.

        The lineage's first list that is not empty freezes a membership epoch. Later, whoever is new is read as a candidate; who
        is no longer listed stays (`listed` < the observation); seals, successors and parents are kept; the cap follows the
        list's certificate. The frontier is not touched. Under another routing generation the old chains stop; `policy` says
        whether candidates read all of it again. `renew` asks anew for a handoff certificate that did not reach far enough.

        `lineage` is the one the caller works in. `epoch` and `observation` are those that stood before the list was read: a list
        that is older than the latest cutover, or than another list, is not taken note of (`late`), since it would bring back who
        has left, or a routing generation that another one has followed.

        Raises UnknownScope, ForeignLineage, and InvalidPage where the list names a partition twice, contradicts what was
        certified, or goes back to an earlier generation: then nothing was changed."""
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
            live = live_chains(connection, row)
            look = _Look(assignment, listed, domain, policy or MembershipPolicy(), renew, self._clock.now())
            current = epoch in (None, row["epoch"]) and observation in (None, row["observation"])
            if current and _take_note(connection, row, live, look):
                live = live_chains(connection, row)
            chains = [chain_row(chain, domain) for chain in live]
            generation = look.generation if current else row["observed_generation"]
            after = frontier_row(self._scope_row(connection, scope))
            return Observed(after, generation, chains, late=not current)

        return self._database.write(work)


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at the source's list."""

    assignment: Assignment
    listed: Mapping[str, ListedPartition]
    domain: Domain
    policy: MembershipPolicy
    renew: bool
    now: datetime

    @property
    def generation(self) -> str:
        return self.assignment.generation

    @property
    def list_bound(self) -> bytes | None:
        bound = self.assignment.list_bound
        return None if bound is None else self.domain.key(bound)


def live_chains(connection: Connection, scope: RowMapping, *, lock: bool = False) -> Sequence[RowMapping]:
    """Members and candidates of the scope's lineage, in the order they were first seen.

    `lock` them where what is decided rests on how far they are promoted: a promotion locks nothing but its chain."""
    wanted = sa.select(schema.chain).where(
        schema.chain.c.scope == scope["scope"], schema.chain.c.lineage == scope["lineage"], schema.is_live()
    )
    wanted = wanted.order_by(schema.chain.c.chain)
    return connection.execute(wanted.with_for_update() if lock else wanted).mappings().all()


def is_frozen(connection: Connection, scope: RowMapping) -> bool:
    """Whether the lineage has a membership epoch yet."""
    column = schema.epoch.c
    wanted = sa.select(sa.literal(1)).where(
        column.scope == scope["scope"], column.lineage == scope["lineage"]
    )
    return connection.execute(wanted.limit(1)).first() is not None


def is_changing(scope: RowMapping, observation: int, generation: str, chains: Sequence[RowMapping]) -> bool:
    """Whether the latest list is another one than the epoch is made of: somebody is to enter or to leave."""
    return generation != scope["generation"] or any(
        row["epoch_in"] is None or row["listed"] < observation or row["seal"] != b"" for row in chains
    )


def _by_id(assignment: Assignment) -> dict[str, ListedPartition]:
    listed: dict[str, ListedPartition] = {}
    for entry in assignment.partitions:
        if listed.setdefault(entry.partition.id, entry) is not entry:
            raise InvalidPage(
                f"the source's list names partition {entry.partition.id!r} twice",
                remedy="check `source.partitions`: every id once",
            )
    return listed


def _take_note(connection: Connection, scope: RowMapping, live: Sequence[RowMapping], look: _Look) -> bool:
    """Write what the list brings that was not known. Whether the live chains have changed by it."""
    first = not is_frozen(connection, scope)
    if first and not look.listed:
        return False
    chains = [row for row in live if row["kind"] == PARTITION]
    if not first:
        require_new_generation(connection, scope, look.generation)
    reads_again = look.generation != scope["generation"] and not look.policy.carries_on and not first
    still = still_listed(connection, scope, chains, look.listed, look.domain, look.generation, reads_again)
    listed = still.rest
    present = _matched(
        chains, listed, look.generation, lambda row: not reads_again and _goes_on(row, scope, look.policy)
    )
    require_sound(listed)
    facts = {name: facts_of(entry, present[name], look.domain) for name, entry in listed.items()}
    changed = first or still.unnamed or _has_changed(scope, chains, present, facts, look.generation)
    observation = scope["observation"] + 1 if changed else scope["observation"]
    epoch = max(1, scope["epoch"])
    if changed:
        _insert_chains(
            connection, scope, look.generation, observation, epoch if first else None, facts, present
        )
        _update_chains(connection, observation, facts, present, look.domain)
        _name(connection, still.gone, observation)
    values: dict[str, Any] = {
        "observation": observation,
        "observed_generation": look.generation,
        "list_bound": look.list_bound or b"",
        "membership": asdict(look.policy),
    }
    if first:
        values |= {"epoch": epoch, "generation": look.generation}
        values["cap"], values["list_certified"] = first_cap(look.list_bound)
        values["changing"] = any(one["seal"] for one in facts.values())
        _freeze(connection, scope, epoch, look, sorted(present))
    else:
        newcomers = any(row is None for row in present.values()) or any(
            row["epoch_in"] is None for row in chains
        )
        unproven = look.generation != scope["generation"] or newcomers
        values["cap"], values["list_certified"] = next_cap(
            scope["cap"], scope["list_certified"], scope["frontier"], look.list_bound, unproven
        )
        current = (
            [row for row in live_chains(connection, scope) if row["kind"] == PARTITION] if changed else chains
        )
        values["changing"] = is_changing(scope, observation, look.generation, current)
    transit_changed = not first and follow_transit(
        connection, scope, live, look.generation, observation, handoff=look.policy.handoff, renew=look.renew
    )
    _record_observation(connection, scope, observation, look, len(listed), changed)
    if any(scope[name] != value for name, value in values.items()):
        connection.execute(
            sa.update(schema.scope).where(schema.scope.c.scope == scope["scope"]).values(values)
        )
    return changed or transit_changed


def _matched(
    chains: Sequence[RowMapping],
    listed: Mapping[str, ListedPartition],
    generation: str,
    goes_on: Callable[[RowMapping], bool],
) -> dict[str, RowMapping | None]:
    """The live chain that each listed partition is read as; None: it is to get one.

    A partition's chain of an earlier generation stands for it where it `goes_on`, a member's before a candidate's."""
    known: dict[str, RowMapping] = {}
    for row in sorted(
        chains, key=lambda row: (row["generation"] != generation, row["epoch_in"] is None, row["chain"])
    ):
        if row["generation"] == generation or goes_on(row):
            known.setdefault(row["partition"], row)
    return {name: known.get(name) for name in listed}


def _goes_on(row: RowMapping, scope: RowMapping, policy: MembershipPolicy) -> bool:
    """Whether a chain of an earlier generation can go on by proof: of one between the epoch's and the latest, only the source's
    own promise says what moved since."""
    return policy.moves is not None or bool(row["generation"] == scope["generation"])


def _has_changed(
    scope: RowMapping,
    chains: Sequence[RowMapping],
    present: Mapping[str, RowMapping | None],
    facts: Mapping[str, Mapping[str, Any]],
    generation: str,
) -> bool:
    """Whether this list differs from the last one: only then is there a new observation, and anything to write."""
    if generation != scope["observed_generation"]:
        return True
    last = {row["chain"] for row in chains if row["listed"] == scope["observation"]}
    if last != {row and row["chain"] for row in present.values()}:
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
    fresh = new_chain(scope, generation, observation)
    rows = [
        {**fresh, "epoch_in": epoch, "partition": name, **facts[name]}
        for name, row in present.items()
        if row is None
    ]
    if rows:
        connection.execute(sa.insert(schema.chain), rows)


def _update_chains(
    connection: Connection,
    observation: int,
    facts: Mapping[str, Mapping[str, Any]],
    present: Mapping[str, RowMapping | None],
    domain: Domain,
) -> None:
    known = {name: row for name, row in present.items() if row is not None}
    _name(connection, [row["chain"] for row in known.values()], observation)
    differing = [(row, facts[name]) for name, row in known.items() if _differs(row, facts[name])]
    if differing:
        connection.execute(
            _SET_FACTS,
            [
                {"at_chain": row["chain"], **{f"new_{fact}": value for fact, value in stated.items()}}
                for row, stated in differing
            ],
        )
    # From here on the rows are this transaction's: what was promoted until now is what the ends are held against.
    require_ends_ahead(
        connection, [row["chain"] for row, stated in differing if row["seal"] != stated["seal"]], domain
    )


def _name(connection: Connection, chains: Sequence[int], observation: int) -> None:
    """The latest list names them, also where they have left: whoever is named from list to list is no id used again."""
    for some in batches(chains):
        named = schema.chain.c.chain.in_(some)
        connection.execute(sa.update(schema.chain).where(named).values(listed=observation))


def _record_observation(
    connection: Connection, scope: RowMapping, observation: int, look: _Look, partitions: int, changed: bool
) -> None:
    """History of the lists: what was seen, and the highest bound each was certified through."""
    table, bound = schema.observation, look.list_bound or b""
    if changed:
        connection.execute(
            sa.insert(table).values(
                scope=scope["scope"],
                observation=observation,
                lineage=scope["lineage"],
                generation=look.generation,
                list_bound=bound,
                partitions=partitions,
                observed_at=look.now,
            )
        )
    elif bound != scope["list_bound"]:
        known = sa.and_(
            table.c.scope == scope["scope"], table.c.observation == observation, table.c.list_bound < bound
        )
        connection.execute(sa.update(table).where(known).values(list_bound=bound))


def _freeze(
    connection: Connection, scope: RowMapping, epoch: int, look: _Look, members: Sequence[str]
) -> None:
    connection.execute(
        sa.insert(schema.epoch).values(
            scope=scope["scope"],
            lineage=scope["lineage"],
            epoch=epoch,
            generation=look.generation,
            list_bound=look.list_bound or b"",
            frontier=scope["frontier"],
            basis=scope["basis"],
            proof={"by": "first list", "members": len(members)},
            opened_at=look.now,
        )
    )
