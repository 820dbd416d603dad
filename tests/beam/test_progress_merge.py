"""Laws of what the transforms merge: order, repetition and grouping never matter."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gapless.progress import Bound, ChainState, IntegerDomain
from gapless.progress_merge import MembersSeen, frontier_hint, later
from gapless.updates import PartitionProgress

DOMAIN = IntegerDomain()
bounds = st.none() | st.builds(Bound, st.integers(-5, 5), st.booleans())


def progress(chain: int, **changes: object) -> PartitionProgress:
    plain = PartitionProgress(
        scope="orders",
        domain=DOMAIN,
        chain=chain,
        partition=f"p{chain}",
        lineage=1,
        epoch=1,
        members=2,
        member=True,
        state=ChainState.OPEN,
        fencing_token=1,
        sequence=0,
        events=0,
        bound=None,
        basis="certified",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@st.composite
def seen(draw: st.DrawFn, chains: int = 3) -> PartitionProgress:
    return progress(
        draw(st.integers(1, chains)),
        fencing_token=draw(st.integers(1, 3)),
        sequence=draw(st.integers(0, 4)),
        events=draw(st.integers(0, 4)),
        state=draw(st.sampled_from([ChainState.OPEN, ChainState.HELD, ChainState.ENDED])),
        bound=draw(bounds),
        epoch=draw(st.integers(1, 2)),
        members=chains,
    )


def collect(elements: list[PartitionProgress]) -> MembersSeen:
    found = MembersSeen()
    for element in elements:
        found.add(element)
    return found


@given(st.lists(seen(), max_size=12), st.randoms(use_true_random=False))
def test_the_order_and_number_of_arrivals_do_not_matter(
    elements: list[PartitionProgress], shuffled: random.Random
) -> None:
    again = [*elements, *elements]
    shuffled.shuffle(again)
    assert collect(again).latest == collect(elements).latest


@given(st.lists(seen(), max_size=8), st.lists(seen(), max_size=8), st.lists(seen(), max_size=8))
def test_merging_is_associative_commutative_and_idempotent(
    a: list[PartitionProgress], b: list[PartitionProgress], c: list[PartitionProgress]
) -> None:
    def merged(*parts: MembersSeen) -> MembersSeen:
        result = MembersSeen()
        result.merge(parts)
        return result

    left = merged(merged(collect(a), collect(b)), collect(c))
    right = merged(collect(a), merged(collect(c), collect(b)))
    assert left.latest == right.latest
    assert merged(left, left).latest == left.latest


@given(seen(chains=1), seen(chains=1))
def test_a_bound_never_goes_back(known: PartitionProgress, new: PartitionProgress) -> None:
    result = later(known, new)
    for one in (known, new):
        assert one.bound is None or (result.bound is not None and result.bound >= one.bound)


def test_what_stops_a_chain_is_later_than_its_being_read() -> None:
    """Taking a chain and holding it happen at one place: who watches must learn that it is held, in whatever order."""
    taken = progress(1, sequence=3)
    for state in (ChainState.HELD, ChainState.GAP, ChainState.ENDED):
        stopped = progress(
            1, sequence=3, state=state, blocker=None if state is ChainState.ENDED else "unsettled_event"
        )
        assert later(taken, stopped) == later(stopped, taken) == stopped
    assert (
        later(progress(1, sequence=3, state=ChainState.HELD), progress(1, sequence=4)).state
        is ChainState.OPEN
    )


def test_nothing_seen_is_no_claim() -> None:
    assert frontier_hint({}) is None


def test_a_member_not_heard_of_withholds() -> None:
    hint = collect([progress(1, bound=Bound.through(9))]).hint()
    assert hint is not None
    assert (hint.bound, hint.missing) == (None, 1)


def test_the_minimum_is_taken_over_the_whole_membership_and_rises() -> None:
    found = collect([progress(1, bound=Bound.through(120)), progress(2, bound=Bound.through(90))])
    first = found.hint()
    found.add(progress(2, bound=Bound.through(110), sequence=1))
    second = found.hint()
    assert first is not None
    assert second is not None
    assert (first.bound, second.bound) == (Bound.through(90), Bound.through(110))


def test_a_candidate_does_not_count() -> None:
    found = collect(
        [
            progress(1, bound=Bound.through(5)),
            progress(2, bound=Bound.through(7)),
            progress(3, member=False, bound=Bound.through(1)),
        ]
    )
    hint = found.hint()
    assert hint is not None
    assert hint.bound == Bound.through(5)


def test_members_of_an_older_epoch_do_not_count() -> None:
    found = collect([progress(1, bound=Bound.through(5)), progress(2, bound=Bound.through(7), epoch=2)])
    hint = found.hint()
    assert hint is not None
    assert (hint.epoch, hint.bound, hint.missing) == (2, None, 1)
