"""Planning that goes on: the source's list is looked at again and again, and each chain is handed out once."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gapless.clock import Clock, SystemClock
from gapless.errors import SourceError
from gapless.paging.source import Session, Source
from gapless.plan import Plan, lay_out, observe_again, plan_run
from gapless.progress import Bound
from gapless.store import Store
from gapless.store.records import ChainRow, MembershipPolicy
from gapless.updates import PartitionProgress, PlanRequest, ReadTask

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchState:
    """What a planner carries from one look to the next. `number`: the run's, 0 before the first look. `highest`: the highest
    chain seen so far, and `waiting` those up to it that are not handed out yet: their numbers grow. `epoch`: as last told of."""

    number: int = 0
    highest: int = 0
    waiting: tuple[int, ...] = ()
    epoch: int = 0
    done: bool = False

    def after(self, plan: Plan, live: Sequence[ChainRow], epoch: int) -> "WatchState":
        """After the plan's new tasks were handed out."""
        out = {task.chain for task in self.new_tasks(plan)}
        waiting = {row.chain for row in live if self._is_new(row.chain)} - out
        highest = max((row.chain for row in live), default=0)
        return WatchState(plan.number, max(self.highest, highest), tuple(sorted(waiting)), epoch)

    def new_tasks(self, plan: Plan) -> tuple[ReadTask, ...]:
        """Those of the plan's tasks that were not handed out before."""
        return tuple(task for task in plan.tasks if self._is_new(task.chain))

    def _is_new(self, chain: int) -> bool:
        return chain > self.highest or chain in self.waiting


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look came to: chains to read from now on, and where chains stand, where it is worth telling. `frontier` is what is
    published. `state` is to be carried on; `state.done`: another run has taken over, and there is nothing more to hand out."""

    state: WatchState
    tasks: tuple[ReadTask, ...] = ()
    progress: Sequence[PartitionProgress] = ()
    frontier: Bound | None = None


@dataclass(slots=True)
class Watch:
    """Looks at the list of `source` for one run. Used by one thread; `close` gives back the session."""

    source: Source
    store: Store
    request: PlanRequest
    policy: MembershipPolicy | None = None
    clock: Clock = field(default_factory=SystemClock)
    _session: Session | None = None

    def look(self, state: WatchState) -> Looked:
        """Plan the run at the first look; follow the list as far as is proved at each later one.

        Raises StoreError, and at the first look SourceError: then nothing was written. A list that cannot be read later is left
        as it was known, until the next look."""
        if state.number == 0:
            plan = plan_run(self.source, self.store, self.request, self._opened(), self.clock, self.policy)
            number = plan.number
        else:
            number = state.number
            self._observe()
        snapshot = self.store.snapshot(self.request.scope)
        scope, live = snapshot.scope, [row for row in snapshot.chains if row.is_live]
        if any(row.fencing_token > number for row in live):
            return Looked(replace(state, done=True), frontier=scope.frontier)
        plan = lay_out(self.source, scope, live, number, self.request.run_id)
        tasks = state.new_tasks(plan)
        handed_out = {task.chain for task in tasks}
        tell_all = scope.epoch != state.epoch
        progress = [one for one in plan.progress if tell_all or one.chain in handed_out]
        return Looked(state.after(plan, live, scope.epoch), tasks, progress, scope.frontier)

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _observe(self) -> None:
        try:
            observe_again(self.source, self.store, self._opened(), self.policy)
        except SourceError as error:
            _LOGGER.warning("the list of partitions could not be looked at again: %s", error)
            self.close()

    def _opened(self) -> Session:
        if self._session is None:
            self._session = self.source.open()
        return self._session
