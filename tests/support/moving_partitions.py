"""A source whose partitions split, merge, vanish and are routed anew: honest, and small enough to know the truth about it.

An event has a key; a routing generation says for every key which partition serves it, from which position on. Events at or below
`settled` are all there: a page is certified through it at most. Ids of partitions are never used again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound

KEYS = 6

Segments = dict[int, list[tuple[int, str]]]
"""By key: who serves it from beyond which position on, in ascending order."""


@dataclass
class Served:
    """A partition. `seal` None: open. `listed` False: it vanished, and nothing the source says tells where it ended."""

    seal: int | None = None
    successors: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    listed: bool = True


@dataclass(frozen=True)
class Answer:
    """One page: a partition's events up to `through`, under the routing generation that answered it."""

    generation: str
    events: tuple[int, ...]
    through: int
    end: bool


@dataclass
class MovingPartitions:
    """`moves_behind`: another generation may move events that are certified already; else it never does."""

    moves_behind: bool
    certified_list: bool
    events: dict[int, int] = field(default_factory=dict)
    head: int = 0
    settled: int = 0
    partitions: dict[str, Served] = field(default_factory=dict)
    routings: list[Segments] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.partitions = {"p0": Served(), "p1": Served(), "p2": Served()}
        self.routings = [{key: [(-1, f"p{key % 3}")] for key in range(KEYS)}]

    @property
    def generation(self) -> str:
        return f"r{len(self.routings)}"

    def open_partitions(self) -> list[str]:
        return [name for name, served in self.partitions.items() if served.seal is None]

    # what happens

    def append(self, key: int) -> None:
        """An event at the next position."""
        self.head += 1
        self.events[self.head] = key

    def settle(self) -> None:
        self.settled = self.head

    def split(self, which: int, *, merge_into_open: bool = False, vanish: bool = False) -> None:
        """A partition ends at the head; a child, or two, or an open one carries on. One that vanishes does not say so."""
        names = self.open_partitions()
        name = names[which % len(names)]
        others = [other for other in names if other != name]
        if merge_into_open and others:
            children = (others[which % len(others)],)
        else:
            count = len(self.partitions)
            children = tuple(f"p{count + number}" for number in range(1 + which % 2))
            for child in children:
                self.partitions[child] = Served(parents=() if vanish else (name,))
        served = self.partitions[name]
        served.seal, served.successors, served.listed = self.head, children, not vanish
        for key, segments in self.routings[-1].items():
            if segments[-1][1] == name:
                segments.append((self.head, children[key % len(children)]))

    def reroute(self, key: int, which: int, *, new: bool) -> None:
        """Another generation: some of a key's events are another partition's from now on, behind certificates where that is
        allowed."""
        names = self.open_partitions()
        target = names[which % len(names)]
        if new:
            target = f"p{len(self.partitions)}"
            self.partitions[target] = Served()
        routing = {other: list(segments) for other, segments in self.routings[-1].items()}
        if self.moves_behind:
            routing[key] = [(-1, target)]
        else:
            routing[key] = [segment for segment in routing[key] if segment[0] < self.settled]
            routing[key].append((self.settled, target))
        self.routings.append(routing)

    # what it answers

    def listing(self) -> Assignment:
        entries = [
            ListedPartition(
                Partition(name, {}),
                None if served.seal is None else Bound.through(served.seal),
                None if served.seal is None else served.successors,
                served.parents,
            )
            for name, served in self.partitions.items()
            if served.listed
        ]
        certified = Bound.through(self.settled) if self.certified_list else None
        return Assignment(entries, self.generation, certified)

    def page(self, partition: str, after: int, most: int) -> Answer:
        """The events of a partition beyond `after`, through `after + most` or as far as it is settled."""
        seal = self.partitions[partition].seal
        through = min(after + most, self.settled)
        ends = seal is not None and through >= seal
        if ends:
            through = max(after, seal or 0)
        found = tuple(
            position
            for position in self.events
            if after < position <= through and self.owner(position) == partition
        )
        return Answer(self.generation, found, through, ends)

    def handoff(self, before: str) -> Answer:
        """Its certificate through `settled`, with every event whose partition differs from the one under `before`."""
        moved = tuple(
            position
            for position in self.events
            if position <= self.settled and self.owner(position, before) != self.owner(position)
        )
        return Answer(self.generation, moved, self.settled, True)

    # the truth

    def owner(self, position: int, generation: str | None = None) -> str:
        number = len(self.routings) if generation is None else int(generation[1:])
        segments = self.routings[number - 1][self.events[position]]
        return next(name for start, name in reversed(segments) if start < position)

    def claimed(self, through: int, generation: str, members: set[str] | None) -> Iterator[int]:
        """The events that a frontier through `through` speaks of: those of `members` under the epoch's routing; None: all."""
        for position in self.events:
            if position <= through and (members is None or self.owner(position, generation) in members):
                yield position
