"""Which list named each chain last, and how many partitions each list is said to have named.

Law: a list gives its number to every chain it names. So the latest list of a lineage named as many as bear its number, without
those that had left before it; an earlier one at least as many.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gapless.audit.contradiction import Contradiction
from gapless.audit.epochs import FIRST_LIST, Epoch, Epochs
from gapless.audit.routing import Found
from gapless.progress.keys import NO_BOUND
from gapless.store.evidence import Record
from gapless.store.records import PARTITION


@dataclass(slots=True)
class Named:
    """The audit of names. Holds a number for each list, and no chain. `rebuilt`: lineage -> the number that ended it."""

    epochs: Epochs
    rebuilt: Mapping[int, int]
    _counted: Counter[tuple[int, int]] = field(default_factory=Counter)
    _uncounted: set[int] = field(default_factory=set)
    """Lineages in which it is not known of everybody when it left."""
    _carried: set[tuple[int, str]] = field(default_factory=set)
    _unreadable: set[int] = field(default_factory=set)
    """Lineages with an epoch that cannot be read: somebody may have been carried on by it."""

    def __post_init__(self) -> None:
        for epoch in self._all():
            if not epoch.readable:
                self._unreadable.add(epoch.lineage)
            if epoch.routing is not None and epoch.routing["by"] in ("moves", "handoff"):
                self._carried.add((epoch.lineage, epoch.generation))

    def _all(self) -> Iterator[Epoch]:
        for lineage in self.epochs.of.values():
            yield from lineage.values()

    def judge(self, row: Record) -> Found:
        """One chain."""
        lineage, listed = row["lineage"], row["listed"]
        lists = self.epochs.lists.lineage(lineage)
        seen = lists.generation(listed)
        if seen is None:
            never = f"it is said to have been named by list {listed}, which its lineage never had"
            yield "lists_broken", never, None
            return
        if row["kind"] != PARTITION:
            return
        fresh = lineage not in self._unreadable and (lineage, row["generation"]) not in self._carried
        if fresh and lists.order[seen] < lists.order.get(row["generation"], 0):
            yield (
                "lists_broken",
                f"it is of routing generation {row['generation']!r}, and was last named by list {listed}, of {seen!r}",
                None,
            )
        yield from self._entering(row)
        yield from self._leaving(row)

    def _entering(self, row: Record) -> Found:
        epoch = self.epochs.find(row["lineage"], row["epoch_in"] or 0)
        if epoch is None or epoch.observation is None or row["chain"] not in epoch.entered:
            return
        routing = epoch.routing or {}
        # Whoever has ended may enter unnamed, and whoever is carried on may be named by a candidate that is dropped for it.
        excused = row["seal"] != NO_BOUND or (routing.get("by") in ("moves", "handoff") and epoch.dropped)
        if row["listed"] < epoch.observation and not excused:
            said = f"it entered by list {epoch.observation}, and was last named by list {row['listed']}"
            yield "member_unproved", said, epoch.number

    def _leaving(self, row: Record) -> Found:
        lineage, listed, number, chain = row["lineage"], row["listed"], row["epoch_out"], row["chain"]
        if number is None or self.rebuilt.get(lineage) == number:
            self._counted[lineage, listed] += 1
            return
        epoch = self.epochs.find(lineage, number)
        if epoch is None or epoch.observation is None:
            self._uncounted.add(lineage)
        elif listed <= epoch.observation:
            self._counted[lineage, listed] += 1
        elif chain in epoch.replaced or chain in epoch.dropped:
            said = (
                f"a cutover on list {epoch.observation} ended it, and list {listed} is said to have named it"
            )
            yield "leaver_unproved", said, number

    def remaining(self) -> Iterator[Contradiction]:
        """What lists are said to have named, after every chain."""
        for epoch in self._all():
            lists = self.epochs.lists.lineage(epoch.lineage)
            if epoch.by == FIRST_LIST and lists.numbers and lists.partitions[0] != epoch.members:
                said = f"list {lists.numbers[0]} is said to have named {lists.partitions[0]} partitions"
                frozen = f"its membership epoch was frozen with {epoch.members}"
                yield epoch.says("lists_broken", f"{said}; {frozen}")
        for lineage, lists in self.epochs.lists.of.items():
            if lineage in self._uncounted:
                continue
            for number, said_to_be in zip(lists.numbers, lists.partitions, strict=True):
                counted = self._counted[lineage, number]
                latest = number == lists.numbers[-1]
                if said_to_be < counted or (latest and said_to_be != counted):
                    yield Contradiction(
                        "lists_broken",
                        f"list {number} is said to have named {said_to_be} partitions; {counted} chains were last named by it",
                        lineage=lineage,
                    )
