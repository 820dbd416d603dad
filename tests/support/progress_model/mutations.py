"""What would be wrong: each changes one rule of the product's, and a world shows what comes of it."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from gapless.progress import Handoff, Ledger, Moves, Seal, Standing, Step, cutover_step, standing
from gapless.progress.membership import MembershipCode
from gapless.progress.promotion import PromotionResult
from gapless.store import membership as membership_rules
from progress_model import worlds
from progress_model.explorer import Explored, Explorer
from progress_model.rules import Rules, outcomes
from progress_model.source import World, bound_of, number_of, through
from progress_model.state import Look, Row, Scope, Transit, Worker


class WithoutFence(Rules):
    def swap(self, ledger: Ledger, row: Row, worker: Worker) -> PromotionResult:
        return super().swap(ledger, row, worker._replace(fence=row.fence))


class WithoutToken(Rules):
    """Pages that start elsewhere than the committed token are promoted as if they started there."""

    def promote(self, row: Row, worker: Worker) -> Row | None:
        return super().promote(row._replace(token=worker.token), worker)


class WithoutGeneration(Rules):
    def promote(self, row: Row, worker: Worker) -> Row | None:
        after = super().promote(row._replace(generation=worker.generation), worker)
        return None if after is None else after._replace(generation=row.generation)


class BeforeSettling(Rules):
    def settled(self, worker: Worker) -> int:
        return outcomes(worker._replace(phase="settled"))


class Overwrites(Rules):
    """The last certificate counts, not the highest."""

    def promote(self, row: Row, worker: Worker) -> Row | None:
        after = super().promote(row, worker)
        certificate = worker.pages[-1].certificate if worker.pages else 0
        return after if after is None or not certificate else after._replace(bound=certificate)


class AcceptsAssertions(Rules):
    accept_assertions = True


class Maximum(Rules):
    def minimum(self, scope: Scope, rows: tuple[Row, ...]) -> int:
        return max((row.bound for row in rows if row.member and not row.closed), default=0)


class OfThoseKnown(Rules):
    """A member without a bound is left out of the minimum."""

    def minimum(self, scope: Scope, rows: tuple[Row, ...]) -> int:
        return super().minimum(scope, tuple(row for row in rows if row.bound))


class Inclusive(Rules):
    """before(p) becomes through(p)."""

    def minimum(self, scope: Scope, rows: tuple[Row, ...]) -> int:
        bound = bound_of(super().minimum(scope, rows))
        return 0 if bound is None else number_of(replace(bound, inclusive=True))


class WithoutEpoch(Rules):
    def may_publish(self, scope: Scope, epoch: int, frontier: int) -> bool:
        return super().may_publish(scope, scope.epoch, frontier)


class SameEpoch(Rules):
    """A cutover that opens no epoch of its own: what was computed before it is published after it."""

    def next_epoch(self, scope: Scope) -> int:
        return scope.epoch


class WithoutCap(Rules):
    def capped(self, minimum: int, cap: int) -> int:
        return minimum


class Uncapped(Rules):
    """Nobody counts as unproven."""

    def next_cap(self, scope: Scope, list_bound: int, unproven: bool) -> tuple[int, bool]:
        return super().next_cap(scope, list_bound, False)


class Inherits(Rules):
    """A newcomer begins with the highest bound there is."""

    def inherited(self, rows: tuple[Row, ...], parents: tuple[str, ...] | None) -> int:
        return max(row.bound for row in rows)


class NotListedHasEnded(Rules):
    def _standing(self, chain: int, row: Row) -> Standing:
        one = super()._standing(chain, row)
        if one.listed or one.bound is None:
            return one
        return replace(one, seal=Seal(one.bound, ()))


class NobodyCarriesOn(Rules):
    def _standing(self, chain: int, row: Row) -> Standing:
        one = super()._standing(chain, row)
        return one if one.seal is None else replace(one, seal=replace(one.seal, successors=()))


class NotedLate(Rules):
    def is_stale(self, scope: Scope, look: Look) -> bool:
        return False


class GenerationUnknown(Rules):
    """Pages that do not carry their generation are taken for the chain's own."""

    def tries_to_promote(self, worker: Worker) -> bool:
        return worker.phase in ("fetched", "settled")

    def promote(self, row: Row, worker: Worker) -> Row | None:
        return super().promote(row, worker._replace(confirmed=worker.generation + 1))


class ConfirmedEarly(Rules):
    """The generation is read before the run's last page has arrived."""

    def tries_to_promote(self, worker: Worker) -> bool:
        return worker.confirmed > 0 and worker.phase != "taken"

    def confirmed_before(self, worker: Worker) -> int:
        return worker.confirmed


class Promised(Rules):
    """Tokens and bounds go on where nobody has promised that they may."""

    def proof(self, scope: Scope, transit: Transit | None) -> Any:
        return Moves("nobody said so")


class HandoffThroughFrontier(Rules):
    """A handoff certificate is taken where it covers what is published, not all that was read."""

    def proof(self, scope: Scope, transit: Transit | None) -> Any:
        far = bound_of(through(28))
        if transit is None or transit.complete < scope.frontier:
            return super().proof(scope, transit)
        return Handoff(far if transit.ended else None, transit.ended)


