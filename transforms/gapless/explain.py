"""Who holds the frontier, and what would release it: pure, from one snapshot of the durable rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from gapless.progress import ChainState
from gapless.store.records import Blocker, ChainRow, Snapshot


@dataclass(frozen=True, slots=True)
class Explanation:
    """`blockers`: every partition that holds, the one with the lowest bound first. `withheld`: why the frontier stands where
    it does, or is not there at all; None where nothing holds it but the reading itself."""

    withheld: Blocker | None
    blockers: Sequence[tuple[str, Blocker]]


def members_of(snapshot: Snapshot) -> list[ChainRow]:
    """The chains whose minimum the frontier is."""
    return [row for row in snapshot.chains if row.epoch_in is not None and row.epoch_out is None]


def candidates_of(snapshot: Snapshot) -> list[ChainRow]:
    """The chains that were seen and have not entered."""
    return [row for row in snapshot.chains if row.epoch_in is None and row.epoch_out is None]


def explain(snapshot: Snapshot) -> Explanation:
    """Every member and candidate that holds, by name; and the first of them that holds the frontier itself."""
    members = members_of(snapshot)
    if not members:
        nobody = Blocker("not_started", "no run has frozen the list of partitions yet")
        return Explanation(nobody, ())
    held = [(row, blocker) for row in members if (blocker := blocker_of(row)) is not None]
    # A member without a bound comes first: nothing at all is proved about it.
    held.sort(key=lambda pair: (pair[0].bound is not None, pair[0].bound or 0, pair[0].partition))
    waiting = [
        (row, blocker)
        for row in _outside(snapshot)
        if (blocker := membership_blocker(row, snapshot)) is not None
    ]
    blockers = [(row.partition, blocker) for row, blocker in (*held, *waiting)]
    return Explanation(_withheld(snapshot, held, waiting), blockers)


def blocker_of(row: ChainRow) -> Blocker | None:
    """What keeps a member's bound from rising; None where it is complete or simply being read."""
    if row.blocker is not None:
        return row.blocker
    if row.fencing_token == 0:
        return Blocker("not_started", "no run has taken this partition yet")
    if row.bound is not None:
        return None
    if row.state is ChainState.ENDED or row.sequence > 0:
        return Blocker("no_certificate", "the source has certified nothing on the pages read so far")
    return Blocker("no_bound", "no page has been promoted yet")


def _outside(snapshot: Snapshot) -> list[ChainRow]:
    leavers = [row for row in members_of(snapshot) if row.listed < snapshot.scope.observation]
    return [*candidates_of(snapshot), *leavers]


def membership_blocker(row: ChainRow, snapshot: Snapshot) -> Blocker | None:
    """What keeps a newcomer from entering, or a partition that is no longer listed from leaving."""
    if row.epoch_in is None:
        if row.generation != snapshot.scope.generation:
            return Blocker(
                "membership_changed",
                f"the source now routes under generation {row.generation!r}, the epoch is of {snapshot.scope.generation!r}",
            )
        return Blocker(
            "not_joined", "seen in the source's list after the epoch was frozen; not proved complete"
        )
    if row.seal is None:
        return Blocker(
            "unsealed_member", "no longer in the source's list, and the source has certified no end for it"
        )
    return None


def _withheld(
    snapshot: Snapshot,
    held: Sequence[tuple[ChainRow, Blocker]],
    waiting: Sequence[tuple[ChainRow, Blocker]],
) -> Blocker | None:
    if held:
        row, blocker = held[0]
        return Blocker(
            blocker.code,
            f"partition {row.partition}: {blocker.hint}",
            blocker.event_id,
            blocker.position,
            blocker.since,
            blocker.retry_at,
        )
    scope = snapshot.scope
    lowest = min((row.bound for row in members_of(snapshot) if row.bound is not None), default=None)
    capped = scope.capped and lowest is not None and (scope.cap is None or lowest > scope.cap)
    if capped and waiting:
        row, blocker = waiting[0]
        return Blocker(blocker.code, f"partition {row.partition}: {blocker.hint}")
    if capped:
        return Blocker("member_list_unproven", "the source certifies its list of partitions no further")
    return None
