"""Membership in the model: what a look at the list and a cutover make of the store, by the product's own rules.

The rules are called; what is written by them, which the product does in SQL, is done here on the model's rows, in the same order.
"""

from typing import Any
from unittest.mock import patch

from gapless.paging.page import Partition
from gapless.paging.source import ListedPartition
from gapless.progress import (
    ChainState,
    Handoff,
    Moves,
    ReadingAgain,
    RoutingProof,
    Seal,
    Standing,
    Step,
    step_towards_list,
)
from gapless.store import listing as listing_rules
from gapless.store import membership as membership_rules
from gapless.store import transit as transit_rules
from gapless.store.cap import cap_after_cutover, next_cap
from gapless.store.records import MembershipPolicy
from progress_model.source import DOMAIN, NUMBER_OF_KEY, Listing, World, bound_of, key_of
from progress_model.state import Broken, Look, Row, Scope, Transit


class MembershipRules:
    """What the product decides about the list, the cap and the epoch."""

    def __init__(self, world: World) -> None:
        self.world = world

    def step(self, scope: Scope, rows: tuple[Row, ...], transit: Transit | None) -> Step:
        """What a cutover would do."""
        return step_towards_list(
            self.world.names[scope.generation],
            [self._standing(chain, row) for chain, row in enumerate(rows) if not row.closed],
            observed=self.world.names[scope.observed],
            frontier=bound_of(scope.frontier),
            list_bound=bound_of(scope.list_bound),
            departed={row.partition for row in rows if row.closed == "sealed"},
            proof=self.proof(scope, transit),
        )

    def _standing(self, chain: int, row: Row) -> Standing:
        at = bound_of(row.seal)
        return Standing(
            chain,
            row.partition,
            self.world.names[row.generation],
            member=row.member,
            listed=row.listed,
            bound=bound_of(row.bound),
            read_to=bound_of(row.read_to),
            seal=None if at is None else Seal(at, row.successors),
            parents=row.parents or (),
        )

    def proof(self, scope: Scope, transit: Transit | None) -> RoutingProof | None:
        if self.world.proof == "moves":
            return Moves("the source says so")
        if self.world.proof == "handoff":
            if transit is None:
                return Handoff(None, settled=False)
            return Handoff(bound_of(transit.complete), settled=transit.ended)
        return ReadingAgain() if self.world.proof == "again" else None

    def next_cap(self, scope: Scope, list_bound: int, unproven: bool) -> tuple[int, bool]:
        cap, certified = next_cap(
            key_of(scope.cap), scope.certified, key_of(scope.frontier), key_or_none(list_bound), unproven
        )
        return NUMBER_OF_KEY[cap], certified

    def cap_after_cutover(self, scope: Scope, unproven: bool) -> tuple[int, bool]:
        cap, certified = cap_after_cutover(
            key_of(scope.cap),
            scope.certified,
            key_of(scope.frontier),
            key_or_none(scope.list_bound),
            unproven,
        )
        return NUMBER_OF_KEY[cap], certified

    def inherited(self, rows: tuple[Row, ...], parents: tuple[str, ...] | None) -> int:
        """The bound a newcomer begins with."""
        return 0

    def is_stale(self, scope: Scope, look: Look) -> bool:
        """Whether the list was read before the latest cutover: it says nothing about what that came to."""
        return look.epoch != scope.epoch

    def observe(
        self, scope: Scope, rows: tuple[Row, ...], transit: Transit | None, seen: Listing
    ) -> tuple[Scope, tuple[Row, ...], Transit | None] | None:
        """The store after a look at the list; None: refused, since a generation came back."""
        world = self.world
        if seen.generation != scope.observed and scope.seen >> seen.generation & 1:
            return None
        chains = [_dict(chain, row, world) for chain, row in enumerate(rows) if not row.closed]
        generation = world.names[seen.generation]
        reads_again = seen.generation != scope.generation and world.proof == "again"
        listed = self._still_listed(chains, rows, seen, generation, reads_again)
        present = self.matched(scope, chains, listed, generation, reads_again)
        listing_rules.require_sound(listed)
        facts = {name: listing_rules.facts_of(one, present[name], DOMAIN) for name, one in listed.items()}
        stored = {"observed_generation": world.names[scope.observed], "observation": 1}
        after = list(rows)
        if membership_rules._has_changed(stored, chains, present, facts, generation):
            after = [row._replace(listed=False) for row in after]
            for name, one in present.items():
                fact = {
                    "seal": NUMBER_OF_KEY[facts[name]["seal"]],
                    "successors": _tuple(facts[name]["successors"]),
                    "parents": _tuple(facts[name]["parents"]),
                }
                if one is None:
                    begins = self.inherited(rows, fact["parents"])
                    fresh = Row(name, seen.generation, False, "", True, 0, 0, 0, begins, 0, 0, None, None, 0)
                    after.append(fresh._replace(**fact))
                else:
                    after[one["chain"]] = after[one["chain"]]._replace(listed=True, **fact)
        newcomers = any(one is None for one in present.values()) or any(
            row["epoch_in"] is None for row in chains
        )
        unproven = seen.generation != scope.generation or newcomers
        cap, certified = self.next_cap(scope, seen.list_bound, unproven)
        changed = scope._replace(
            observed=seen.generation,
            list_bound=seen.list_bound,
            cap=cap,
            certified=certified,
            seen=scope.seen | 1 << seen.generation,
        )
        return changed, tuple(after), self._followed(changed, tuple(after), transit)

    def matched(
        self, scope: Scope, chains: list[dict[str, Any]], listed: Any, generation: str, reads_again: bool
    ) -> dict[str, Any]:
        stored = {"generation": self.world.names[scope.generation]}
        policy = MembershipPolicy(
            moves="so the source says" if self.world.proof == "moves" else None,
            handoff=self.world.proof == "handoff",
            reading_again=self.world.proof == "again",
        )
        return membership_rules._matched(
            chains,
            listed,
            generation,
            lambda row: not reads_again and membership_rules._goes_on(row, stored, policy),
        )

    def _still_listed(
        self,
        chains: list[dict[str, Any]],
        rows: tuple[Row, ...],
        seen: Listing,
        generation: str,
        reads_again: bool,
    ) -> Any:
        entries = {
            one.partition: ListedPartition(
                Partition(one.partition, {}), bound_of(one.seal), one.successors, one.parents
            )
            for one in seen.entries
        }

        def departed(connection: Any, scope: Any, names: list[str]) -> list[dict[str, Any]]:
            gone = [row for row in rows if row.closed == "sealed" and row.partition in names]
            return [_dict(0, row, self.world) for row in gone]

        def nobody(connection: Any, scope: Any) -> set[int]:
            return set()

        # Nobody leaves by an operator's word here.
        with (
            patch.object(listing_rules, "departed_chains", departed),
            patch.object(listing_rules, "_named_until_now", nobody),
        ):
            scope: Any = {"epoch": 1, "observation": 1}
            connection: Any = None
            return listing_rules.still_listed(
                connection, scope, chains, entries, DOMAIN, generation, reads_again
            ).rest

    def _followed(self, scope: Scope, rows: tuple[Row, ...], transit: Transit | None) -> Transit | None:
        """The chain of events in transit after a look at the list: there is one exactly while a handoff is to be proved."""
        if self.world.proof != "handoff" or scope.observed == scope.generation:
            return None
        fresh = Transit(scope.generation, scope.observed, 0, False, 0)
        if transit is None or (transit.before, transit.after) != (fresh.before, fresh.after):
            return fresh
        state = ChainState.ENDED.value if transit.ended else ChainState.OPEN.value
        stored = {"state": state, "bound": key_of(transit.complete)}
        live = [_dict(chain, row, self.world) for chain, row in enumerate(rows) if not row.closed]
        return (
            fresh if transit_rules._falls_short(stored, live, self.world.names[scope.generation]) else transit
        )

    def changing(self, scope: Scope, rows: tuple[Row, ...]) -> bool:
        """Whether the latest list is not what the epoch is made of."""
        stored = {"generation": self.world.names[scope.generation]}
        chains = [_dict(chain, row, self.world) for chain, row in enumerate(rows) if not row.closed]
        return membership_rules.is_changing(stored, 1, self.world.names[scope.observed], chains)

    def carry_out(
        self, scope: Scope, rows: tuple[Row, ...], transit: Transit | None, step: Step
    ) -> tuple[Scope, tuple[Row, ...], Transit | None]:
        """The store after a cutover, in the order in which the product writes."""
        generation = self.world.names.index(step.generation)
        after = list(rows)
        for chain in (*step.dropped, *step.replaced):
            after[chain] = closed(after[chain], "replaced")
        if step.rerouted:
            moved = {*step.rerouted, *(n for n, row in enumerate(after) if row.closed == "sealed")}
            for chain in moved:
                after[chain] = after[chain]._replace(generation=generation)
        for chain in step.entering:
            self.require_entitled(scope, rows[chain])
            after[chain] = after[chain]._replace(member=True)
        for chain in step.leaving:
            self.require_drained(rows[chain])
            after[chain] = closed(after[chain], "sealed")
        if step.read_again:
            names = {rows[chain].partition for chain in step.entering}
            for chain, row in enumerate(rows):
                if row.closed == "sealed" and row.partition in names:
                    after[chain] = closed(row, "replaced")
        unproven = generation != scope.observed or any(not row.closed and not row.member for row in after)
        cap, certified = self.cap_after_cutover(scope, unproven)
        carried = scope.carried
        if step.read_again:
            others = any(row.closed == "sealed" and row.generation != generation for row in after)
            carried = carried if others else 0
        elif transit is not None and generation != scope.generation:
            carried |= transit.events
        opened = scope._replace(
            epoch=self.next_epoch(scope),
            generation=generation,
            cap=cap,
            certified=certified,
            carried=carried,
        )
        owed = scope.owed
        for row in after:
            if row.member:
                heirs = (row.successors or ()) if row.closed else ()
                for name in (row.partition, *heirs):
                    owed |= self.world.owned(name, generation)
        opened = opened._replace(owed=owed)
        return opened, tuple(after), None if generation == scope.observed else transit

    def next_epoch(self, scope: Scope) -> int:
        return scope.epoch + 1

    def require_entitled(self, scope: Scope, row: Row) -> None:
        """Law: nobody enters who is not complete through what is published, but one that ends at once, drained."""
        drained = row.seal and row.bound >= row.seal
        if scope.frontier > row.bound and not drained:
            raise Broken(6, f"{row.partition} enters complete through less than is published")

    def require_drained(self, row: Row) -> None:
        if not row.seal or row.bound < row.seal:
            raise Broken(6, f"{row.partition} leaves without a certified end that it has been read through")


def closed(row: Row, how: str) -> Row:
    """A chain's row once it is closed; of one that left in order stays what counts."""
    stub = row._replace(closed=how, listed=False, fence=0, sequence=0, token=0, bound=0, read_to=0)
    if how == "sealed":
        return stub._replace(member=True)
    return stub._replace(member=False, seal=0, successors=None, parents=None, events=0)


def key_or_none(number: int) -> bytes | None:
    return key_of(number) if number else None


def _dict(chain: int, row: Row, world: World) -> dict[str, Any]:
    return {
        "chain": chain,
        "partition": row.partition,
        "generation": world.names[row.generation],
        "epoch_in": 1 if row.member else None,
        "listed": 1 if row.listed else 0,
        "fields": {},
        "kind": "partition",
        "bound": key_of(row.bound),
        "read_to": key_of(row.read_to),
        "seal": key_of(row.seal),
        "seal_basis": "source",
        "successors": None if row.successors is None else list(row.successors),
        "parents": None if row.parents is None else list(row.parents),
    }


def _tuple(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)
