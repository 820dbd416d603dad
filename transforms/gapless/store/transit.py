"""Events in transit between two routing generations: a chain of their own, drained before a handoff proves the new one."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.progress import ChainState
from gapless.store import schema
from gapless.store.records import PARTITION, TRANSIT


def transit_name(before: str, after: str) -> str:
    """What the chain is called where a partition's name stands.

    >>> transit_name("r1", "r2")
    'in transit from r1 to r2'
    """
    return f"in transit from {before} to {after}"


def new_chain(scope: RowMapping, generation: str, observation: int) -> dict[str, Any]:
    """The row of a chain that nobody has taken yet; partition and facts are to be added."""
    return {
        "scope": scope["scope"],
        "lineage": scope["lineage"],
        "kind": PARTITION,
        "generation": generation,
        "epoch_in": None,
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
        "seal": b"",
        "seal_basis": "source",
    }


def follow_transit(
    connection: Connection,
    scope: RowMapping,
    live: Sequence[RowMapping],
    generation: str,
    observation: int,
    *,
    handoff: bool,
    renew: bool,
) -> bool:
    """Keep the one chain of events in transit from the epoch's generation to `generation`, where a handoff is to prove it.

    One whose certificate turned out not to reach what was read is given up and asked for anew. Whether anything changed."""
    wanted = handoff and generation != scope["generation"]
    fits = []
    for row in live:
        if row["kind"] != TRANSIT:
            continue
        between = row["fields"] == {"from": scope["generation"], "to": generation}
        if wanted and between and not (renew and _falls_short(row, live, scope["generation"])):
            fits.append(row)
        else:
            close = sa.update(schema.chain).where(schema.chain.c.chain == row["chain"])
            connection.execute(close.values(epoch_out=scope["epoch"], state=ChainState.SUPERSEDED.value))
    closed = sum(row["kind"] == TRANSIT for row in live) - len(fits)
    if wanted and not fits:
        fresh = {
            **new_chain(scope, generation, observation),
            "kind": TRANSIT,
            "partition": transit_name(scope["generation"], generation),
            "fields": {"from": scope["generation"], "to": generation},
        }
        connection.execute(sa.insert(schema.chain).values(fresh))
        return True
    return bool(closed)


def _falls_short(transit: RowMapping, live: Sequence[RowMapping], before: str) -> bool:
    """Whether more was read under the generation `before` than the certificate covers."""
    if transit["state"] != ChainState.ENDED.value:
        return False
    read = [
        max(row["bound"], row["read_to"])
        for row in live
        if row["kind"] == PARTITION and row["generation"] == before
    ]
    return bool(max(read, default=b"") > transit["bound"])
