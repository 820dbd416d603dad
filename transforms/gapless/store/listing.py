"""One look at the source's list against what is known: facts that are kept, and what a list must not say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.errors import InvalidPage
from gapless.paging.source import ListedPartition
from gapless.progress import Domain, bound_text
from gapless.progress.descent import descent_fault, overlap_fault
from gapless.store import schema
from gapless.store.batches import batches
from gapless.store.next_step import gone_successors
from gapless.store.records import ChainRow

_WHERE = "the source's list of partitions"


def require_new_generation(connection: Connection, scope: RowMapping, generation: str) -> None:
    """Raises InvalidPage where the source goes back to a routing generation that another one had followed.

    Two looks that show the same value would prove nothing about the time between them."""
    if generation == scope["observed_generation"]:
        return
    column = schema.observation.c
    before = sa.select(sa.literal(1)).where(
        column.scope == scope["scope"],
        column.lineage == scope["lineage"],
        column.generation == generation,
    )
    if connection.execute(before.limit(1)).first() is not None:
        raise InvalidPage(
            f"routing generation {generation!r} comes back after {scope['observed_generation']!r} had followed it",
            where=_WHERE,
            remedy="a generation's value names one assignment for ever: have the source count up, or start over with"
            " `gapless epoch rebuild`",
        )


def require_sound(listed: Mapping[str, ListedPartition]) -> None:
    """Raises InvalidPage where the list contradicts itself."""
    fault = descent_fault(
        {name: entry.successors for name, entry in listed.items() if entry.successors},
        {name: entry.parents for name, entry in listed.items() if entry.parents},
    ) or overlap_fault(
        {name: entry.key_range for name, entry in listed.items() if entry.key_range and entry.seal is None}
    )
    if fault is not None:
        raise InvalidPage(
            fault, where=_WHERE, remedy="correct what the source lists, or where the job file looks for it"
        )


def require_ends_ahead(connection: Connection, chains: Sequence[int], domain: Domain) -> None:
    """Raises InvalidPage where one of `chains`, whose end has just been written, has given events beyond it.

    A certificate alone may run ahead of the end: it says that there is nothing more, which an end does too."""
    column = schema.chain.c
    for some in batches(chains):
        behind = (
            sa.select(column.partition, column.seal, column.read_to)
            .where(column.chain.in_(some), column.read_to > column.seal)
            .limit(1)
        )
        row = connection.execute(behind).mappings().one_or_none()
        if row is not None:
            raise InvalidPage(
                f"partition {row['partition']!r} is sealed {_spelled(row['seal'], domain)}, behind what was read of it:"
                f" events {_spelled(row['read_to'], domain)} were promoted before",
                where=_WHERE,
                remedy="a partition has no events beyond its end: ask the source's operator",
            )


def _spelled(key: bytes, domain: Domain) -> str:
    bound = domain.from_key(key)
    return "nothing" if bound is None else bound_text(bound, domain)


@dataclass(frozen=True, slots=True)
class StillListed:
    """`rest`: who is listed and has not left. `gone`: chains that have left in order and are named still. `unnamed`: somebody who
    left by an operator's word is named no more."""

    rest: Mapping[str, ListedPartition]
    gone: Sequence[int]
    unnamed: bool


def still_listed(
    connection: Connection,
    scope: RowMapping,
    chains: Sequence[RowMapping],
    listed: Mapping[str, ListedPartition],
    domain: Domain,
    generation: str,
    reads_again: bool,
) -> StillListed:
    """The list without those that have left in order and are named still: with the end they left at, or by an operator's word
    and ever since.

    One that is listed without that end is an id used again, which is read as a newcomer; one whose generation is read again has
    to be read as all the others."""
    known = {row["partition"] for row in chains}
    new = [name for name in listed if name not in known]
    gone: dict[str, int] = {}
    for row in departed_chains(connection, scope, new) if scope["epoch"] else ():
        seal = listed[row["partition"]].seal
        by_word = row["seal_basis"] == "operator" and row["listed"] == scope["observation"]
        ended = seal is not None and row["seal"] >= domain.key(seal)
        if (ended or by_word) and (row["generation"] == generation or not reads_again):
            gone[row["partition"]] = row["chain"]
    rest = {name: entry for name, entry in listed.items() if name not in gone}
    return StillListed(rest, list(gone.values()), not _named_until_now(connection, scope) <= {*gone.values()})


def _named_until_now(connection: Connection, scope: RowMapping) -> set[int]:
    """Who has left by an operator's word and is named by the latest list known."""
    column = schema.chain.c
    wanted = sa.select(column.chain).where(
        column.scope == scope["scope"],
        column.lineage == scope["lineage"],
        schema.has_departed(),
        column.seal_basis == "operator",
        column.listed == scope["observation"],
    )
    return set(connection.execute(wanted).scalars())


def departed_chains(connection: Connection, scope: RowMapping, names: Sequence[str]) -> list[RowMapping]:
    """The chains of these partitions that left in order in this lineage."""
    column = schema.chain.c
    found: list[RowMapping] = []
    for some in batches(names):
        wanted = sa.select(schema.chain).where(
            column.scope == scope["scope"],
            column.lineage == scope["lineage"],
            schema.has_departed(),
            column.partition.in_(some),
        )
        found += connection.execute(wanted).mappings()
    return found


def departed_successors(
    connection: Connection, scope: RowMapping, live: Sequence[ChainRow]
) -> frozenset[str]:
    """Of the successors that live chains name and that are not live: those that left in order in this lineage."""
    gone = gone_successors(live)
    return frozenset(row["partition"] for row in departed_chains(connection, scope, gone))


def facts_of(entry: ListedPartition, stored: RowMapping | None, domain: Domain) -> dict[str, Any]:
    """What the list says of a partition, over what is known already: a fact once stated is not forgotten by silence.

    A seal is a promise about the end: a lower one does not take back what a higher one says there is to drain. But an operator's
    word gives way to the source's own where that is another one, whichever is lower."""
    seal, seal_basis = domain.key(entry.seal), "source"
    successors = None if entry.successors is None else list(entry.successors)
    parents = None if entry.parents is None else list(entry.parents)
    if stored is not None:
        by_word = stored["seal_basis"] == "operator"
        if entry.seal is None or (seal == stored["seal"] if by_word else seal < stored["seal"]):
            seal, seal_basis = stored["seal"], stored["seal_basis"]
        successors = stored["successors"] if successors is None else successors
        parents = stored["parents"] if parents is None else parents
    return {
        "fields": dict(entry.partition.fields),
        "seal": seal,
        "seal_basis": seal_basis,
        "successors": successors,
        "parents": parents,
    }
