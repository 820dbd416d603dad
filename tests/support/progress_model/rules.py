"""The rules of the model are the product's own functions; here their arguments are made of the model's small values, and back.

A mutation overrides one of these methods, or one of the product's functions below them.
"""

from typing import Any

from gapless.progress import (
    Assertion,
    Certificate,
    ChainState,
    Checkpoint,
    Estimate,
    Ledger,
    Membership,
    PageAttempt,
    Scalar,
    Terminal,
    frontier_of,
)
from gapless.progress.promotion import PromotionResult
from progress_model.membership_rules import MembershipRules
from progress_model.source import bound_of, number_of, through
from progress_model.state import Row, Scope, Worker

STATES = {"": ChainState.OPEN, "sealed": ChainState.SEALED, "replaced": ChainState.REPLACED}


class Rules(MembershipRules):
    """What the product decides."""

    accept_assertions = False

    def take(self, row: Row, fence: int) -> int | None:
        """The row's fencing token once run `fence` takes it; None: a newer run has it. A twin of the same run takes it, too."""
        if fence == row.fence:
            return fence
        taken = self._checkpoint(row).taken_by(fence)
        return None if taken is None else taken.fencing_token

    def promote(self, row: Row, worker: Worker) -> Row | None:
        """The row after the compare-and-swap; None: lost, or not to be promoted."""
        ledger = Ledger(self._checkpoint(row), accept_assertions=self.accept_assertions)
        generation = self.world.names[worker.confirmed - 1]
        for page in worker.pages:
            ledger.offer(self._attempt(page, generation))
        ledger.settle([str(event) for event in bits(self.settled(worker))], Terminal.DELIVERED)
        result = self.swap(ledger, row, worker)
        if result.run is None:
            return None
        after = result.run.after
        read = [self.world.events[event][0] for page in worker.pages for event in bits(page.events)]
        return row._replace(
            sequence=after.sequence,
            token=int((after.page_token or "t0")[1:]),
            bound=number_of(after.bound),
            read_to=max(row.read_to, through(max(read)) if read else 0),
        )

    def tries_to_promote(self, worker: Worker) -> bool:
        """A run whose pages do not carry their generation waits until that is known; the ledger judges everything else."""
        if self.world.confirm:
            return worker.phase == "confirmed"
        return worker.phase in ("fetched", "settled")

    def confirmed_before(self, worker: Worker) -> int:
        """What is known of the generation of a run that gets another page."""
        return 0

    def settled(self, worker: Worker) -> int:
        """The events with an outcome, as the ledger is told."""
        return outcomes(worker)

    def swap(self, ledger: Ledger, row: Row, worker: Worker) -> PromotionResult:
        return ledger.promote(
            [f"page {page.start}" for page in worker.pages],
            token=f"t{worker.token}",
            fencing_token=worker.fence,
            generation=self.world.names[worker.generation],
        )

    def _checkpoint(self, row: Row) -> Checkpoint:
        return Checkpoint(
            row.fence,
            row.sequence,
            f"t{row.token}",
            bound_of(row.bound),
            STATES[row.closed],
            self.world.names[row.generation],
        )

    def _attempt(self, page: Any, generation: str) -> PageAttempt:
        bound, assumed = bound_of(page.certificate), bound_of(page.assumed)
        return PageAttempt(
            f"page {page.start}",
            f"t{page.start}",
            f"t{page.next}",
            tuple((str(event), self.world.events[event][0]) for event in bits(page.events)),
            None if bound is None else Certificate(bound, "page"),
            generation=generation,
            assertion=None if assumed is None else Assertion(assumed, "an operator assumes so"),
            estimate=None if assumed is None else Estimate(assumed),
        )

    def minimum(self, scope: Scope, rows: tuple[Row, ...]) -> int:
        """What the epoch's members support; 0: no claim."""
        bounds = {row.partition: bound_of(row.bound) for row in rows if row.member and not row.closed}
        membership = Membership(scope.epoch, self.world.names[scope.generation], frozenset(bounds))
        axes = {
            row.partition: self.world.names[row.generation] for row in rows if row.member and not row.closed
        }
        value = frontier_of(membership, bounds, axes)
        return number_of(value.bound) if isinstance(value, Scalar) else 0

    def capped(self, minimum: int, cap: int) -> int:
        """The minimum as far as the cap allows."""
        value = frontier_of(
            Membership(1, "", frozenset({"all"})), {"all": bound_of(minimum)}, cap=bound_of(cap)
        )
        if cap == 0 or not isinstance(value, Scalar):
            return 0
        return number_of(value.bound)

    def may_publish(self, scope: Scope, epoch: int, frontier: int) -> bool:
        return scope.epoch == epoch and frontier > scope.frontier


def outcomes(worker: Worker) -> int:
    """The events in hand that have their outcome: all, but those of a page that has just been fetched."""
    pages = worker.pages[:-1] if worker.phase == "fetched" else worker.pages
    events = 0
    for page in pages:
        events |= page.events
    return events


def bits(events: int) -> list[int]:
    return [index for index in range(events.bit_length()) if events >> index & 1]
