"""An accumulator is partition -> bound, merged by maximum: what a distributed combination of bounds may pass around.

The minimum is taken at the end, over the full membership: a minimum over panes of updates could never rise, and one over
the partitions met so far would claim for those that were not.
"""

from collections.abc import Iterable, Mapping

from gapless.progress.bound import Bound, highest
from gapless.progress.frontier import Frontier, FrontierValue
from gapless.progress.membership import Membership


def merge_bounds(accumulators: Iterable[Mapping[str, Bound]]) -> dict[str, Bound]:
    """Each partition's highest bound. Raises NotComparable where one partition's bounds are of different kinds.

    Law: associative, commutative, idempotent; the empty accumulator is neutral.

    >>> merge_bounds([{"a": Bound.before(5)}, {"a": Bound.before(9), "b": Bound.before(7)}])
    {'a': Bound.before(9), 'b': Bound.before(7)}
    """
    merged: dict[str, Bound] = {}
    for accumulator in accumulators:
        for partition, bound in accumulator.items():
            raised = highest(merged.get(partition), bound)
            if raised is not None:
                merged[partition] = raised
    return merged


def frontier_of(
    membership: Membership,
    bounds: Mapping[str, Bound | None],
    axes: Mapping[str, str] | None = None,
    cap: Bound | None = None,
) -> FrontierValue:
    """What the members of `membership` support; bounds of others do not count. `axes` and `cap` as in `Frontier`.

    >>> frontier_of(Membership(1, "", frozenset({"a"})), {"a": Bound.before(9), "candidate": Bound.before(7)})
    Scalar(bound=Bound.before(9), capped=False)
    """
    frontier = Frontier(membership, axes, cap)
    for partition, bound in bounds.items():
        if bound is not None and partition in membership.members:
            frontier.advance(partition, bound)
    return frontier.value()
