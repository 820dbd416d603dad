"""The tracker through its states: unstarted, just started, mid, after the end, after a split."""

import pytest

from gapless.page_restriction import Claim, PageRestriction, PageRestrictionTracker


def tracker() -> PageRestrictionTracker:
    return PageRestrictionTracker(PageRestriction())


def test_an_unstarted_restriction_is_not_split() -> None:
    assert tracker().try_split(0) is None


def test_an_unstarted_restriction_is_not_done() -> None:
    with pytest.raises(ValueError, match="before it had claimed the end"):
        tracker().check_done()


@pytest.mark.parametrize("fraction", [0.5, 0.999, 1])
def test_only_a_checkpoint_splits(fraction: float) -> None:
    started = tracker()
    assert started.try_claim(Claim.PAGE)
    assert started.try_split(fraction) is None
    assert started.try_claim(Claim.PAGE)


def test_a_split_gives_away_the_whole_rest_and_ends_the_claims() -> None:
    started = tracker()
    assert started.try_claim(Claim.PAGE)
    split = started.try_split(0)
    assert split == (PageRestriction(done=True), PageRestriction(done=False))
    assert not started.try_claim(Claim.PAGE)
    assert not started.try_claim(Claim.END)
    started.check_done()
    assert started.try_split(0) is None


def test_claiming_the_end_finishes_the_restriction() -> None:
    started = tracker()
    assert started.current_progress().fraction_completed == 0.5
    assert started.try_claim(Claim.END)
    started.check_done()
    assert started.current_restriction() == PageRestriction(done=True)
    assert started.current_progress().fraction_completed == 1.0
    assert started.try_split(0) is None


def test_a_residual_that_is_tracked_again_begins_anew() -> None:
    first = tracker()
    first.try_claim(Claim.PAGE)
    split = first.try_split(0)
    assert split is not None
    again = PageRestrictionTracker(split[1])
    assert again.try_claim(Claim.PAGE)
    assert again.try_claim(Claim.END)
    again.check_done()


def test_it_is_bounded() -> None:
    assert tracker().is_bounded()
