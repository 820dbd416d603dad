"""What an effect implements: it applies pages to a run, makes the run durable, and says which events failed."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from gapless.paging.page import Page
from gapless.progress import Domain, Position

Step: TypeAlias = Callable[[str], None]
"""Called by name at each step of making something durable: tests put crashes there."""


def no_step(name: str) -> None:
    """Nothing happens between the steps."""


@dataclass(frozen=True, slots=True)
class EventFailure:
    """One event of a page that could not be applied: `index` into the page, `reason` one line, `code` the blocker's."""

    index: int
    event_id: str
    position: Position
    reason: str
    code: str = "unsettled_event"


@dataclass(frozen=True, slots=True)
class RunOutput:
    """What a finished run left durable: the file (None: nothing to list), its digest, and how many events it holds.

    `path` is as the manifest stores it: absolute, or a URL. `drifted` counts events of which something went to `_rest`."""

    path: str | None
    digest: str | None
    rows: int
    size: int = 0
    drifted: int = 0


@dataclass(frozen=True, slots=True)
class RunStart:
    """Where a run begins: its chain, the partition, the sequence of its first page and the fencing token it works under."""

    chain: int
    partition: str
    sequence: int
    fencing_token: int


class RunWriter(Protocol):
    """One open run of pages of one chain. Used by one thread.

    After `add` returned failures, nothing of that page is in the run: it is added again, whole, with those events in
    `skip` (dead-lettered), or the run is finished without it."""

    def add(self, page: Page, sequence: int, skip: Set[str] = frozenset()) -> Sequence[EventFailure]:
        """Apply one page, all of its events but those in `skip`. Raises EffectError where the page as a whole fails."""

    @property
    def rows(self) -> int: ...

    def finish(self) -> RunOutput:
        """Make it durable: when this returns, a crash loses nothing of it. Called once, last."""

    def abandon(self) -> None:
        """Leave nothing behind. Called instead of `finish`; never raises."""


class EffectSession(Protocol):
    """An effect on a worker."""

    def begin(self, start: RunStart) -> RunWriter: ...

    def close(self) -> None: ...


class SchemaStore(Protocol):
    """Where the scope's frozen schema lives, as text. Whoever is first wins; every caller gets what stands there now."""

    def freeze(self, proposal: str) -> str:
        """Store `proposal` where nothing is frozen yet. Returns what is frozen now: the proposal, or another's."""

    def frozen(self) -> str | None:
        """What is frozen now; None before the first `freeze`."""

    def widen(self, expected: str, proposal: str) -> str:
        """Replace the frozen text by `proposal` where it still equals `expected`, byte for byte (one compare-and-swap).

        Returns what is frozen now: the proposal, or what another caller made of it in between. Used to give a column a
        type that had held nothing but nulls; the caller reads the answer and proposes again where its column is still
        without one."""


class Effect(Protocol):
    """A picklable description; `open` on the worker gives the session. `target_rows` ends a run of pages.

    `replaceable`: readers go by the manifest alone, so that what was written can be replaced by reading it again."""

    @property
    def replaceable(self) -> bool: ...

    @property
    def target_rows(self) -> int: ...

    def open(self, scope: str, domain: Domain, schema: SchemaStore) -> EffectSession: ...


@dataclass(frozen=True, slots=True)
class DeadLetterRecord:
    """A dead-lettered event with everything that is needed to look at it and to apply it later."""

    partition: str
    sequence: int
    event_id: str
    position: Position
    reason: str
    row: Mapping[str, object] = field(default_factory=dict)
