"""Merging what is known of partitions: pure functions under which order, repetition and grouping do not matter."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gapless.progress import Bound, ChainState, Domain, Membership, Scalar, frontier_of, highest
from gapless.updates import PartitionProgress


def later(known: PartitionProgress | None, seen: PartitionProgress) -> PartitionProgress:
    """The later of two states of one chain, with the higher bound of both.

    A chain's row is rewritten under a growing fencing token and sequence, so these order its states. Where both are equal, what
    stops the chain comes after its being read: it was taken before it could be held. (One that is tried again shows as held
    until it gets on.) The result never depends on which came first."""
    if known is None:
        return seen
    newest = max(known, seen, key=_age)
    return replace(newest, bound=highest(known.bound, seen.bound))


_ORDER = {state: number for number, state in enumerate(ChainState)}


def _age(progress: PartitionProgress) -> tuple[int, int, int, int, int, str, str]:
    return (
        progress.epoch,
        progress.fencing_token,
        progress.sequence,
        progress.events,
        _ORDER[progress.state],
        progress.blocker or "",
        progress.blocker_hint or "",
    )


@dataclass(frozen=True, slots=True)
class FrontierHint:
    """What a combination of progress supports: `bound` the minimum over the whole membership of `epoch`, or None.

    `missing` counts members not heard of or without a bound."""

    scope: str
    domain: Domain
    epoch: int
    bound: Bound | None
    missing: int


@dataclass(slots=True)
class MembersSeen:
    """Accumulator: chain -> latest progress. Merging is associative, commutative and idempotent."""

    latest: dict[int, PartitionProgress] = field(default_factory=dict)

    def add(self, progress: PartitionProgress) -> None:
        self.latest[progress.chain] = later(self.latest.get(progress.chain), progress)

    def merge(self, others: Iterable["MembersSeen"]) -> None:
        for other in others:
            for progress in other.latest.values():
                self.add(progress)

    def hint(self) -> FrontierHint | None:
        """The minimum over the full membership of the newest epoch seen; None where nothing was."""
        return frontier_hint(self.latest)


def frontier_hint(latest: Mapping[int, PartitionProgress]) -> FrontierHint | None:
    """The minimum over the full membership with its epoch; a member unheard of or without a bound withholds it."""
    if not latest:
        return None
    epoch = max(progress.epoch for progress in latest.values())
    members = {str(p.chain): p.bound for p in latest.values() if p.member and p.epoch == epoch}
    expected = max(p.members for p in latest.values() if p.epoch == epoch)
    missing = max(0, expected - sum(bound is not None for bound in members.values()))
    value = frontier_of(Membership(epoch, "", frozenset(members)), members)
    # Members that were not heard of have no name here: `frontier_of` knows nothing of them.
    bound = value.bound if isinstance(value, Scalar) and not missing else None
    some = next(iter(latest.values()))
    return FrontierHint(some.scope, some.domain, epoch, bound, missing)