class HandoffUnsettled(Rules):
    """It is taken as soon as it could be had, before the events in transit have an outcome."""

    def proof(self, scope: Scope, transit: Transit | None) -> Any:
        return Handoff(bound_of(max(self.world.handoffs)), settled=True)


class KeepsTheReplaced(Rules):
    def carry_out(self, scope: Scope, rows: tuple[Row, ...], transit: Transit | None, step: Step) -> Any:
        opened, after, left = super().carry_out(scope, rows, transit, replace(step, replaced=()))
        kept = [
            row._replace(closed="sealed") if chain in step.replaced else row
            for chain, row in enumerate(after)
        ]
        return opened, tuple(kept), left


@dataclass(frozen=True)
class Mutation:
    """`breaks`: the one of INVARIANTS. `patches`: functions of the product's, by module and name, and what they become."""

    name: str
    world: World
    breaks: int
    rules: type[Rules] = Rules
    patches: tuple[tuple[Any, str, Any], ...] = ()
    unlocked: bool = False

    def explore(self, most: int) -> Explored:
        with ExitStack() as stack:
            for module, name, instead in self.patches:
                stack.enter_context(patch.object(module, name, instead))
            return Explorer(self.rules(self.world), unlocked=self.unlocked).explore(most)


def always(value: Any) -> Callable[..., Any]:
    return lambda *given: value


_TO_C = worlds.routing_to_a_newcomer("handoff", handoffs=(through(1), through(10)))
_AGAIN = worlds.routing("again", switches=worlds.routing("again").switches[:1])
_LATE = worlds.routing("handoff", switches=_AGAIN.switches, handoffs=(through(1),), workers=2)
"""A page in a second worker's hand while the first one drains what is in transit."""

MUTATIONS = (
    Mutation("the fence is dropped from the compare-and-swap", worlds.READING, 1, WithoutFence),
    Mutation("the token is dropped from it", worlds.READING, 2, WithoutToken),
    Mutation("the generation is dropped from it", _LATE, 1, WithoutGeneration),
    Mutation("promoted before settling", worlds.READING, 1, BeforeSettling),
    Mutation("a lower certificate overwrites the bound", worlds.READING, 3, Overwrites),
    Mutation("an assertion counts as a certificate", worlds.READING, 1, AcceptsAssertions),
    Mutation("the maximum is published", worlds.READING, 1, Maximum),
    Mutation("a member without a bound is left out", worlds.READING, 1, OfThoseKnown),
    Mutation("an exclusive bound becomes inclusive", worlds.READING, 1, Inclusive),
    Mutation("published without the epoch", worlds.NEWCOMER, 1, WithoutEpoch),
    Mutation("a cutover opens no epoch", worlds.NEWCOMER, 6, SameEpoch),
    Mutation("published without the cap", worlds.CERTIFIED_LIST, 6, WithoutCap),
    Mutation("a certified list with a newcomer raises the cap", worlds.CERTIFIED_LIST, 1, Uncapped),
    Mutation("a newcomer in a frozen list does not hold the frontier", worlds.NEWCOMER, 6, Uncapped),
    Mutation(
        "a newcomer enters at once",
        worlds.NEWCOMER,
        6,
        patches=((cutover_step, "_lack_of_join", always(None)),),
    ),
    Mutation("a newcomer inherits a bound", worlds.NEWCOMER, 1, Inherits),
    Mutation("who is not listed has ended", worlds.VANISHED, 6, NotListedHasEnded),
    Mutation(
        "a leaver is not drained",
        worlds.LEAVER,
        6,
        patches=((standing, "judge_seal", always(MembershipCode.OK)),),
    ),
    Mutation("a leaver's successors are not waited for", worlds.SPLIT, 1, NobodyCarriesOn),
    Mutation("a list read before a cutover is noted after it", worlds.SPLIT, 2, NotedLate),
    Mutation(
        "nobody asks for the generation of a page",
        worlds.IN_THE_MIDDLE_OF_A_RUN,
        1,
        GenerationUnknown,
    ),
    Mutation(
        "the generation is read before the run's last page",
        worlds.IN_THE_MIDDLE_OF_A_RUN,
        1,
        ConfirmedEarly,
    ),
    Mutation(
        "a generation's value comes back",
        replace(worlds.IN_THE_MIDDLE_OF_A_RUN, names=("r1", "r2", "r1")),
        1,
    ),
    Mutation("tokens go on without a proof", worlds.routing("none"), 1, Promised),
    Mutation("a handoff reaches the frontier only", worlds.routing("handoff"), 1, HandoffThroughFrontier),
    Mutation("events in transit are not settled", worlds.routing("handoff"), 1, HandoffUnsettled),
    Mutation("a cutover does not lock the rows it rests on", _LATE, 1, unlocked=True),
    Mutation(
        "what was read under a generation between goes on by a handoff",
        _TO_C,
        1,
        patches=(
            (cutover_step, "_is_spoken_of", always(True)),
            (membership_rules, "_goes_on", always(True)),
        ),
    ),
    Mutation(
        "a generation that is read again comes in incomplete",
        _AGAIN,
        6,
        patches=((cutover_step, "_lack_of_reading", always(None)),),
    ),
    Mutation(
        "what was read again stands beside what it replaces",
        _AGAIN,
        2,
        KeepsTheReplaced,
    ),
)
