"""What settling in the pipeline passes between transforms: pages as they leave the reader, and the outcomes that come back.

A page goes out whole and self-describing; its events are settled by outcomes, which name events of one chain by their ids.
Both may come in any order, more than once, and under other page boundaries of a repeated attempt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gapless.paging.chain import PageViolation
from gapless.paging.page import Row
from gapless.progress import Assertion, Certificate, ChainState, Position, Terminal
from gapless.updates import PartitionProgress, ReadTask


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an emitted page. `row` is its data as the source sent it."""

    id: str
    position: Position
    row: Row


@dataclass(frozen=True, slots=True)
class ReaderStop:
    """Why a reader stopped at `at_token`: what holds the chain once everything before that token is promoted.

    `state` is what the chain becomes: held, a gap, or open where it only waits for a later run."""

    at_token: str | None
    state: ChainState
    code: str
    hint: str
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EmittedPage:
    """One fetch attempt: checked, and with its routing generation proved before it was emitted.

    `attempt` is unique to it. `number` is the sequence it will have if it is promoted as this reader read it. `next_token`
    None: the source ended the chain here. `settled` are ids of its events that have a durable receipt already and are not to be
    applied again. `ids`, `positions` and `rows` run in parallel. `resume`, on the page that ends the chain: where a stream goes
    on.

    Besides pages, a reader tells where a chain stands (`progress`) and why it stopped (`stop`): such an element holds no
    events, is no fetch attempt, and an outcome of it says nothing."""

    task: ReadTask
    attempt: str
    number: int
    start_token: str | None = None
    next_token: str | None = None
    ids: Sequence[str] = ()
    positions: Sequence[Position] = ()
    rows: Sequence[Row] = ()
    certificate: Certificate | Assertion | None = None
    generation: str = ""
    violations: Sequence[PageViolation] = ()
    settled: Mapping[str, Terminal] | None = None
    progress: PartitionProgress | None = None
    stop: ReaderStop | None = None
    resume: str | None = None

    @property
    def is_page(self) -> bool:
        """False where it only tells of the chain or its reader."""
        return self.progress is None and self.stop is None

    @property
    def events(self) -> Sequence[Event]:
        """The events that are to be applied, in the source's order."""
        known = self.settled or {}
        return [
            Event(event_id, position, row)
            for event_id, position, row in zip(self.ids, self.positions, self.rows, strict=True)
            if event_id not in known
        ]


@dataclass(frozen=True, slots=True)
class LetterOf:
    """A dead-lettered event with what is kept of it: `payload` is lossless JSON text.

    Raises TypeError for a reason that is no text."""

    event_id: str
    position: Position
    reason: str
    payload: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(
                f"the reason why event {self.event_id!r} is given up on is a text, not {self.reason!r}"
            )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of events of one chain: durable, terminal, said by whoever applied them.

    `event_ids` None: every event of the attempt. `part` (i, n): this is the i-th of n outcomes (from 0) that make one; an event
    is settled when all of its n parts are. `letters` are those of the events that were given up on, the others are delivered.
    `read_through` is the highest position of the page they came with (None: it had no events), `number` that page's: they tell
    whether the page may still come, and one of them is needed. An attempt "" is none: it says nothing."""

    scope: str
    chain: int
    attempt: str
    event_ids: tuple[str, ...] | None
    letters: tuple[LetterOf, ...] = ()
    part: tuple[int, int] = (0, 1)
    read_through: Position | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.event_ids, str):
            raise TypeError(f"event ids are a tuple of them, not the text {self.event_ids!r}")
        number, of = self.part
        if not 0 <= number < of:
            raise ValueError(f"a part is one of 0 to {of - 1} of at least one, not {number} of {of}")
