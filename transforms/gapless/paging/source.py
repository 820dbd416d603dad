"""What a source implements: its scope and domain, its assignment, and one fetch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from gapless.paging.page import Page, Partition
from gapless.progress import Bound, Domain, KeyRange, Position


@dataclass(frozen=True, slots=True)
class Range:
    """The half-open interval of positions a scope is about: start <= position < stop; None is open."""

    start: Position | None = None
    stop: Position | None = None


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """One entry of the assignment. `seal` is the partition's certified end, None while it is open.

    `successors`: None is unknown, () is an end with none. `key_range` is the part of the key space it serves, where declared."""

    partition: Partition
    seal: Bound | None = None
    successors: tuple[str, ...] | None = None
    parents: tuple[str, ...] | None = None
    key_range: KeyRange | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The source's list of partitions as read once, with its routing generation ("" where the source has none).

    `list_bound` is how far the list itself is certified complete; None: frozen for the epoch."""

    partitions: Sequence[ListedPartition]
    generation: str = ""
    list_bound: Bound | None = None


class Session(Protocol):
    """An open source: connections and secrets live here. Used by one thread at a time.

    A session of a source that hands off answers `fetch` for a partition in `transit` with one page: the handoff certificate and
    every event at or below it whose partition differs between the two generations. It raises HandoffUnproven where there is
    none."""

    def assignment(self) -> Assignment:
        """Read the whole list. Raises SourceError."""

    def generation(self) -> str:
        """The assignment's routing generation as of now; reads only as much as that takes. Raises SourceError."""

    def fetch(self, partition: Partition, page_token: str | None) -> Page:
        """One page, with retries inside. Raises SourceUnavailable, TokenExpired, RangeTrimmed or InvalidPage."""

    def close(self) -> None: ...


class Source(Protocol):
    """A picklable description; `open()` on the worker gives the session. No secret is in it, only references.

    `scope` names it in the store; `identity()` is what its fingerprint covers: changing any of it makes another scope.
    `hands_off` (absent: False) says that it can certify what moved between two routing generations."""

    @property
    def scope(self) -> str: ...

    @property
    def domain(self) -> Domain: ...

    @property
    def range(self) -> Range: ...

    def identity(self) -> Mapping[str, object]:
        """JSON values only: path template, filters, event paths, domain, certificate form, ordering, range start."""

    def basis(self) -> str:
        """`certified`, `asserted` or `none`: what the certificates of this source give at best."""

    def restart_token(self, bound: Bound) -> str | None:
        """The token by which a chain restarts at `bound` after its own has expired; None where the source has no way."""

    def open(self) -> Session: ...


def hands_off(source: Source) -> bool:
    """Whether the source can certify what moved between two routing generations."""
    return bool(getattr(source, "hands_off", False))


def follows(source: Source) -> bool:
    """Whether this is a stream's view of a source: it reads on where the source has nothing further at present."""
    return bool(getattr(source, "follows", False))


def following(source: Source) -> Source:
    """The same scope as a stream reads it: the source's own `following()`. Without one it is read as it is, which serves where
    its pages say that they are `caught_up`. Raises ConfigurationError where it cannot be followed."""
    view = getattr(source, "following", None)
    return source if view is None else cast(Source, view())


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """How a chain's reading stopped: `end` the source's own end, `stop` the range's end is certified."""

    reason: str = field(default="end")
