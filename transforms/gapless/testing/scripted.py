"""A source whose every answer, error and crash is written into its data.

    ScriptedSource({"eu": {None: ScriptedPage([("a", 1)], next="t1"), "t1": [Crash(), ScriptedPage([("b",
    2)])]}})

Partition `eu` starts with a page of one event; the first fetch of `t1` kills the worker, the second ends
the chain."""

import threading
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gapless.errors import SourceError
from gapless.paging.page import Page, Partition, Row
from gapless.paging.source import Assignment, ListedPartition, Range
from gapless.progress import Assertion, Bound, Certificate, Domain, IntegerDomain, Position


class WorkerCrash(BaseException):
    """What a `Crash` raises. No `except Exception` stops it, as none would stop the death of a process."""


@dataclass(frozen=True, slots=True)
class Crash:
    """The worker dies when it comes here."""

    reason: str = "crash written into the script"


@dataclass(frozen=True, slots=True)
class ScriptedPage:
    """One answer. `events` are (id, position) or (id, position, row); without a row it is {"id": ...,
    "position": ...}.

    `next` is the next page token, None the chain's end. A bare bound as `certificate` is one the source
    certifies. `caught_up`: nothing further for now; a stream asks `next` again later."""

    events: Sequence[tuple[str, Position] | tuple[str, Position, Row]] = ()
    next: str | None = None
    certificate: Bound | Certificate | Assertion | None = None
    generation: str | None = None
    overlap: Bound | None = None
    caught_up: bool = False

    def page(self, token: str | None) -> Page:
        """The page, as fetched with `token`."""
        rows = [
            event[2] if len(event) == 3 else {"id": event[0], "position": event[1]} for event in self.events
        ]
        certificate = self.certificate
        return Page(
            start_token=token,
            next_token=self.next,
            end=self.next is None and not self.caught_up,
            ids=[event[0] for event in self.events],
            positions=[event[1] for event in self.events],
            rows=rows,
            certificate=Certificate(certificate, "script") if isinstance(certificate, Bound) else certificate,
            generation=self.generation,
            overlap=self.overlap,
            caught_up=self.caught_up,
        )


Step = ScriptedPage | SourceError | Crash
"""What a fetch meets: a page to return, an error to raise, or the worker's death."""
Script = Mapping[str | None, Step | Sequence[Step]]
"""A partition: by page token (None: the start) what the fetches of it meet, in turn; the last one stays."""


@dataclass
class _Happened:
    """What the sessions of one source have met so far, in this process."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    attempts: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    fetches: list[tuple[str, str | None]] = field(default_factory=list)
    assignments: int = 0


_happened: dict[str, _Happened] = {}


class ScriptedSource:
    """Implements Source. Pickled copies within a process go on in the script where the original stands.

    `assignments` are the lists met in turn, the last one stays; without them the scripted partitions are
    the list. `restarts` gives the token by which a chain restarts at a bound."""

    def __init__(
        self,
        partitions: Mapping[str, Script],
        *,
        scope: str = "scripted",
        domain: Domain | None = None,
        range: Range | None = None,
        generation: str = "",
        assignments: Sequence[Assignment | SourceError] = (),
        restarts: Mapping[Bound, str] | None = None,
        basis: str = "certified",
    ) -> None:
        self._partitions = partitions
        self._scope = scope
        self._domain = domain or IntegerDomain()
        self._range = range or Range()
        self._basis = basis
        self._restarts = restarts or {}
        listed = [ListedPartition(Partition(name, {})) for name in partitions]
        self._assignments = tuple(assignments) or (Assignment(listed, generation),)
        self._key = uuid.uuid4().hex

    @property
    def scope(self) -> str:
        return self._scope

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def range(self) -> Range:
        return self._range

    @property
    def fetches(self) -> Sequence[tuple[str, str | None]]:
        """Every fetch so far, as (partition, page token), whatever it met."""
        return tuple(self._happened.fetches)

    def identity(self) -> Mapping[str, object]:
        start = self._range.start
        return {
            "type": "scripted",
            "domain": self._domain.describe(),
            "range": {"start": None if start is None else self._domain.text(start)},
        }

    def basis(self) -> str:
        return self._basis

    def restart_token(self, bound: Bound) -> str | None:
        return self._restarts.get(bound)

    def open(self) -> "ScriptedSession":
        return ScriptedSession(self)

    def next_assignment(self) -> Assignment:
        """The list as of now; each reading goes one on. Raises the SourceError the script holds in its
        place."""
        happened = self._happened
        with happened.lock:
            reading = min(happened.assignments, len(self._assignments) - 1)
            happened.assignments += 1
        assignment = self._assignments[reading]
        if isinstance(assignment, SourceError):
            raise assignment
        return assignment

    def next_step(self, partition: str, token: str | None) -> Step:
        """What this fetch meets. A partition or token that the script does not hold is an AssertionError."""
        happened = self._happened
        with happened.lock:
            happened.fetches.append((partition, token))
            happened.attempts[partition, token] += 1
            attempt = happened.attempts[partition, token]
        script = self._partitions.get(partition)
        if script is None or token not in script:
            raise AssertionError(f"the script holds nothing for partition {partition!r}, token {token!r}")
        steps = script[token]
        if isinstance(steps, Sequence):
            return steps[min(attempt, len(steps)) - 1]
        return steps

    @property
    def _happened(self) -> _Happened:
        return _happened.setdefault(self._key, _Happened())


class ScriptedSession:
    """An open ScriptedSource."""

    def __init__(self, source: ScriptedSource) -> None:
        self._source = source
        self.closed = False

    def assignment(self) -> Assignment:
        return self._source.next_assignment()

    def generation(self) -> str:
        return self._source.next_assignment().generation

    def fetch(self, partition: Partition, page_token: str | None) -> Page:
        if self.closed:
            raise AssertionError("fetched from a closed session")
        step = self._source.next_step(partition.id, page_token)
        if isinstance(step, Crash):
            raise WorkerCrash(step.reason)
        if isinstance(step, SourceError):
            raise step
        return step.page(page_token)

    def close(self) -> None:
        self.closed = True
