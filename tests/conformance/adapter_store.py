"""What the ledger decides in a case, made durable in a real store, which has to come to the same."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from gapless.errors import InvalidPage, MembershipRefused
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import (
    Bound,
    ChainState,
    Checkpoint,
    IntegerDomain,
    MembershipCode,
    Run,
    Seal,
    Terminal,
    highest,
)
from gapless.store import open_store
from gapless.store.records import (
    Blocker,
    ChainRow,
    CutoverResult,
    DeadLetter,
    Promotion,
    ScopeIdentity,
    Violation,
)

SCOPE = "case"
PUBLISHERS = "publishers"


class StoreMirror:
    """A store on a database of its own. Every method asserts that the store's answer is the ledger's."""

    def __init__(self, url: str) -> None:
        self._store = open_store(url, create=True)
        for scope in (SCOPE, PUBLISHERS):
            self._store.register_scope(ScopeIdentity(scope, IntegerDomain(), {"case": scope}))
        self._chains: dict[str, int] = {}
        self._members: frozenset[str] = frozenset()
        self._listed: set[str] = set()
        self._seals: dict[str, Seal] = {}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._forgotten: set[str] = set()
        self._certified = False
        self._apart = False
        self._frontier: Bound | None = None

    def close(self) -> None:
        self._store.close()

    def freeze(self, members: Sequence[str], cap: Bound | None) -> None:
        """The first membership epoch."""
        self._members, self._certified = frozenset(members), cap is not None
        if members:
            self._observe(members, cap)

    def start(self, name: str, checkpoint: Checkpoint) -> None:
        """The durable state a partition starts from, written as a first promotion."""
        if name in self._chains and not self._row(name).is_live:
            del self._chains[name]  # an id used again
        if name in self._chains and self._row(name).sequence:
            self.forget(name)
        if name in self._forgotten:
            return
        if name not in self._chains:
            self._observe([name], None)
        row = self._store.take(self._chains[name], checkpoint.fencing_token)
        if row is None or (checkpoint.started and row.state is not ChainState.OPEN):
            # What a case starts anew stands in the store as it was: fenced, at a gap, or at its end.
            self.forget(name)
            return
        if checkpoint.started:
            first = _promotion(row, token=checkpoint.page_token, bound=checkpoint.bound)
            assert self._store.promote(first) is not None
        if checkpoint.state in (ChainState.HELD, ChainState.GAP):
            self.hold(name, checkpoint.state)

    def refuses_first_write(self, name: str, token: str | None) -> None:
        if name in self._forgotten:
            return
        row = self._row(name)
        unstarted = replace(row, sequence=0, page_token=None, bound=None)
        assert self._store.promote(_promotion(unstarted, token=token, bound=None)) is None
        assert self._row(name) == row

    def take(self, name: str, fencing_token: int, taken: Checkpoint | None) -> None:
        if name in self._forgotten:
            return
        current = self._row(name)
        row = self._store.take(current.chain, fencing_token)
        if taken is not None:
            assert row is not None
            assert row.fencing_token == taken.fencing_token
        elif fencing_token < current.fencing_token:
            assert row is None

    def forget(self, name: str) -> None:
        """The store has no such operation: from here on the ledger alone speaks for the partition."""
        self._forgotten.add(name)

    def hold(self, name: str, state: ChainState) -> None:
        if name not in self._forgotten and self._row(name).state in (ChainState.OPEN, ChainState.HELD):
            code = "range_trimmed" if state is ChainState.GAP else "source_unavailable"
            assert self._store.hold(self._row(name), state, Blocker(code, "as the case says"))

    def record_receipt(self, name: str, event: str, outcome: Terminal) -> None:
        if name in self._forgotten:
            return
        row = self._row(name)
        if row.state is not ChainState.OPEN:
            return
        assert self._store.record_receipts(row, {event: outcome.value})
        assert event in self._store.receipts(row.chain)

    def promote(self, name: str, run: Run, outcomes: Mapping[str, Terminal]) -> None:
        if name in self._forgotten:
            return
        row = self._row(name)
        events = [event for page in run.pages for event in page.events]
        promotion = Promotion(
            expected=row,
            pages=len(run.pages),
            token_in=run.before.page_token,
            token_out=run.after.page_token,
            bound=_certified(run),
            basis="certified",
            read_to=max((Bound.through(position) for _, position in events), default=None),
            end=run.after.state is ChainState.ENDED,
            events=len(events),
            path=None,
            digest=None,
            rows=0,
            dead_letters=[
                DeadLetter(name, row.sequence, event, position, "as the case says", "{}")
                for event, position in events
                if outcomes.get(event) is Terminal.DEAD_LETTERED
            ],
            violations=[
                Violation(
                    name, "event_behind_bound", row.sequence, "as the case says", event, position, row.bound
                )
                for event, position in run.late
            ],
            settled=[event for event, _ in events],
        )
        promoted = self._store.promote(promotion)
        assert promoted is not None
        assert (promoted.page_token, promoted.bound) == (run.after.page_token, run.after.bound)

    def refuses(self, name: str, expected: Checkpoint) -> None:
        """Where the ledger refused because the row has moved on or may not move, so does the compare-and-swap."""
        if name in self._forgotten:
            return
        row = self._row(name)
        swapped = replace(row, fencing_token=expected.fencing_token, page_token=expected.page_token)
        if swapped == row and row.state is ChainState.OPEN:
            return
        assert self._store.promote(_promotion(swapped, token="elsewhere", bound=None)) is None
        assert self._row(name) == row

    def agrees(self, name: str, checkpoint: Checkpoint, late: Sequence[str]) -> None:
        if name in self._forgotten:
            return
        row = self._row(name)
        assert (row.page_token, row.bound, row.fencing_token) == (
            checkpoint.page_token,
            checkpoint.bound,
            checkpoint.fencing_token,
        )
        found = [
            violation.event_id for violation in self._store.violations(SCOPE) if violation.partition == name
        ]
        assert sorted(map(str, found)) == sorted(late)

    def join(self, name: str, parents: Sequence[str]) -> None:
        """What the list says of a newcomer, which is read from its start from here on."""
        self._seals.pop(name, None)
        self._parents[name] = tuple(parents)

    def seal(self, name: str, seal: Seal) -> None:
        """The source's list states the end, or an operator does."""
        if name in self._forgotten or name not in self._chains:
            self._apart = True
            return
        if seal.decommissioned:
            try:
                self._store.seal(SCOPE, name, seal.at, "as the case says")
            except MembershipRefused:
                # An operator may not seal behind what is proved, or elsewhere than the source has.
                self._apart = True
                return
        else:
            before = self._row(name).seal
            self._seals[name] = seal
            self._observe([name], None)
            if before is not None and before > seal.at:
                # A seal is never taken back by a lower one.
                self._apart = True
                return
        assert self._apart or self._row(name).seal == seal.at

    def cut_over(
        self,
        members: Sequence[str],
        read: Set[str],
        cap: Bound | None,
        published: Bound | None,
        code: MembershipCode,
    ) -> None:
        """A cutover towards the list of `members` reaches them where the ledger's does, and does not where it refuses.

        As far as both go by the same: nobody's state was deleted, everybody listed is read and nobody else but `read`, whoever
        is to join is held against the same frontier. The store keeps a last member, since nobody's bounds are no claim."""
        live = {row.partition for row in self._store.snapshot(SCOPE).chains}
        known = self._chains.keys() >= set(members) and not self._forgotten and live == read
        if known and any(self._row(name).seal is not None for name in members):
            # Whoever has ended leaves the store as soon as it may; a case may keep it.
            self._apart = True
        alike = self._store.scope(SCOPE).frontier == published
        if self._apart or not (known and members):
            self._apart = self._apart or code is MembershipCode.OK
        elif code is MembershipCode.OK:
            self._see(members, cap)
            self._reached(self._store.cutover(SCOPE), members, alike)
            self._members, self._certified = frozenset(members), cap is not None
        elif alike or code is not MembershipCode.NOT_JOINED:
            before = sorted(self._listed)
            self._see(members, cap)
            assert self._store.cutover(SCOPE, dry_run=True).missing
            self._see(before, None)

    def _reached(self, result: CutoverResult, members: Sequence[str], alike: bool) -> None:
        codes = {blocker.code for blocker in result.missing}
        if codes == {"not_joined"} and not alike:
            self._apart = True
            return
        assert codes == set()
        live = self._store.snapshot(SCOPE).chains
        assert sorted(row.partition for row in live) == sorted(members)
        assert all(row.is_member for row in live)

    def supports(self, claim: Bound | None, cap: Bound | None) -> None:
        """The minimum by SQL is the ledger's frontier, as far as a published one never goes back; only in a scope that has
        seen nobody but its members, since newcomers cap what is published, and whose lists are all certified or all are not."""
        if self._forgotten or self._apart or self._listed != self._members or self._certified != bool(cap):
            return
        self._store.publish(SCOPE, self._store.scope(SCOPE).epoch)
        self._frontier = highest(self._frontier, claim)
        assert self._store.scope(SCOPE).frontier == self._frontier

    def publish(self, candidate: Bound | None, moved: bool) -> None:
        """A scope of one member, which reaches the candidate, is published."""
        row = self._store.observe(PUBLISHERS, _list(["p"])).chains[0]
        assert self._store.promote(_promotion(row, token=None, bound=candidate)) is not None
        assert (self._store.publish(PUBLISHERS, 1) is not None) is moved

    def _observe(self, names: Sequence[str], cap: Bound | None) -> None:
        self._see(sorted(self._listed.union(names)), cap)

    def _see(self, names: Sequence[str], cap: Bound | None) -> None:
        """The list as the source now gives it, with all that it has stated."""
        self._listed = set(names)
        try:
            observed = self._store.observe(SCOPE, _list(names, cap, self._seals, self._parents))
        except InvalidPage:
            # The store refuses what contradicts the events it has, or itself; the ledger knows nothing of either.
            self._apart = True
            observed = self._store.observe(SCOPE, _list(names, cap))
        self._chains.update({row.partition: row.chain for row in observed.chains})

    def _row(self, name: str) -> ChainRow:
        return self._store.chain(self._chains[name])


def _list(
    names: Sequence[str],
    cap: Bound | None = None,
    seals: Mapping[str, Seal] | None = None,
    parents: Mapping[str, tuple[str, ...]] | None = None,
) -> Assignment:
    entries = []
    for name in names:
        seal = (seals or {}).get(name)
        end, successors = (None, None) if seal is None else (seal.at, seal.successors)
        entries.append(ListedPartition(Partition(name, {}), end, successors, (parents or {}).get(name)))
    return Assignment(entries, list_bound=cap)


def _promotion(row: ChainRow, *, token: str | None, bound: Bound | None) -> Promotion:
    fields: dict[str, Any] = {
        "read_to": None,
        "end": False,
        "events": 0,
        "path": None,
        "digest": None,
        "rows": 0,
    }
    return Promotion(row, 1, row.page_token, token, bound, "certified", **fields)


def _certified(run: Run) -> Bound | None:
    """The highest certificate the run brought, which may be below the bound there is."""
    best: Bound | None = None
    for page in run.pages:
        if page.certificate is not None:
            best = highest(best, page.certificate.bound)
    return best
