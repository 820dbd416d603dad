"""Planning a run: check the scope, read the source's list, freeze or observe the membership, number the run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gapless.clock import Clock, SystemClock
from gapless.errors import InvalidPage, UnknownScope
from gapless.paging.limits import LONGEST_GENERATION, LONGEST_PARTITION_ID, is_longer, too_long
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, Session, Source, hands_off
from gapless.progress import Bound, ChainState, Domain
from gapless.reopen import reopen_ended
from gapless.store import Store
from gapless.store.records import TRANSIT, ChainRow, FrontierRow, MembershipPolicy, Observed, ScopeIdentity
from gapless.updates import PartitionProgress, PlanRequest, ReadTask

MOST_LOOKS = 3
"""A list is read so often where others keep being followed in between; then the next run looks at it."""
READABLE = (ChainState.OPEN, ChainState.HELD)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run has to do: `number` is its fencing token, `tasks` the chains to read with their durable `rows` beside them,
    the lowest bound first; `progress` is where every live chain stands. `list_seconds` is how long the source took to
    answer with its list."""

    number: int
    tasks: Sequence[ReadTask]
    rows: Sequence[ChainRow]
    progress: Sequence[PartitionProgress]
    list_seconds: float = 0.0


def scope_identity(source: Source) -> ScopeIdentity:
    """What the store keeps of a source: its name, domain, fingerprinted identity, and where its claim starts."""
    start = source.range.start
    return ScopeIdentity(
        scope=source.scope,
        domain=source.domain,
        identity=source.identity(),
        after=None if start is None else Bound.before(start),
    )


def plan_run(
    source: Source,
    store: Store,
    request: PlanRequest,
    session: Session | None = None,
    clock: Clock | None = None,
    policy: MembershipPolicy | None = None,
) -> Plan:
    """Plan one run or pass. Idempotent: the same `run_id` gets the same number, the same list the same epoch. A changed list is
    followed by whatever cutover is proved already, where `policy` lets it.

    Raises StoreError where the store refuses, SourceError where the list cannot be read: then nothing was written."""
    clock = clock or SystemClock()
    asked = clock.monotonic()
    if request.observe:
        opened = session or source.open()
        try:
            epoch, observation = _as_it_stands(store, request.scope)
            assignment = opened.assignment()
            answered = clock.monotonic()
            _require_lengths(assignment)
            scope = store.register_scope(scope_identity(source))
            if scope.epoch == 0:
                require_partitions(assignment)
            observed = store.observe(
                request.scope, assignment, policy=policy, epoch=epoch, observation=observation
            )
            if observed.late:
                observed = _look(store, request.scope, opened, policy, renew=True)
            # Only now: a list that is refused leaves nothing behind, no run either that nobody ends.
            number = store.begin_run(request.scope, request.run_id, request.engine)
        finally:
            if session is None:
                opened.close()
        scope, chains = observed.scope, list(observed.chains)
        if cut_over_if_proved(store, scope):
            snapshot = store.snapshot(request.scope)
            scope, chains = snapshot.scope, list(snapshot.chains)
        chains = reopen_ended(source, store, scope, chains, number)
    else:
        answered = asked
        number = store.begin_run(request.scope, request.run_id, request.engine)
        snapshot = store.snapshot(request.scope)
        scope, chains = snapshot.scope, list(snapshot.chains)
    return lay_out(source, scope, chains, number, request.run_id, answered - asked)


def lay_out(
    source: Source,
    scope: FrontierRow,
    chains: Sequence[ChainRow],
    number: int,
    run_id: str,
    list_seconds: float = 0.0,
) -> Plan:
    """Which chains are to be read under run `number`, and the progress every member starts with."""
    live = [row for row in chains if row.is_live]
    members = sum(row.is_member for row in live)
    rows = sorted(readable(scope, live, source), key=lowest_first)
    tasks = [task_of(row, scope, members, number, run_id) for row in rows]
    progress = [progress_of(row, scope.domain, scope.epoch, members) for row in live]
    return Plan(number, tasks, rows, progress, list_seconds)


def policy_in_force(
    policy: MembershipPolicy | None, source: Source, *, replaceable: bool
) -> MembershipPolicy:
    """What the job says of a changing list, with what source and effect can do for it: reading again starts by itself only where
    what was written can be replaced."""
    policy = policy or MembershipPolicy()
    return replace(
        policy,
        handoff=policy.moves is None and hands_off(source),
        reading_again=policy.reading_again and policy.on_change == "cutover" and replaceable,
    )


def cut_over_if_proved(store: Store, scope: FrontierRow) -> bool:
    """Take the step towards the latest list that is proved, where the job lets it be taken unasked; whether one was."""
    if not scope.changing or scope.membership.on_change != "cutover":
        return False
    return store.cutover(scope.scope).accepted


