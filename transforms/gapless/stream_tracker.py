"""The tracker of a restriction that is read on and on: what may be claimed, and what a split leaves."""

from dataclasses import replace
from typing import Generic, TypeVar

from apache_beam.io.iobase import RestrictionProgress, RestrictionTracker

from gapless.page_restriction import Claim
from gapless.settling.stream_state import StreamState
from gapless.watching import WatchState

State = TypeVar("State", StreamState, WatchState)


class StateTracker(RestrictionTracker, Generic[State]):
    """Claims states one after the other: to read on from it, and, before pages go out, the one after them. Unbounded.

    A split gives away the whole rest, which goes on from the last state claimed: a page belongs to whoever could claim the state
    after it. None before the first claim of a call: the primary would be an element that reads nothing."""

    def __init__(self, restriction: State) -> None:
        self._restriction: State = restriction
        self._claimed = False

    def current_restriction(self) -> State:
        return self._restriction

    def current_progress(self) -> RestrictionProgress:
        return RestrictionProgress(fraction=1.0 if self._restriction.done else 0.5)

    def is_bounded(self) -> bool:
        return False

    def try_claim(self, position: State | Claim) -> bool:
        """False after a split and after the end. `Claim.END` finishes the restriction."""
        if self._restriction.done:
            return False
        self._claimed = True
        if position is Claim.END:
            self._restriction = replace(self._restriction, done=True)
        elif not isinstance(position, Claim):
            self._restriction = position
        return True

    def try_split(self, fraction_of_remainder: float) -> tuple[State, State] | None:
        """Only a checkpoint (fraction 0) splits, and only after a claim; None otherwise."""
        if fraction_of_remainder != 0 or not self._claimed or self._restriction.done:
            return None
        residual, self._restriction = self._restriction, replace(self._restriction, done=True)
        return self._restriction, residual

    def check_done(self) -> None:
        """Raises ValueError where the reader returned without claiming the end and without deferring the rest."""
        if not self._restriction.done:
            raise ValueError("the chain's reader returned with work left that it had not deferred")
