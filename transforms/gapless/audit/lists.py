"""The source's lists as they were observed: by lineage, the routing generations in order, and how far each list was certified."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from gapless.audit.contradiction import Contradiction, is_key, shown
from gapless.progress import Domain
from gapless.progress.keys import NO_BOUND
from gapless.store.evidence import Record


@dataclass(slots=True)
class LineageLists:
    """The lists of one lineage. `order`: routing generation -> its place. `certified`: the highest bound of all lists so far, by
    observation."""

    numbers: list[int] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)
    generations: list[str] = field(default_factory=list)
    certified: list[bytes] = field(default_factory=list)
    bounds: list[bytes] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    seen: list[datetime] = field(default_factory=list)

    def _place(self, observation: int) -> int | None:
        at = bisect_right(self.numbers, observation) - 1
        return at if at >= 0 and self.numbers[at] == observation else None

    def generation(self, observation: int) -> str | None:
        """Of the list with that number; None where the lineage has none."""
        at = self._place(observation)
        return None if at is None else self.generations[at]

    def bound(self, observation: int) -> bytes:
        """How far the list with that number was certified in the end; b"" where there is none."""
        at = self._place(observation)
        return NO_BOUND if at is None else self.bounds[at]

    def seen_at(self, observation: int) -> datetime | None:
        """When the list with that number was first seen; None where the lineage has none."""
        at = self._place(observation)
        return None if at is None else self.seen[at]

    def certified_by(self, observation: int | None) -> bytes:
        """The highest bound of any list up to that one; None: of all."""
        at = len(self.numbers) if observation is None else bisect_right(self.numbers, observation)
        return self.certified[at - 1] if at else NO_BOUND


@dataclass(slots=True)
class Lists:
    """Law: numbers count up without a gap, and within a lineage no routing generation comes back after another."""

    domain: Domain
    of: dict[int, LineageLists] = field(default_factory=dict)
    last: int = 0
    last_lineage: int = 0

    def lineage(self, lineage: int) -> LineageLists:
        return self.of.setdefault(lineage, LineageLists())

    def judge(self, rows: Iterable[Record], scope: Record) -> Iterator[Contradiction]:
        """Take in every observation, by number, and compare the scope's row."""
        for row in rows:
            yield from self._take(row)
        if scope["observation"] != self.last:
            said = f"the scope's row is at list {scope['observation']}, the last one recorded is {self.last}"
            yield Contradiction("lists_broken", said, lineage=scope["lineage"])
        lists = self.lineage(scope["lineage"])
        observed = lists.generations[-1] if lists.generations else ""
        if scope["observed_generation"] != observed:
            yield Contradiction(
                "lists_broken",
                f"the latest list is said to have routing generation {scope['observed_generation']!r}, it had {observed!r}",
                lineage=scope["lineage"],
            )
        if scope["list_bound"] > lists.bound(self.last):
            said = f"the latest list is said to be certified {shown(scope['list_bound'], self.domain)}"
            known = f"it was {shown(lists.bound(self.last), self.domain)}"
            yield Contradiction("lists_broken", f"{said}; {known}", lineage=scope["lineage"])

    def _take(self, row: Record) -> Iterator[Contradiction]:
        number, lineage = row["observation"], row["lineage"]
        if number != self.last + 1:
            yield Contradiction("lists_broken", f"list {number} follows list {self.last}", lineage=lineage)
        if lineage < self.last_lineage:
            yield Contradiction(
                "lists_broken",
                f"list {number} belongs to lineage {lineage}, an earlier one to lineage {self.last_lineage}",
                lineage=lineage,
            )
        self.last, self.last_lineage = number, max(lineage, self.last_lineage)
        lists, generation = self.lineage(lineage), row["generation"]
        if lists.generations and generation != lists.generations[-1] and generation in lists.order:
            yield Contradiction(
                "generation_unproved",
                f"list {number} goes back to routing generation {generation!r}, which another one had followed",
                lineage=lineage,
            )
        if not is_key(row["list_bound"], self.domain):
            said = f"list {number} is certified {shown(row['list_bound'], self.domain)}"
            yield Contradiction("record_damaged", said, lineage=lineage)
        lists.order.setdefault(generation, len(lists.order) + 1)
        lists.numbers.append(number)
        lists.generations.append(generation)
        lists.bounds.append(row["list_bound"])
        lists.partitions.append(row["partitions"])
        lists.seen.append(row["observed_at"])
        lists.certified.append(max([row["list_bound"], *lists.certified[-1:]]))
