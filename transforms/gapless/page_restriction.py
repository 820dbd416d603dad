"""The restriction of one chain: what a splittable DoFn may claim, and nothing that is true about the data.

Where to go on is said by the chain's durable row. The restriction only says whether this element has been dealt with, so a
restriction that is lost, repeated or run twice at once loses nothing and claims nothing.
"""

from dataclasses import dataclass
from enum import Enum

from apache_beam.io.iobase import RestrictionProgress, RestrictionTracker


@dataclass(frozen=True, slots=True)
class PageRestriction:
    """`done`: nothing of this element is left to claim."""

    done: bool = False


class Claim(Enum):
    """What the reader claims: the next `PAGE`, or the `END` of its work on this element."""

    PAGE = "page"
    END = "end"


class PageRestrictionTracker(RestrictionTracker):
    """Claims pages one by one until the end is claimed or the rest is split off. Bounded.

    Splitting gives away the whole rest, and only once something was claimed in this call: a split before the first claim
    would make the primary an element that reads nothing, and the reader fetch for nothing."""

    def __init__(self, restriction: PageRestriction) -> None:
        self._restriction = restriction
        self._claimed = False
        self._split = False

    def current_restriction(self) -> PageRestriction:
        return self._restriction

    def current_progress(self) -> RestrictionProgress:
        return RestrictionProgress(fraction=1.0 if self._restriction.done else 0.5)

    def is_bounded(self) -> bool:
        return True

    def try_claim(self, position: Claim) -> bool:
        """False after a split. Claiming `END` finishes the restriction."""
        if self._split:
            return False
        self._claimed = True
        if position is Claim.END:
            self._restriction = PageRestriction(done=True)
        return True

    def try_split(self, fraction_of_remainder: float) -> tuple[PageRestriction, PageRestriction] | None:
        """Only a checkpoint (fraction 0) splits, and only after a claim; None otherwise."""
        if fraction_of_remainder != 0 or not self._claimed or self._restriction.done:
            return None
        self._split = True
        residual, self._restriction = self._restriction, PageRestriction(done=True)
        return self._restriction, residual

    def check_done(self) -> None:
        """Raises ValueError where the reader returned without claiming the end and without a split."""
        if not self._restriction.done:
            raise ValueError("the chain's reader returned before it had claimed the end of its restriction")
