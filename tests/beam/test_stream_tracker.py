"""The tracker of a stream through its states: unstarted, just started, mid, last claimed, after a failed claim, empty, claims
that go back."""

import pytest

from gapless.page_restriction import Claim
from gapless.settling.emitting import ReadingPoint
from gapless.settling.stream_state import StreamState
from gapless.stream_tracker import StateTracker
from gapless.watching import WatchState

FIRST = StreamState()
SECOND = StreamState(ReadingPoint("t1", 1), generation="g", seen=0)
THIRD = StreamState(ReadingPoint("t2", 2), generation="g", seen=0)

EACH = pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        (FIRST, SECOND, THIRD),
        (WatchState(), WatchState(1, 8, (), 1), WatchState(1, 9, (2,), 2)),
    ],
    ids=["reader", "planner"],
)


@EACH
def test_an_unstarted_restriction_is_neither_split_nor_done(first, second, third):
    tracker = StateTracker(first)
    assert tracker.try_split(0) is None
    with pytest.raises(ValueError, match="work left"):
        tracker.check_done()
    assert tracker.current_restriction() == first


@EACH
def test_a_restriction_that_goes_on_is_not_split_before_it_was_claimed_in_this_call(first, second, third):
    """Its primary would be an element that reads nothing."""
    tracker = StateTracker(third)
    assert tracker.try_split(0) is None
    assert tracker.try_claim(third)
    assert tracker.try_split(0) is not None


@EACH
def test_just_started_the_whole_rest_goes_on_from_the_beginning(first, second, third):
    tracker = StateTracker(first)
    assert tracker.try_claim(first)
    primary, residual = tracker.try_split(0)
    assert (primary.done, residual) == (True, first)
    tracker.check_done()


@EACH
def test_in_the_middle_the_rest_goes_on_from_the_last_state_claimed(first, second, third):
    tracker = StateTracker(first)
    for state in (first, second, second, third):
        assert tracker.try_claim(state)
    assert tracker.current_restriction() == third
    assert tracker.current_progress().fraction_completed == 0.5
    assert tracker.try_split(0)[1] == third


@EACH
@pytest.mark.parametrize("fraction", [0.5, 0.999, 1])
def test_only_a_checkpoint_splits(first, second, third, fraction):
    tracker = StateTracker(first)
    assert tracker.try_claim(second)
    assert tracker.try_split(fraction) is None
    assert tracker.try_claim(third)


@EACH
def test_after_a_split_nothing_can_be_claimed_and_nothing_is_split_again(first, second, third):
    tracker = StateTracker(first)
    assert tracker.try_claim(second)
    assert tracker.try_split(0) is not None
    assert not tracker.try_claim(third)
    assert not tracker.try_claim(Claim.END)
    assert tracker.try_split(0) is None
    tracker.check_done()


@EACH
def test_claiming_the_end_finishes_it(first, second, third):
    tracker = StateTracker(first)
    assert tracker.try_claim(second)
    assert tracker.try_claim(Claim.END)
    assert tracker.current_restriction().done
    assert tracker.current_progress().fraction_completed == 1.0
    tracker.check_done()
    assert not tracker.try_claim(third)
    assert tracker.try_split(0) is None


@EACH
def test_an_empty_restriction_is_done_and_claims_nothing(first, second, third):
    tracker = StateTracker(type(first)(done=True))
    assert not tracker.try_claim(second)
    assert tracker.try_split(0) is None
    tracker.check_done()


def test_a_claim_may_go_back_where_pages_are_read_again():
    tracker = StateTracker(FIRST)
    assert tracker.try_claim(THIRD)
    assert tracker.try_claim(SECOND)
    assert tracker.try_split(0)[1] == SECOND


def test_claiming_a_page_alone_moves_nothing():
    """Settled in place, the durable row alone says where to go on."""
    tracker = StateTracker(SECOND)
    assert tracker.try_claim(Claim.PAGE)
    assert tracker.current_restriction() == SECOND
    assert tracker.try_split(0)[1] == SECOND


def test_it_is_unbounded():
    assert not StateTracker(FIRST).is_bounded()
