"""Chains that a bounded read has ended, gone on with by a stream.

A backfill promotes a chain's last page as its end: for what is there, it is. Where the source's configuration knows how to ask
again later, that page's record holds the token for it, and a stream begins by opening the chain there: nothing is lost, and
nothing comes twice. Where the record holds none (an older one, or one of another way of settling), the chain restarts at its
certified bound, as after a token has expired: what was read beyond that bound may be delivered again, and the journal says so.
Where the source has ended the chain for good, or there is no way, it stays ended.
"""

from collections.abc import Sequence

from gapless.paging.source import Source, follows
from gapless.progress import Bound, ChainState
from gapless.store import Store
from gapless.store.records import TRANSIT, ChainRow, FrontierRow

AT_TOKEN = "a stream goes on where a bounded read had ended"  # noqa: S105 - no secret
AT_BOUND = (
    "a stream goes on at the certified bound, since the bounded read that ended here kept no token: "
    "what it had read beyond the bound may be delivered again"
)


def reopen_ended(
    source: Source, store: Store, scope: FrontierRow, chains: Sequence[ChainRow], number: int
) -> list[ChainRow]:
    """`chains` as they stand after those that had ended were opened for run `number`; a bounded read opens none.

    Raises StoreError."""
    if not follows(source):
        return list(chains)
    return [
        _reopened(source, store, row, number) if _is_to_go_on(row, scope, source) else row for row in chains
    ]


def _is_to_go_on(row: ChainRow, scope: FrontierRow, source: Source) -> bool:
    if row.state is not ChainState.ENDED or not row.is_live or row.kind == TRANSIT:
        return False
    if row.generation != scope.observed_generation:
        return False
    stop = None if source.range.stop is None else Bound.before(source.range.stop)
    reached = [
        end for end in (row.seal, stop) if end is not None and row.bound is not None and row.bound >= end
    ]
    return not reached


def _reopened(source: Source, store: Store, row: ChainRow, number: int) -> ChainRow:
    token, reason = store.resume_token(row), AT_TOKEN
    if token is None:
        token, reason = _token_at_bound(source, row.bound), AT_BOUND
    if token is None:
        return row
    taken = store.take(row.chain, number)
    if taken is None:
        return store.chain(row.chain)
    return store.reopen(taken, token, reason) or store.chain(row.chain)


def _token_at_bound(source: Source, bound: Bound | None) -> str | None:
    if bound is None or getattr(source, "ends_for_good", True):
        return None
    return source.restart_token(bound)
