"""Under which routing generation each page was read, against the epochs that lead from one generation to the next.

Law: a chain is begun under the generation of a list, and goes on under another one only where a cutover carries it: by the
source's promise from any, by a handoff from the one it names. A member is read under its epoch's generation and no other.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from gapless.audit.chains import Derived, Under
from gapless.audit.clocks import precedes
from gapless.audit.contradiction import shown
from gapless.audit.epochs import Epoch, Epochs
from gapless.clock import instant_text
from gapless.progress.keys import NO_BOUND
from gapless.store.evidence import Record
from gapless.store.records import TRANSIT

Found = Iterator[tuple[str, str, int | None]]


@dataclass(frozen=True, slots=True)
class Span:
    """The epochs, from `first` to `last`, that one after the other were of one generation; when the first one was opened."""

    generation: str
    first: int
    last: int
    opened_at: datetime


@dataclass(slots=True)
class Routing:
    """The audit of generations. Holds what epochs say of the routing, and no chain. `by_word`: chains whose end an operator has
    stated, which any handoff carries. A lineage with an epoch that cannot be read is not judged."""

    epochs: Epochs
    by_word: Collection[int] = frozenset()
    _spans: dict[int, list[Span]] = field(default_factory=dict)
    _carrying: dict[int, list[Epoch]] = field(default_factory=dict)
    _reached: dict[tuple[int, str, bool], frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for lineage, epochs in self.epochs.of.items():
            if all(epoch.readable for epoch in epochs.values()):
                self._spans[lineage] = _spans(list(epochs.values()))
                self._carrying[lineage] = [one for one in epochs.values() if _carries(one)]

    def judge(self, row: Record, derived: Derived) -> Found:
        """One chain, of which `derived` is what its promotions prove."""
        order = self.epochs.lists.lineage(row["lineage"]).order
        ranks = [order.get(generation) for generation in derived.under]
        if (
            row["lineage"] not in self._spans
            or None in ranks
            or ranks != sorted(ranks, key=lambda rank: rank or 0)
        ):
            # Of those that no list had, or that go back, the chain's own audit tells.
            return
        yield from self._way(row, list(derived.under))
        if row["kind"] != TRANSIT and derived.under:
            pages = [(order[generation], generation, under) for generation, under in derived.under.items()]
            yield from self._gone(row, pages)
            yield from self._counting(row, derived, pages)
            yield from self._moments(row, pages)

    def _way(self, row: Record, read: Sequence[str]) -> Found:
        now = row["generation"]
        for before, after in pairwise([*read, now]):
            if before == after:
                continue
            led = after in self._reach(row["lineage"], before, row["chain"] in self.by_word)
            if row["kind"] == TRANSIT or not (led or (after == now and self._carried_departed(row))):
                yield (
                    "generation_unproved",
                    f"it was read under routing generation {before!r}, then under {after!r}: nothing proves the way",
                    None,
                )

    def _carried_departed(self, row: Record) -> bool:
        """Whoever has left in order goes on in name, whatever it was read under."""
        out = row["epoch_out"]
        carrying = self._carrying[row["lineage"]]
        return out is not None and any(
            one.number > out and one.generation == row["generation"] for one in carrying
        )

    def _reach(self, lineage: int, generation: str, by_word: bool) -> frozenset[str]:
        key = (lineage, generation, by_word)
        if key not in self._reached:
            order = self.epochs.lists.lineage(lineage).order
            reached = {generation}
            for epoch in self._carrying[lineage]:
                routing = epoch.routing or {}
                anyone = by_word or routing["by"] == "moves"
                later = order[generation] < order.get(epoch.generation, 0)
                if (anyone and later) or routing.get("from") in reached:
                    reached.add(epoch.generation)
            self._reached[key] = frozenset(reached)
        return self._reached[key]

    def _counting(self, row: Record, derived: Derived, pages: Sequence[tuple[int, str, Under]]) -> Found:
        """While it counted under a generation, whatever was published rests on pages of that one, or of those before it."""
        lineage, since, until = row["lineage"], row["epoch_in"], row["epoch_out"]
        if since is None or since == until:
            return
        order, domain = self.epochs.lists.lineage(lineage).order, self.epochs.domain
        published = self.epochs.publishes.lineage(lineage)
        for span in self._spans[lineage]:
            if span.last < since or (until is not None and span.first >= until):
                continue
            rank = order.get(span.generation, 0)
            proved = max((under.bound for at, _, under in pages if at <= rank), default=NO_BOUND)
            if span.first <= since:
                entered = (
                    self.epochs.lineage(lineage)[since].entered.get(row["chain"], NO_BOUND)
                    if since in self.epochs.lineage(lineage)
                    else NO_BOUND
                )
                if proved < entered <= derived.bound:
                    yield (
                        "generation_unproved",
                        f"it entered under routing generation {span.generation!r} at {shown(entered, domain)}; what was promoted"
                        f" until then proves {shown(proved, domain)}",
                        since,
                    )
            claimed = published.by(span.last if until is None else min(span.last, until - 1))
            if proved < claimed <= derived.bound:
                yield (
                    "generation_unproved",
                    f"published under routing generation {span.generation!r} was {shown(claimed, domain)}; what was promoted"
                    f" under it, or before it, proves {shown(proved, domain)}",
                    span.first,
                )

    def _gone(self, row: Record, pages: Sequence[tuple[int, str, Under]]) -> Found:
        """Whoever has left was read under the generation of the last epoch it counted in, or those before it."""
        lineage, since, until = row["lineage"], row["epoch_in"], row["epoch_out"]
        if until is None:
            return
        number = until - 1 if since is not None and since < until else until
        epoch = self.epochs.find(lineage, number)
        order = self.epochs.lists.lineage(lineage).order
        rank, generation, _ = pages[-1]
        if epoch is not None and rank > order.get(epoch.generation, rank):
            yield (
                "generation_unproved",
                f"promoted under routing generation {generation!r}; it had left under {epoch.generation!r}",
                until,
            )

    def _moments(self, row: Record, pages: Sequence[tuple[int, str, Under]]) -> Found:
        """A cutover to another generation stops what is read under those before it, and lets members go on under it."""
        lineage, since, until = row["lineage"], row["epoch_in"], row["epoch_out"]
        order = self.epochs.lists.lineage(lineage).order
        for span in self._spans[lineage][1:]:
            rank = order.get(span.generation, 0)
            member = since is not None and since < span.first and (until is None or until > span.first)
            for at, generation, under in pages:
                if at < rank and precedes(span.opened_at, under.last):
                    yield (
                        "generation_unproved",
                        f"promoted under routing generation {generation!r} at {instant_text(under.last)}, when by"
                        f" {instant_text(span.opened_at)} the routing had gone on to {span.generation!r}",
                        span.first,
                    )
                if member and at >= rank and precedes(under.first, span.opened_at):
                    yield (
                        "generation_unproved",
                        f"promoted under routing generation {generation!r} at {instant_text(under.first)},"
                        f" before the routing had gone on to it",
                        span.first,
                    )


def _carries(epoch: Epoch) -> bool:
    return epoch.routing is not None and epoch.routing["by"] in ("moves", "handoff")


def _spans(epochs: Sequence[Epoch]) -> list[Span]:
    spans: list[Span] = []
    for epoch in epochs:
        if spans and spans[-1].generation == epoch.generation:
            spans[-1] = Span(epoch.generation, spans[-1].first, epoch.number, spans[-1].opened_at)
        else:
            spans.append(Span(epoch.generation, epoch.number, epoch.number, epoch.opened_at))
    return spans
