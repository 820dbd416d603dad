"""Which chains of a stream the next pass polls, and when that is: pure but for the time it is told.

A chain that is behind is read pass after pass. One whose source had nothing further is asked again after the polling's delay,
which grows while nothing comes. Chains that are due at nearly the same time are polled together, since a pass costs something by
itself. Whoever is held is tried when its blocker says so; without such a time once in a while, since a stream has no next run.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from gapless.polling import Polling
from gapless.progress import ChainState
from gapless.settling.worker import Tally
from gapless.store.records import ChainRow

TOGETHER = 4
"""Polls that are due within one part in so many of the shortest delay are one pass."""


@dataclass(slots=True)
class _Poll:
    """When a chain is due (monotonic seconds), how often in a row it brought nothing, the sequence it stood at, and whether its
    source had nothing further then."""

    at: float
    idle: int = 0
    sequence: int = -1
    caught_up: bool = False


class PolledChains:
    """`rows` are always the chains that can be read now; who is not among them any more is forgotten."""

    def __init__(self, polling: Polling) -> None:
        self._polling = polling
        self._polls: dict[int, _Poll] = {}

    def due(self, rows: Collection[ChainRow], now: float, moment: datetime) -> frozenset[int]:
        """The chains to be polled at `now`; `moment` is the same time by the clock on the wall."""
        self._meet(rows, now)
        soon = now + self._polling.every / TOGETHER
        by_chain = {row.chain: self._due_at(row, now, moment) for row in rows}
        if not any(at <= now for at in by_chain.values()):
            return frozenset()
        return frozenset(chain for chain, at in by_chain.items() if at <= soon)

    def seconds_left(self, rows: Collection[ChainRow], now: float, moment: datetime) -> float:
        """Until one of them is due; the longest delay where there is none."""
        self._meet(rows, now)
        times = [self._due_at(row, now, moment) - now for row in rows]
        return max(0.0, min([*times, self._polling.longest]))

    def polled(self, chains: Iterable[int], rows: Collection[ChainRow], tally: Tally, began: float) -> None:
        """A pass that began at `began` has polled `chains` and did `tally`; `rows` are as they stand after it."""
        self._meet(rows, began)
        sequences = {row.chain: row.sequence for row in rows}
        held = {row.chain for row in rows if row.state is ChainState.HELD}
        for chain in chains:
            poll = self._polls.get(chain)
            if poll is None:
                continue
            moved = sequences[chain] != poll.sequence
            poll.sequence = sequences[chain]
            if chain in held:
                poll.at = began + self._polling.held
            elif chain in tally.caught_up:
                poll.idle = 0 if moved else poll.idle + 1
                poll.at = began + self._polling.delay(max(1, poll.idle))
            else:
                poll.idle, poll.at = 0, began
            poll.caught_up = chain in tally.caught_up

    @property
    def waiting(self) -> int:
        """How many had nothing further when they were polled last."""
        return sum(poll.caught_up for poll in self._polls.values())

    def _meet(self, rows: Collection[ChainRow], now: float) -> None:
        known = {row.chain: self._polls.get(row.chain) for row in rows}
        self._polls = {row.chain: known[row.chain] or _Poll(now, sequence=row.sequence) for row in rows}

    def _due_at(self, row: ChainRow, now: float, moment: datetime) -> float:
        at = self._polls[row.chain].at
        retry_at = row.blocker.retry_at if row.state is ChainState.HELD and row.blocker else None
        if retry_at is None:
            return at
        return min(at, now + (retry_at - moment).total_seconds()) if at > now else at
