"""The source of a model: events with their partition under each routing generation, a list that changes by switches, and pages.

Bounds are small numbers here, in the order of the bounds: 0 is none, 2p + 1 before(p), 2p + 2 through(p).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from gapless.progress import NO_CAP, Bound, IntegerDomain

CAP = 99
"""No cap, above the number of every bound."""
DOMAIN = IntegerDomain()


def before(position: int) -> int:
    return 2 * position + 1


def through(position: int) -> int:
    return 2 * position + 2


def bound_of(number: int) -> Bound | None:
    """The product's bound; None for no bound, and for no cap."""
    if number in (0, CAP):
        return None
    return Bound((number - 1) // 2, number % 2 == 0)


def number_of(bound: Bound | None) -> int:
    return 0 if bound is None else 2 * bound.position + 1 + bound.inclusive  # type: ignore[operator]


def key_of(number: int) -> bytes:
    return NO_CAP if number == CAP else DOMAIN.key(bound_of(number))


NUMBER_OF_KEY = {key_of(number): number for number in (*range(60), CAP)}


class Page(NamedTuple):
    """A fetched page. `events` is a set of events as bits; `assumed` a bound that is no evidence."""

    start: int
    next: int
    events: int
    certificate: int
    assumed: int


class Entry(NamedTuple):
    partition: str
    seal: int
    successors: tuple[str, ...] | None
    parents: tuple[str, ...] | None


class Listing(NamedTuple):
    """The list as read at one instant."""

    generation: int
    entries: tuple[Entry, ...]
    list_bound: int


class Source(NamedTuple):
    """Where the source is: the switches thrown, as bits, and what it has certified of each partition, where it promised so."""

    thrown: int
    issued: tuple[int, ...]


@dataclass(frozen=True)
class Switch:
    """A change of the source's list, thrown at any instant once those it comes `after` are. `generation` holds from here on;
    `seals` is (partition, bound, successors)."""

    name: str
    after: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    seals: tuple[str, int, tuple[str, ...] | None] | None = None
    generation: int = 0


@dataclass(frozen=True)
class World:
    """One configuration. `events` are (position, partition under each generation, one letter each); `horizon` is what the last
    page of each partition certifies.

    `silent` pages carry an assertion and an estimate instead of a certificate, `humble` ones a certificate below earlier ones;
    both as (partition, start token). `certified` is how far the list is certified once those switches are thrown; empty: frozen.
    `proof`: moves, handoff, again or none; `handoffs` are what a handoff certificate may cover. `confirm`: pages do not carry
    their generation, which is asked for after the run's last page. `goal` is how far the frontier gets at last."""

    name: str
    events: tuple[tuple[int, str], ...]
    horizon: dict[str, int]
    initial: tuple[str, ...]
    goal: int
    switches: tuple[Switch, ...] = ()
    silent: frozenset[tuple[str, int]] = frozenset()
    humble: frozenset[tuple[str, int]] = frozenset()
    certified: tuple[tuple[tuple[str, ...], int], ...] = ()
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ("r1", "r2", "r3")
    proof: str = "none"
    handoffs: tuple[int, ...] = ()
    confirm: bool = False
    sizes: tuple[int, ...] = (1,)
    longest_run: int = 1
    workers: int = 2
    fences: tuple[int, ...] = (1, 2)
    observers: int = 1

    @cached_property
    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted(self.horizon))

    @cached_property
    def everything(self) -> int:
        return (1 << len(self.events)) - 1

    @cached_property
    def covered(self) -> dict[int, int]:
        """Bound -> the events inside it."""
        found = {0: 0}
        for number in range(1, 60):
            bound = bound_of(number)
            assert bound is not None
            found[number] = sum(
                1 << index for index, (position, _) in enumerate(self.events) if bound.covers(position)
            )
        return found

    def owned(self, partition: str, generation: int) -> int:
        return sum(
            1 << index
            for index, (_, owners) in enumerate(self.events)
            if owners[min(generation, len(owners) - 1)] == partition
        )

    def generation(self, source: Source) -> int:
        return max(
            (switch.generation for n, switch in enumerate(self.switches) if source.thrown >> n & 1), default=0
        )

    def begin(self) -> Source:
        return Source(0, (0,) * len(self.partitions) if self.proof == "moves" else ())

    def moves(self, source: Source) -> list[tuple[str, Source]]:
        """Every change the source may make now."""
        index = {switch.name: n for n, switch in enumerate(self.switches)}
        found = []
        for n, switch in enumerate(self.switches):
            ready = all(source.thrown >> index[name] & 1 for name in switch.after)
            if source.thrown >> n & 1 or not ready:
                continue
            after = source._replace(thrown=source.thrown | 1 << n)
            if self._keeps_promise(source, after):
                found.append((f"source: {switch.name}", after))
        return found

    def _keeps_promise(self, was: Source, now: Source) -> bool:
        """Under `moves`, no event comes to lie behind what was certified of its new partition."""
        old, new = self.generation(was), self.generation(now)
        if self.proof != "moves" or old == new:
            return True
        return all(
            not self.owned(name, new) & ~self.owned(name, old) & self.covered[now.issued[index]]
            for index, name in enumerate(self.partitions)
        )

    def listing(self, source: Source) -> Listing:
        names, seals = dict.fromkeys(self.initial), {}
        for n, switch in enumerate(self.switches):
            if source.thrown >> n & 1:
                names |= dict.fromkeys(switch.lists)
                for name in switch.hides:
                    names.pop(name, None)
                if switch.seals is not None:
                    seals[switch.seals[0]] = switch.seals[1:]
        entries = [Entry(name, *seals.get(name, (0, None)), self.parents.get(name)) for name in sorted(names)]
        thrown = {switch.name for n, switch in enumerate(self.switches) if source.thrown >> n & 1}
        bounds = [bound for needs, bound in self.certified if thrown.issuperset(needs)]
        return Listing(self.generation(source), tuple(entries), max(bounds, default=0))

    def fetch(self, source: Source, partition: str, token: int) -> list[tuple[Page, Source]]:
        """The pages that may answer now, one for each page size; none where the chain has been read."""
        last = (self.horizon[partition] - 1) // 2
        if token >= last:
            return []
        owned = self.owned(partition, self.generation(source))
        left = [
            index
            for index, (position, _) in enumerate(self.events)
            if position > token and owned >> index & 1
        ]
        pages = []
        for size in sorted({min(size, len(left)) for size in self.sizes}):
            rest = left[size:]
            following = self.events[left[size - 1]][0] if rest else last
            certificate = before(self.events[rest[0]][0]) if rest else self.horizon[partition]
            assumed = 0
            if rest and (partition, token) in self.silent:
                certificate, assumed = 0, self.horizon[partition]
            if rest and (partition, token) in self.humble:
                certificate = through(0)
            events = sum(1 << index for index in left[:size])
            page = Page(token, following, events, certificate, assumed)
            pages.append((page, self._issued(source, partition, page)))
        return pages

    def _issued(self, source: Source, partition: str, page: Page) -> Source:
        if self.proof != "moves":
            return source
        issued = list(source.issued)
        index = self.partitions.index(partition)
        issued[index] = max(issued[index], page.certificate, through(page.next))
        return source._replace(issued=tuple(issued))

    def handoff(self, before: int, after: int, complete: int) -> int:
        """The events at or below `complete` whose partition differs between two generations."""
        return self.covered[complete] & sum(
            1 << index
            for index, (_, owners) in enumerate(self.events)
            if owners[min(before, len(owners) - 1)] != owners[min(after, len(owners) - 1)]
        )
