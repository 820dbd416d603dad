"""How a run gets on: where each chain stands, how fast events come, and where the published frontier is."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gapless.plan import lowest_first
from gapless.progress import Bound, ChainState, bound_text
from gapless.store.records import FrontierRow
from gapless.updates import PartitionProgress
from gapless_pipelines.cli.printing import duration, number, plural, printable

RATE_SECONDS = 5.0
"""The rate shown is that of the last few seconds."""

_DONE = (ChainState.ENDED, ChainState.SEALED, ChainState.REPLACED, ChainState.SUPERSEDED)
_HELD = (ChainState.HELD, ChainState.GAP)


@dataclass(frozen=True, slots=True)
class View:
    """One moment of a run. `events` and `pages` are those of this run, `rate` events a second; `lowest` are the partitions
    still to be read, the lowest bound first. `endless`: nobody is ever done."""

    partitions: int
    done: int
    held: int
    pages: int
    events: int
    rate: float
    seconds: float
    frontier: str
    lowest: Sequence[PartitionProgress]
    endless: bool = False


class RunProgress:
    """Where every chain of a run stands. `update` is called by reader threads and costs one assignment; the rest is called by
    the thread that draws. `stop` is the range's end: who is proved through it is done."""

    def __init__(
        self,
        start: Iterable[PartitionProgress],
        now: float,
        stop: Bound | None = None,
        *,
        endless: bool = False,
    ) -> None:
        self._endless = endless
        self._latest = {progress.chain: progress for progress in start}
        self._stop = stop
        self._began = now
        self._pages_before = sum(progress.sequence for progress in self._latest.values())
        self._events_before = sum(progress.events for progress in self._latest.values())
        self._seen: deque[tuple[float, int]] = deque([(now, 0)])

    def update(self, progress: PartitionProgress) -> None:
        self._latest[progress.chain] = progress

    def view(self, now: float, frontier: str) -> View:
        """What is to be shown at `now`, in monotonic seconds."""
        chains = list(self._latest.values())
        done = sum(map(self._is_done, chains))
        held = sum(chain.state in _HELD for chain in chains)
        events = sum(chain.events for chain in chains) - self._events_before
        going_on = [chain for chain in chains if not self._is_done(chain)]
        return View(
            partitions=len(chains),
            done=done,
            held=held,
            pages=sum(chain.sequence for chain in chains) - self._pages_before,
            events=events,
            rate=self._rate(now, events),
            seconds=now - self._began,
            frontier=frontier,
            lowest=sorted(going_on, key=lowest_first),
            endless=self._endless,
        )

    def _is_done(self, chain: PartitionProgress) -> bool:
        proved = self._stop is not None and chain.bound is not None and chain.bound >= self._stop
        return proved or chain.state in _DONE

    def _rate(self, now: float, events: int) -> float:
        self._seen.append((now, events))
        while len(self._seen) > 2 and self._seen[1][0] <= now - RATE_SECONDS:
            self._seen.popleft()
        since, before = self._seen[0]
        return (events - before) / (now - since) if now > since else 0.0


def frontier_text(scope: FrontierRow) -> str:
    """The published frontier in a few words."""
    if scope.frontier is None:
        return "no frontier yet"
    return f"complete {printable(bound_text(scope.frontier, scope.domain))}, {scope.basis}"


def view_line(view: View) -> str:
    """A moment in one line."""
    partitions = plural(view.partitions, "partition")
    parts = [
        f"{duration(view.seconds)}: "
        + (partitions if view.endless else f"{number(view.done)} of {partitions} done"),
        plural(view.events, "event"),
        f"{number(round(view.rate))}/s",
        view.frontier,
    ]
    if view.held:
        parts.insert(1, f"{number(view.held)} held")
    return ", ".join(parts[:-1]) + f"; {parts[-1]}"


def partition_cells(chains: Sequence[PartitionProgress]) -> Iterator[tuple[str, str, str, str, str]]:
    """(partition, state, complete, pages, events) of each, as text."""
    for chain in chains:
        complete = "without a bound" if chain.bound is None else bound_text(chain.bound, chain.domain)
        state = "reading" if chain.state is ChainState.OPEN else str(chain.state)
        if chain.state in _HELD and chain.blocker is not None:
            state += f": {chain.blocker}"
        yield (
            printable(chain.partition),
            state,
            printable(complete),
            number(chain.sequence),
            number(chain.events),
        )
