"""What stands between a membership epoch and the source's latest list: pure, from one snapshot of the durable rows.

It is the cutover's own rule that is asked, so that what is explained as missing is what a cutover would be refused for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from gapless.progress import ChainState, MemberBlocker, Step
from gapless.store.next_step import next_step, transit_of
from gapless.store.records import PARTITION, Blocker, ChainRow, FrontierRow, Snapshot

_ANOTHER_ROUTING = "the source now routes under generation {now!r}"


@dataclass(frozen=True)
class Change:
    """The way from the epoch to the latest list. `step` is what a cutover would do now; `missing` what it lacks, by partition."""

    scope: FrontierRow
    step: Step
    missing: Mapping[str, MemberBlocker]
    chains: Mapping[str, ChainRow]
    transit: ChainRow | None

    @property
    def rerouted(self) -> bool:
        """Whether the list is of another routing generation, under which the epoch's chains are read no further."""
        return self.scope.observed_generation != self.scope.generation

    @property
    def by_cutover(self) -> bool:
        """Whether a run makes the cutover unasked, as soon as it is proved."""
        return self.scope.membership.on_change == "cutover"

    @property
    def proved(self) -> bool:
        """Whether a cutover would be accepted now."""
        return self.step.changes

    def stops(self, row: ChainRow) -> bool:
        """Whether a chain is read no further, because the source answers under another routing generation."""
        return self.rerouted and row.generation != self.scope.observed_generation

    def waits_for_cutover(self, row: ChainRow) -> bool:
        """Whether everything a chain needs to enter, leave or go on is proved."""
        return row.chain in self._moving

    @cached_property
    def reason(self) -> MemberBlocker:
        """What keeps the frontier where it is. Among several what no reading brings about comes first."""
        blocking = self._blocking
        if blocking:
            return next((lack for lack in blocking if not self.comes_by_reading(lack)), blocking[0])
        what = _ANOTHER_ROUTING.format(now=self.scope.observed_generation) if self.rerouted else _NEWCOMERS
        return MemberBlocker("membership_changed", "", f"{what}; {self._proved_words}")

    @cached_property
    def comes_by_itself(self) -> bool:
        """Whether it needs nobody: it is proved, or will be by the reading that goes on, and a run makes the cutover."""
        return self.by_cutover and all(map(self.comes_by_reading, self._blocking))

    @cached_property
    def _blocking(self) -> list[MemberBlocker]:
        """What caps the frontier. Another generation comes in whole; and by a handoff, whoever else is missing comes later."""
        if self.rerouted:
            unproven = [lack for lack in self.step.missing if lack.code == "handoff_unproven"]
            return unproven or ([] if self.proved else list(self.step.missing))
        return [lack for lack in self.step.missing if self._is_newcomer(lack.partition)]

    @cached_property
    def _moving(self) -> frozenset[int]:
        step = self.step
        return frozenset((*step.entering, *step.leaving, *step.replaced, *step.dropped, *step.rerouted))

    @cached_property
    def _leaving(self) -> frozenset[int]:
        return frozenset(self.step.leaving)

    @cached_property
    def _dropped(self) -> frozenset[int]:
        return frozenset(self.step.dropped)

    def _is_newcomer(self, partition: str) -> bool:
        row = self.chains.get(partition)
        return row is not None and row.is_candidate

    def comes_by_reading(self, lack: MemberBlocker) -> bool:
        """Whether the reading that goes on may bring what is missing."""
        row = self.transit if lack.code == "handoff_unproven" else self.chains.get(lack.partition)
        if row is None:
            return False
        if lack.code == "missing_successor":
            return bool(row.successors) and all(name in self.chains for name in row.successors or ())
        if lack.code == "unsealed_member" and row.seal is None:
            return False
        return row.state is ChainState.OPEN

    @property
    def _proved_words(self) -> str:
        if self.by_cutover:
            return "everything is proved: the next cutover of a run takes it in"
        return "everything is proved, and the job lets no run cut over: `gapless epoch cutover` does"

    def of_newcomer(self, row: ChainRow) -> Blocker:
        """Why a candidate has not entered."""
        lack = self.missing.get(row.partition)
        if lack is not None:
            return Blocker(lack.code, lack.detail)
        if row.chain in self._dropped:
            return Blocker("membership_changed", f"nobody needs it any more; {self._waits_for_cutover}")
        if self.rerouted and not self.proved:
            unproven = self.reason
            return Blocker(unproven.code, _named(unproven))
        return Blocker(
            "membership_changed", f"complete through the published frontier; {self._waits_for_cutover}"
        )

    def of_stopped(self, row: ChainRow) -> Blocker:
        """Why a chain of the old generation is read no further."""
        now = _ANOTHER_ROUTING.format(now=self.scope.observed_generation)
        return Blocker(
            "membership_changed", f"{now}; this chain is of {row.generation!r}, and is read no further"
        )

    def of_leaver(self, row: ChainRow) -> Blocker | None:
        """Why a member that has ended, or is no longer listed, has not left. None: it has not ended, or is still being read."""
        lack = self.missing.get(row.partition)
        if lack is not None and lack.code in ("unsealed_member", "missing_successor"):
            reading = row.seal is not None and self.comes_by_reading(lack)
            return None if lack.code == "unsealed_member" and reading else Blocker(lack.code, lack.detail)
        if row.chain in self._leaving:
            return Blocker("membership_changed", f"it has ended in order; {self._waits_for_cutover}")
        return None

    @property
    def _waits_for_cutover(self) -> str:
        if self.by_cutover:
            return "the next cutover of a run counts it so"
        return "the job lets no run cut over: `gapless epoch cutover` does"


_NEWCOMERS = "the source's list has newcomers"


def change_of(snapshot: Snapshot) -> Change | None:
    """None where the epoch is made of the latest list: nobody is to enter or to leave."""
    scope = snapshot.scope
    rows = [row for row in snapshot.chains if row.is_live and row.kind == PARTITION]
    settled = all(
        row.is_member
        and row.listed == scope.observation
        and row.seal is None
        and row.generation == scope.observed_generation
        for row in rows
    )
    if settled and scope.observed_generation == scope.generation:
        return None
    step = next_step(scope, [row for row in snapshot.chains if row.is_live], snapshot.departed)
    chains: dict[str, ChainRow] = {}
    # Of a partition's chains the one of the latest generation tells how it stands.
    for row in sorted(rows, key=lambda row: (row.generation == scope.observed_generation, row.chain)):
        chains[row.partition] = row
    missing: dict[str, MemberBlocker] = {}
    for lack in step.missing:
        missing.setdefault(lack.partition, lack)
    return Change(scope, step, missing, chains, transit_of(row for row in snapshot.chains if row.is_live))


def blocker_of(lack: MemberBlocker) -> Blocker:
    """A missing proof as whoever reads the scope's status is told."""
    return Blocker(lack.code, _named(lack))


def _named(lack: MemberBlocker) -> str:
    return f"partition {lack.partition}: {lack.detail}" if lack.partition else lack.detail
