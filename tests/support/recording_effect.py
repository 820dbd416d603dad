"""An effect that keeps its runs in memory, fails where it is told to, and knows what was made durable and
what was left."""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from itertools import count

from gapless.effects.protocol import DeadLetterRecord, EventFailure, RunOutput, RunStart
from gapless.paging.page import Page

_numbers = count(1)


@dataclass
class Recorded:
    """What stands in for the disk: it outlives every worker. `durable` is path -> [(sequence, event id)]."""

    durable: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    dead: dict[str, list[DeadLetterRecord]] = field(default_factory=dict)
    begun: int = 0
    ended: int = 0
    applied: Counter[str] = field(default_factory=Counter)


@dataclass
class RecordingEffect:
    """`failing`: event id -> how often it fails before it heals (None: for ever). `on_finish` is called
    right before a run becomes durable, and after it."""

    disk: Recorded
    failing: dict[str, int | None] = field(default_factory=dict)
    code: str = "unsettled_event"
    on_add: Callable[[Page], None] = lambda page: None
    on_finish: Callable[[str], None] = lambda when: None

    def begin(self, start: RunStart) -> "RecordingWriter":
        self.disk.begun += 1
        return RecordingWriter(self, start)

    def close(self) -> None:
        """Nothing is open."""


class RecordingWriter:
    def __init__(self, effect: RecordingEffect, start: RunStart) -> None:
        self._effect = effect
        self._start = start
        self._rows: list[tuple[int, str]] = []
        self._ended = False

    @property
    def rows(self) -> int:
        return len(self._rows)

    def add(self, page: Page, sequence: int, skip: Set[str] = frozenset()) -> Sequence[EventFailure]:
        self._effect.on_add(page)
        kept = [(i, event) for i, event in enumerate(page.ids) if event not in skip]
        failed = [(i, event) for i, event in kept if self._fails(event)]
        if failed:
            return [
                EventFailure(i, event, page.positions[i], f"ValueError: {event}", self._effect.code)
                for i, event in failed
            ]
        self._effect.disk.applied.update(event for _, event in kept)
        self._rows += [(sequence, event) for _, event in kept]
        return ()

    def finish(self) -> RunOutput:
        self._effect.on_finish("before")
        path = f"/{self._start.partition}/{self._start.sequence}-{self._start.fencing_token}-{next(_numbers)}"
        self._effect.disk.durable[path] = self._rows
        self._end()
        self._effect.on_finish("after")
        return RunOutput(path, "digest", len(self._rows), 10 * len(self._rows))

    def abandon(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._effect.disk.ended += 1

    def _fails(self, event: str) -> bool:
        left = self._effect.failing.get(event, 0)
        if left:
            self._effect.failing[event] = left - 1
        return left is None or left > 0


@dataclass
class RecordingDeadLetters:
    """Dead letters beside it. `refuses`: event ids that cannot be kept; then `add` raises what `error`
    makes."""

    disk: Recorded
    refuses: Set[str] = frozenset()
    error: Callable[[str], Exception] = ValueError

    def begin(self, start: RunStart) -> "RecordingDeadLetterWriter":
        return RecordingDeadLetterWriter(self, start)

    def close(self) -> None:
        """Nothing is open."""


class RecordingDeadLetterWriter:
    def __init__(self, letters: RecordingDeadLetters, start: RunStart) -> None:
        self._letters = letters
        self._start = start
        self._kept: list[DeadLetterRecord] = []

    def add(self, record: DeadLetterRecord) -> str:
        if record.event_id in self._letters.refuses:
            raise self._letters.error(record.event_id)
        self._kept.append(record)
        return f'{{"id":"{record.event_id}"}}'

    def finish(self) -> RunOutput:
        path = f"/dead/{self._start.partition}/{self._start.sequence}-{next(_numbers)}"
        self._letters.disk.dead[path] = self._kept
        return RunOutput(path, "digest", len(self._kept))

    def abandon(self) -> None:
        self._kept = []
