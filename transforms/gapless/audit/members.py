"""Who entered and left, chain by chain: every membership is shown by an epoch's proof, and every proof by a chain.

Law: a chain that counts in an epoch was promoted at least through whatever was published while it counted.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gapless.audit.chains import Derived
from gapless.audit.contradiction import Contradiction, key_of, shown
from gapless.audit.epochs import FIRST_LIST, Epoch, Epochs
from gapless.errors import PositionError
from gapless.progress import ChainState, Domain
from gapless.progress.keys import NO_BOUND
from gapless.store.evidence import Record
from gapless.store.records import TRANSIT
from gapless.store.transit import transit_name

_LIVE = (ChainState.OPEN.value, ChainState.HELD.value, ChainState.GAP.value, ChainState.ENDED.value)


@dataclass(frozen=True, slots=True)
class Stay:
    """From which epoch to which a partition's chain counted; `until` None: it still does."""

    since: int
    until: int | None

    def reaches(self, epoch: int) -> bool:
        return self.since <= epoch and (self.until is None or self.until > epoch)


@dataclass(slots=True)
class Members:
    """The audit of membership. Holds what epochs name, and no chain that none names: it grows with changes of membership."""

    domain: Domain
    epochs: Epochs
    scope: Record
    rebuilt: Mapping[int, int] = field(default_factory=dict)
    """Lineage -> the number at which a rebuild ended it."""
    sealed_by_word: set[tuple[int, bytes]] = field(default_factory=set)
    """(chain, seal) of every seal that an operator's word is in the journal for."""
    _from_first_list: Counter[tuple[int, int]] = field(default_factory=Counter)
    _met: set[tuple[int, int, int, str]] = field(default_factory=set)
    _heirs: dict[tuple[int, str], list[Stay]] = field(default_factory=dict)
    _handoffs: dict[int, list[Epoch]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for epoch in self._all():
            if epoch.routing is not None and epoch.routing["by"] == "handoff":
                self._handoffs.setdefault(epoch.lineage, []).append(epoch)
            for one in epoch.left.values():
                for heir in one.successors or ():
                    self._heirs[epoch.lineage, heir] = []

    def _all(self) -> Iterator[Epoch]:
        for lineage in self.epochs.of.values():
            yield from lineage.values()

    def asked(self) -> dict[int, set[bytes]]:
        """By chain: the bounds at which it is said to have entered."""
        asked: dict[int, set[bytes]] = {}
        for epoch in self._all():
            for chain, bound in epoch.entered.items():
                asked.setdefault(chain, set()).add(bound)
        return asked

    def judge(self, row: Record, derived: Derived) -> Iterator[Contradiction]:
        """One chain, of which `derived` is what its promotions prove."""

        def at(code: str, detail: str, epoch: int | None = None) -> Contradiction:
            where = {"lineage": row["lineage"], "partition": row["partition"], "chain": row["chain"]}
            return Contradiction(code, detail, epoch=epoch, **where)

        if row["lineage"] > self.scope["lineage"]:
            yield at("record_orphaned", f"it belongs to lineage {row['lineage']}, which has not begun")
        if (row["lineage"], row["partition"]) in self._heirs and row["epoch_in"] is not None:
            stay = Stay(row["epoch_in"], row["epoch_out"])
            self._heirs[row["lineage"], row["partition"]].append(stay)
        if not _names(row["successors"])[1]:
            yield at("record_damaged", "its successors are no list of names")
        for judged in (self._entering, self._leaving, self._standing, self._publishing, self._ending):
            for code, detail, epoch in judged(row, derived):
                yield at(code, detail, epoch)

    def _entering(self, row: Record, derived: Derived) -> Iterator[tuple[str, str, int | None]]:
        number = row["epoch_in"]
        if number is None:
            return
        epoch = self.epochs.find(row["lineage"], number)
        if epoch is None:
            yield (
                "member_unproved",
                f"it counts since membership epoch {number}, which was never opened",
                number,
            )
        elif not epoch.readable:
            return
        elif row["kind"] == TRANSIT:
            yield from self._transit(row, derived, epoch)
        elif epoch.by == FIRST_LIST:
            self._from_first_list[epoch.lineage, epoch.number] += 1
        elif row["chain"] not in epoch.entered:
            yield (
                "member_unproved",
                f"it counts since membership epoch {number}, which names it nowhere",
                number,
            )
        else:
            self._meet(epoch, row, "entered")
            yield from self._entered(row, derived, epoch)

    def _entered(self, row: Record, derived: Derived, epoch: Epoch) -> Iterator[tuple[str, str, int | None]]:
        bound = epoch.entered[row["chain"]]
        if bound < epoch.frontier and row["chain"] not in epoch.left:
            yield (
                "member_unproved",
                f"it entered at {self._shown(bound)}, below the frontier: {self._shown(epoch.frontier)}",
                epoch.number,
            )
        if bound not in derived.stood_at:
            yield (
                "member_unproved",
                f"it is said to have entered at {self._shown(bound)}; its promotions never proved just that",
                epoch.number,
            )

    def _transit(self, row: Record, derived: Derived, epoch: Epoch) -> Iterator[tuple[str, str, int | None]]:
        routing = epoch.routing or {}
        if routing.get("transit") != row["chain"] or row["epoch_out"] != epoch.number:
            yield "member_unproved", "events in transit count, and no handoff names them", epoch.number
            return
        named = transit_name(str(routing.get("from")), str(routing.get("to")))
        if row["partition"] != named:
            said = f"it is called {row['partition']!r}; the handoff was {named!r}"
            yield "routing_unproved", said, epoch.number
        if not (derived.sequence > 0 and derived.token is None):
            yield "routing_unproved", "the events in transit were not read to their end", epoch.number
        if self._complete(epoch) != derived.bound:
            yield (
                "routing_unproved",
                f"the handoff is said to be complete {self._shown(self._complete(epoch))}; its certificate says"
                f" {self._shown(derived.bound)}",
                epoch.number,
            )

    def _leaving(self, row: Record, derived: Derived) -> Iterator[tuple[str, str, int | None]]:
        number, state, chain = row["epoch_out"], row["state"], row["chain"]
        if number is None:
            if state not in _LIVE:
                yield "leaver_unproved", f"it is {state}, and left in no membership epoch", None
            if row["lineage"] < self.scope["lineage"]:
                yield "lineage_unproved", f"lineage {row['lineage']} has ended, and it has not", None
            return
        epoch = self.epochs.find(row["lineage"], number)
        if row["kind"] == TRANSIT:
            if state == ChainState.ENDED.value and row["epoch_in"] is None:
                yield "leaver_unproved", "events in transit were closed, and no handoff names them", number
        elif epoch is not None and not epoch.readable:
            return
        elif epoch is not None and chain in epoch.left:
            self._meet(epoch, row, "left")
            if state not in (ChainState.SEALED.value, ChainState.REPLACED.value):
                yield "leaver_unproved", f"it left in order, and is {state}", number
            yield from self._left(row, derived, epoch)
        elif epoch is not None and chain in (epoch.replaced | epoch.dropped):
            self._meet(epoch, row, "left")
            member = row["epoch_in"] is not None
            expected = ChainState.REPLACED if chain in epoch.replaced else ChainState.SUPERSEDED
            if state != expected.value or member != (chain in epoch.replaced):
                yield "leaver_unproved", f"it was {expected} by a cutover, and is {state}", number
        elif number != self.rebuilt.get(row["lineage"]) or state != ChainState.SUPERSEDED.value:
            yield "leaver_unproved", f"it left in membership epoch {number}, which names it nowhere", number

    def _left(self, row: Record, derived: Derived, epoch: Epoch) -> Iterator[tuple[str, str, int | None]]:
        said = epoch.left[row["chain"]]
        if said.seal == NO_BOUND or said.seal != row["seal"] or said.by != row["seal_basis"]:
            yield (
                "leaver_unproved",
                f"it left with its end at {self._shown(said.seal)} by its {said.by}; its row says"
                f" {self._shown(row['seal'])} by its {row['seal_basis']}",
                epoch.number,
            )
        if derived.bound < said.seal:
            yield (
                "leaver_unproved",
                f"it left with its end at {self._shown(said.seal)}; its promotions prove {self._shown(derived.bound)}",
                epoch.number,
            )
        if said.successors is None and said.by != "operator":
            yield "leaver_unproved", "it left, and nobody knows who carries on from it", epoch.number
        heirs, readable = _names(row["successors"])
        if readable and heirs != said.successors:
            left, rows = _spelled(said.successors), _spelled(heirs)
            yield "leaver_unproved", f"it left to {left}; its row says to {rows}", epoch.number

    def _standing(self, row: Record, derived: Derived) -> Iterator[tuple[str, str, int | None]]:
        """A member of the present epoch is read under its routing generation; a handoff covers what had been read before it."""
        generation, now = row["generation"], self.scope
        is_member = row["epoch_in"] is not None and row["epoch_out"] is None
        if is_member and row["lineage"] == now["lineage"] and generation != now["generation"]:
            yield (
                "generation_unproved",
                f"it is a member, read under routing generation {generation!r}; the epoch's is {now['generation']!r}",
                now["epoch"],
            )
        order = self.epochs.lists.lineage(row["lineage"]).order
        for epoch in self._handoffs.get(row["lineage"], ()):
            gone = row["epoch_out"] is not None and row["epoch_out"] < epoch.number
            if gone or row["kind"] == TRANSIT:
                continue
            # What was read under a generation between the two the handoff says nothing of, and does not carry on.
            rank = order.get(str((epoch.routing or {}).get("from")), 0)
            read = max(
                (under.read for name, under in derived.under.items() if order.get(name, 0) <= rank),
                default=NO_BOUND,
            )
            if read > self._complete(epoch):
                yield (
                    "routing_unproved",
                    f"the handoff is complete {self._shown(self._complete(epoch))}; under the routing before it, this was"
                    f" read up to {self._shown(read)}",
                    epoch.number,
                )

    def _publishing(self, row: Record, derived: Derived) -> Iterator[tuple[str, str, int | None]]:
        """Whatever was published while it counted lies at or below what its promotions prove."""
        since, until = row["epoch_in"], row["epoch_out"]
        if since is None or since == until:
            return
        published = self.epochs.publishes.lineage(row["lineage"])
        frontier = published.last if until is None else published.by(until - 1)
        if frontier > derived.bound:
            yield (
                "frontier_not_proved",
                f"published was {self._shown(frontier)}; its promotions prove {self._shown(derived.bound)}",
                None,
            )
        elif frontier > derived.certified and not self._labelled_asserted(row["lineage"], until):
            yield (
                "basis_differs",
                f"the frontier counts as certified; its promotions certify {self._shown(derived.certified)}, and assert the rest",
                None,
            )

    def _labelled_asserted(self, lineage: int, until: int | None) -> bool:
        """Whether the frontier counted as asserted before that epoch (None: counts so now)."""
        if until is None and lineage == self.scope["lineage"] and self.scope["basis"] == "asserted":
            return True
        before = max(
            (number for number in self.epochs.lineage(lineage) if until is None or number < until), default=0
        )
        epoch = self.epochs.find(lineage, before)
        opened = epoch is not None and epoch.basis == "asserted"
        return opened or self.epochs.publishes.lineage(lineage).asserted_by(before)

    def _ending(self, row: Record, derived: Derived) -> Iterator[tuple[str, str, int | None]]:
        by_word = row["seal"] != NO_BOUND and row["seal_basis"] == "operator"
        if by_word and (row["chain"], row["seal"]) not in self.sealed_by_word:
            yield "operator_unrecorded", f"its end at {self._shown(row['seal'])} is an operator's word", None

    def remaining(self) -> Iterator[Contradiction]:
        """What epochs say of chains that are nowhere, or that say another thing themselves; after every chain."""
        for epoch in self._all():
            if not epoch.readable:
                continue
            if epoch.by == FIRST_LIST:
                counted = self._from_first_list[epoch.lineage, epoch.number]
                if counted != epoch.members:
                    detail = (
                        f"the first list named {epoch.members} members; {counted} chains count since then"
                    )
                    yield epoch.says("member_unproved", detail)
            gone = (*epoch.left, *epoch.replaced, *epoch.dropped)
            for how, named in (("entered", epoch.entered), ("left", gone)):
                for chain in named:
                    if (epoch.lineage, epoch.number, chain, how) not in self._met:
                        detail = f"it says that chain {chain} {how} with it, which is nowhere, or says another thing itself"
                        yield epoch.says("epoch_edited", detail, chain=chain)
            yield from self._successors(epoch)

    def _successors(self, epoch: Epoch) -> Iterator[Contradiction]:
        for chain, one in epoch.left.items():
            if one.by == "operator":
                continue
            for heir in one.successors or ():
                stays = self._heirs.get((epoch.lineage, heir), [])
                left = any(stay.until is not None and stay.until <= epoch.number for stay in stays)
                if not left and not any(stay.reaches(epoch.number) for stay in stays):
                    detail = f"{heir}, which carries on from it, neither counted then nor had left in order"
                    yield epoch.says("leaver_unproved", detail, chain=chain)

    def _meet(self, epoch: Epoch, row: Record, how: str) -> None:
        self._met.add((epoch.lineage, epoch.number, row["chain"], how))

    def _complete(self, epoch: Epoch) -> bytes:
        """How far the handoff that opened the epoch is said to reach; b"" where that cannot be read."""
        try:
            return key_of((epoch.routing or {}).get("complete"), self.domain)
        except (ValueError, PositionError):
            return NO_BOUND

    def _shown(self, key: bytes) -> str:
        return shown(key, self.domain)


def _names(text: str | None) -> tuple[tuple[str, ...] | None, bool]:
    """Names as they stand in a chain's row, None where they are unknown; and whether they can be read."""
    try:
        value = None if text is None else json.loads(text)
    except ValueError:
        return None, False
    if value is None:
        return None, True
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return None, False
    return tuple(value), True


def _spelled(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "nobody who is known"
    return ", ".join(names) or "nobody"
