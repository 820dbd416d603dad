"""Durable rows as a test writes them down: a member that is being read, unless something else is said."""

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from gapless.progress import Bound, ChainState, IntegerDomain
from gapless.store.records import Blocker, ChainRow, FrontierRow, RunRow, Snapshot, Totals

NOW = datetime(2013, 6, 1, 12, 0, 0, 250_000, tzinfo=timezone.utc)


def at(position: int | None) -> Bound | None:
    return None if position is None else Bound.through(position)


def member(partition: str, bound: int | Bound | None = None, **changes: Any) -> ChainRow:
    """A member of epoch 1 that run 3 reads; `bound` an integer is inclusive. Chains are numbered by their partition's name."""
    proved = bound if isinstance(bound, Bound) else at(bound)
    plain = ChainRow(
        chain=hash(partition),
        scope="orders",
        lineage=1,
        partition=partition,
        fields={},
        generation="r1",
        epoch_in=1,
        epoch_out=None,
        listed=1,
        state=ChainState.OPEN,
        fencing_token=3,
        sequence=0 if proved is None else 5,
        page_token=None if proved is None else "t5",
        bound=proved,
        read_to=proved,
        basis="certified",
        events=0 if proved is None else 50,
        dead_letters=0,
        drift=0,
        blocker=None,
    )
    return replace(plain, **changes)


def held(partition: str, bound: int | Bound | None, **changes: Any) -> ChainRow:
    """A member held on event e110 at 110."""
    blocker = changes.pop("blocker", None) or Blocker(
        "unsettled_event",
        "effect raised ValueError: no",
        "e110",
        110,
        since=datetime(2013, 6, 1, tzinfo=timezone.utc),
    )
    return member(partition, bound, state=ChainState.HELD, blocker=blocker, **changes)


def candidate(partition: str, bound: int | None = None, **changes: Any) -> ChainRow:
    return member(partition, bound, **{"epoch_in": None, **changes})


def scope(frontier: int | Bound | None = None, **changes: Any) -> FrontierRow:
    published = frontier if isinstance(frontier, Bound) else at(frontier)
    plain = FrontierRow(
        scope="orders",
        fingerprint="f",
        domain=IntegerDomain(),
        lineage=1,
        epoch=1,
        generation="r1",
        observation=1,
        list_certified=False,
        after=None,
        frontier=published,
        cap=None,
        capped=False,
        basis="certified",
        published_at=None if published is None else datetime(2013, 6, 1, 11, 59, 18, tzinfo=timezone.utc),
        observed_generation="r1",
    )
    return replace(plain, **changes)


def run(state: str = "running") -> RunRow:
    begun = datetime(2013, 6, 1, 11, 0, tzinfo=timezone.utc)
    return RunRow("run-id", 3, "orders", "local", state, begun, NOW)


def snapshot(frontier: FrontierRow | int | None, *chains: ChainRow, **changes: Any) -> Snapshot:
    row = frontier if isinstance(frontier, FrontierRow) else scope(frontier)
    plain = Snapshot(
        scope=row,
        chains=chains,
        run=run(),
        violations=0,
        as_of=NOW,
        totals=Totals(400, 4000, 2, 1),
        frozen=bool(chains),
    )
    return replace(plain, **changes)
