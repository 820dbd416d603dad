"""The membership epochs as they were opened, each held against what led to it: the one before, the latest list, the frontier."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gapless.audit.clocks import opening_faults
from gapless.audit.contradiction import Contradiction, key_of, shown
from gapless.audit.lists import Lists
from gapless.audit.publishes import Publishes
from gapless.progress import Domain
from gapless.progress.keys import NO_BOUND
from gapless.store.evidence import Record, json_object

FIRST_LIST, CUTOVER = "first list", "cutover"
_ROUTING = ("moves", "handoff", "reading again")


@dataclass(frozen=True, slots=True)
class Leaving:
    """How a chain left: its end as a key, who stated it (`source` or `operator`), and who carries on (None: unknown)."""

    seal: bytes
    by: str
    successors: tuple[str, ...] | None


@dataclass(slots=True)
class Epoch:
    """One epoch as it stands in the store. `entered`, `left`, `replaced`, `dropped` go by chain; `members` is how many the first
    list named. `readable` False: its proof cannot be read, and nothing of it is judged by it."""

    lineage: int
    number: int
    generation: str
    list_bound: bytes
    frontier: bytes
    basis: str
    opened_at: datetime
    readable: bool = True
    by: str = ""
    members: int = 0
    observation: int | None = None
    entered: dict[int, bytes] = field(default_factory=dict)
    left: dict[int, Leaving] = field(default_factory=dict)
    replaced: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()
    routing: Record | None = None

    def says(self, code: str, detail: str, **where: Any) -> Contradiction:
        return Contradiction(code, detail, lineage=self.lineage, epoch=self.number, **where)


def epoch_of(row: Record, domain: Domain) -> Epoch:
    """Raises ValueError, KeyError, TypeError, AttributeError or PositionError where its proof is not what a cutover writes."""
    epoch = _bare(row)
    proof = json_object(row["proof"])
    epoch.by = proof["by"]
    if epoch.by == FIRST_LIST:
        epoch.members = int(proof["members"])
        return epoch
    if epoch.by != CUTOVER:
        raise ValueError(f"{epoch.by!r} opens no membership epoch")
    epoch.observation = int(proof["observation"])
    epoch.entered = {int(chain): key_of(bound, domain) for chain, bound in proof["entered"].items()}
    epoch.left = {int(chain): _leaving(value, domain) for chain, value in proof["left"].items()}
    epoch.replaced = frozenset(map(int, proof["replaced"]))
    epoch.dropped = frozenset(map(int, proof["dropped"]))
    epoch.routing = proof.get("routing")
    if epoch.routing is not None and epoch.routing["by"] not in _ROUTING:
        raise ValueError(f"{epoch.routing['by']!r} proves no routing")
    return epoch


def _bare(row: Record, *, readable: bool = True) -> Epoch:
    """All but its proof."""
    return Epoch(
        row["lineage"],
        row["epoch"],
        row["generation"],
        row["list_bound"],
        row["frontier"],
        row["basis"],
        row["opened_at"],
        readable=readable,
    )


def _leaving(value: Record, domain: Domain) -> Leaving:
    successors = value["successors"]
    return Leaving(
        key_of(value["seal"], domain), value["by"], None if successors is None else tuple(successors)
    )


@dataclass(slots=True)
class Epochs:
    """Law: numbers count up without a gap over all lineages; each epoch rests on the one before it, a list and the frontier."""

    domain: Domain
    lists: Lists
    publishes: Publishes
    of: dict[int, dict[int, Epoch]] = field(default_factory=dict)
    last: Epoch | None = None

    def lineage(self, lineage: int) -> dict[int, Epoch]:
        """By number, in order."""
        return self.of.get(lineage, {})

    def find(self, lineage: int, number: int) -> Epoch | None:
        return self.lineage(lineage).get(number)

    def judge(self, rows: Iterable[Record]) -> Iterator[Contradiction]:
        """Take in every epoch, by lineage and number; lists and publishes are there already."""
        for row in rows:
            try:
                epoch = epoch_of(row, self.domain)
            except (ValueError, KeyError, TypeError, AttributeError):
                epoch = _bare(row, readable=False)
                yield epoch.says("epoch_edited", "its proof is none that a first list or a cutover leaves")
            yield from self._number(epoch)
            before = self._before(epoch)
            if epoch.readable:
                yield from self._opening(epoch, before)
                yield from self._opened_at(epoch)
            yield from self._frontier(epoch)
            self.of.setdefault(epoch.lineage, {})[epoch.number] = epoch
            self.last = epoch
        yield from self._published_in_no_epoch()

    def _before(self, epoch: Epoch) -> Epoch | None:
        return self.last if self.last is not None and self.last.lineage == epoch.lineage else None

    def _number(self, epoch: Epoch) -> Iterator[Contradiction]:
        expected = 1 if self.last is None else self.last.number + 1
        if epoch.number != expected:
            yield epoch.says(
                "epoch_missing", f"membership epoch {epoch.number} stands where {expected} should"
            )

    def _opening(self, epoch: Epoch, before: Epoch | None) -> Iterator[Contradiction]:
        first = before is None
        if first != (epoch.by == FIRST_LIST):
            how = "the first of its lineage" if first else "not the first of its lineage"
            yield epoch.says("epoch_edited", f"it is {how}, and was opened by a {epoch.by}")
            return
        lists = self.lists.lineage(epoch.lineage)
        if before is None:
            generation = lists.generations[0] if lists.generations else None
            certified = lists.bounds[0] if lists.bounds else NO_BOUND
        else:
            generation = lists.generation(epoch.observation or 0)
            certified = lists.bound(epoch.observation or 0)
        if epoch.generation != generation:
            yield epoch.says(
                "epoch_edited",
                f"its routing generation is {epoch.generation!r}; that of the list it was opened on is {generation!r}",
            )
        if epoch.list_bound > certified:
            yield epoch.says(
                "epoch_edited",
                f"it counts its list as certified {shown(epoch.list_bound, self.domain)}; the list was"
                f" {shown(certified, self.domain)}",
            )
        if before is not None:
            yield from self._cutover(epoch, before)

    def _cutover(self, epoch: Epoch, before: Epoch) -> Iterator[Contradiction]:
        if before.observation is not None and (epoch.observation or 0) < before.observation:
            yield epoch.says(
                "epoch_edited",
                f"it was opened on list {epoch.observation}, older than that of the epoch before",
            )
        routing = epoch.routing
        if (routing is not None) != (epoch.generation != before.generation):
            changed = f"from {before.generation!r} to {epoch.generation!r}"
            yield epoch.says("routing_unproved", f"the routing went {changed} without a proof that says so")
        elif routing is not None and (routing.get("from"), routing.get("to")) != (
            before.generation,
            epoch.generation,
        ):
            proved = f"from {routing.get('from')!r} to {routing.get('to')!r}"
            changed = f"from {before.generation!r} to {epoch.generation!r}"
            yield epoch.says("routing_unproved", f"what is proved is {proved}, the routing went {changed}")
        if epoch.replaced and (routing is None or routing["by"] != "reading again"):
            yield epoch.says("routing_unproved", "chains were replaced although nothing was read again")
        asserted = before.basis == "asserted" or any(one.by == "operator" for one in epoch.left.values())
        if asserted and epoch.basis != "asserted":
            yield epoch.says(
                "basis_differs", f"it counts as {epoch.basis}, although an operator's word led to it"
            )

    def _opened_at(self, epoch: Epoch) -> Iterator[Contradiction]:
        last = self.last
        before = None
        if last is not None:
            before = (last.number, last.opened_at, self.publishes.lineage(last.lineage))
        lists, published = self.lists.lineage(epoch.lineage), self.publishes.lineage(epoch.lineage)
        for fault in opening_faults(
            epoch.opened_at, epoch.number, epoch.observation, lists, published, before
        ):
            yield epoch.says("epoch_edited", fault)

    def _frontier(self, epoch: Epoch) -> Iterator[Contradiction]:
        """A cutover moves no frontier: what stood when it was opened is what had been published before it."""
        published = self.publishes.lineage(epoch.lineage)
        if epoch.frontier != published.by(epoch.number - 1):
            yield epoch.says(
                "epoch_edited",
                f"it was opened at the frontier {shown(epoch.frontier, self.domain)}; published before it was"
                f" {shown(published.by(epoch.number - 1), self.domain)}",
            )
        if published.asserted_by(epoch.number - 1) and epoch.basis != "asserted":
            yield epoch.says(
                "basis_differs", f"it counts as {epoch.basis}, although the frontier was asserted"
            )

    def _published_in_no_epoch(self) -> Iterator[Contradiction]:
        for lineage, published in self.publishes.of.items():
            for number in published.epochs:
                if self.find(lineage, number) is None:
                    yield Contradiction(
                        "history_broken",
                        f"published in membership epoch {number}, which was never opened",
                        lineage=lineage,
                        epoch=number,
                    )