def observe_again(
    source: Source, store: Store, session: Session, policy: MembershipPolicy | None
) -> FrontierRow:
    """Look at the source's list again while a run goes on, and follow it as far as is proved. The scope's row as it then is.

    Raises SourceError: the list cannot be read, or must not be believed, and nothing was written."""
    observed = _look(store, source.scope, session, policy, renew=False)
    return store.scope(source.scope) if cut_over_if_proved(store, observed.scope) else observed.scope


def _look(
    store: Store, scope: str, session: Session, policy: MembershipPolicy | None, *, renew: bool
) -> Observed:
    """Read the list and take note of it; anew where somebody has followed another one meanwhile, which may be a later one."""
    for _ in range(MOST_LOOKS):
        epoch, observation = _as_it_stands(store, scope)
        assignment = session.assignment()
        _require_lengths(assignment)
        observed = store.observe(
            scope, assignment, policy=policy, renew=renew, epoch=epoch, observation=observation
        )
        if not observed.late:
            break
    return observed


def _as_it_stands(store: Store, scope: str) -> tuple[int, int]:
    """The epoch and the observation that a list which is read from now on is later than."""
    try:
        row = store.scope(scope)
    except UnknownScope:
        return 0, 0
    return row.epoch, row.observation


def require_partitions(assignment: Assignment) -> None:
    """Raises InvalidPage where there is nothing to read at all. A list that was there once may well come back empty."""
    if not assignment.partitions:
        raise InvalidPage(
            "the source's list is empty: there is no partition to read",
            where="the list of partitions",
            remedy="correct source.partitions in the job file, or what the source lists",
        )


def _require_lengths(assignment: Assignment) -> None:
    """Raises InvalidPage where a name cannot be kept, before anything is written of the list."""
    names = [
        ("a partition's id", listed.partition.id, LONGEST_PARTITION_ID) for listed in assignment.partitions
    ]
    for what, name, limit in (*names, ("a routing generation", assignment.generation, LONGEST_GENERATION)):
        if is_longer(name, limit):
            raise InvalidPage(
                too_long(what, name, limit),
                where="the list of partitions",
                remedy="read a shorter name of it: the source's list, or partitions in the job file",
            )


def lowest_first(chain: ChainRow | PartitionProgress) -> tuple[bool, Bound, str]:
    """Sort key: whoever holds the frontier comes first."""
    return (chain.bound is not None, chain.bound or Bound.before(0), chain.partition)


def readable(scope: FrontierRow, chains: Sequence[ChainRow], source: Source) -> list[ChainRow]:
    """Those of a scope's live chains that are to be read: of the latest list's routing generation, since under changed routing
    the chains of the old one stop."""
    return [
        row
        for row in chains
        if row.is_live and row.generation == scope.observed_generation and to_be_read(row, source)
    ]


def to_be_read(row: ChainRow, source: Source) -> bool:
    """Whether a chain has anything left for a bounded read: open or held, and short of the range's end.

    That end is reached where it is proved, or, without certificates to wait for, where an event at or beyond it was read."""
    if row.state not in READABLE:
        return False
    if source.range.stop is None or row.kind == TRANSIT:
        return True
    stop = Bound.before(source.range.stop)
    if source.basis() == "none" and row.read_to is not None and row.read_to >= stop:
        return False
    return row.bound is None or row.bound < stop


def task_of(row: ChainRow, scope: FrontierRow, members: int, number: int, run_id: str) -> ReadTask:
    return ReadTask(
        scope=row.scope,
        domain=scope.domain,
        chain=row.chain,
        partition=row.partition,
        fields=json.dumps(dict(row.fields), sort_keys=True, separators=(",", ":")),
        fencing_token=number,
        lineage=row.lineage,
        epoch=scope.epoch,
        members=members,
        member=row.is_member,
        run_id=run_id,
        kind=row.kind,
    )


def partition_of(task: ReadTask) -> Partition:
    return Partition(task.partition, json.loads(task.fields), transit=task.kind == TRANSIT)


def progress_of(row: ChainRow, domain: Domain, epoch: int, members: int) -> PartitionProgress:
    """A chain's durable row as the element that tells of it."""
    return PartitionProgress(
        scope=row.scope,
        domain=domain,
        chain=row.chain,
        partition=row.partition,
        lineage=row.lineage,
        epoch=epoch,
        members=members,
        member=row.is_member,
        state=row.state,
        fencing_token=row.fencing_token,
        sequence=row.sequence,
        events=row.events,
        bound=row.bound,
        basis=row.basis,
        blocker=row.blocker.code if row.blocker else None,
        blocker_hint=row.blocker.hint if row.blocker else None,
    )
