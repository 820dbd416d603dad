"""What a cutover would do now, from a scope's durable rows: pure, the same for the cutover itself and for who explains it."""

from collections.abc import Callable, Container, Iterable, Sequence

from gapless.progress import (
    Bound,
    ChainState,
    Domain,
    Handoff,
    Moves,
    ReadingAgain,
    RoutingProof,
    Seal,
    Standing,
    Step,
    bound_text,
    step_towards_list,
)
from gapless.store.records import PARTITION, TRANSIT, ChainRow, FrontierRow


def next_step(scope: FrontierRow, chains: Sequence[ChainRow], departed: Container[str]) -> Step:
    """The step towards the latest list that the live `chains` prove; `departed` are those of `gone_successors` that have left in
    order."""
    return step_towards_list(
        scope.generation,
        [_standing(row, scope) for row in chains if row.kind == PARTITION],
        observed=scope.observed_generation,
        frontier=scope.frontier,
        list_bound=scope.list_bound,
        departed=departed,
        proof=routing_proof(scope, chains),
        show=_shown(scope.domain),
    )


def gone_successors(chains: Iterable[ChainRow]) -> list[str]:
    """Partitions that carry on from a live chain's and are not live themselves: they left, or were never seen."""
    rows = [row for row in chains if row.kind == PARTITION]
    heirs = {name for row in rows if row.seal is not None for name in row.successors or ()}
    return sorted(heirs - {row.partition for row in rows})


def routing_proof(scope: FrontierRow, chains: Iterable[ChainRow]) -> RoutingProof | None:
    """What the job offers in proof of another routing generation, as it stands now."""
    policy = scope.membership
    if policy.moves is not None:
        return Moves(policy.moves)
    if policy.handoff:
        transit = transit_of(chains)
        if transit is None:
            return Handoff(None, settled=False)
        return Handoff(transit.bound, settled=transit.state is ChainState.ENDED)
    return ReadingAgain() if policy.reading_again else None


def transit_of(chains: Iterable[ChainRow]) -> ChainRow | None:
    """The live chain of events in transit between two routing generations; there is one at most."""
    return next((row for row in chains if row.kind == TRANSIT), None)


def _standing(row: ChainRow, scope: FrontierRow) -> Standing:
    seal = None
    if row.seal is not None:
        seal = Seal(row.seal, row.successors, decommissioned=row.seal_basis == "operator")
    return Standing(
        chain=row.chain,
        partition=row.partition,
        generation=row.generation,
        member=row.is_member,
        listed=row.listed == scope.observation,
        bound=row.bound,
        read_to=row.read_to,
        seal=seal,
        parents=row.parents or (),
    )


def _shown(domain: Domain) -> Callable[[Bound | None], str]:
    return lambda bound: "nothing" if bound is None else bound_text(bound, domain)
