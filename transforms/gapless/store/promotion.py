"""Promotion: the page barrier's one transaction. A run of pages becomes durable progress as a whole, or not at all."""

import uuid
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.progress import ChainState, Domain
from gapless.store import schema
from gapless.store.chains import Chains
from gapless.store.columns import ExactText
from gapless.store.findings import record_dead_letters, record_violations
from gapless.store.records import ChainRow, Promotion
from gapless.store.swaps import ADD_DEAD_LETTERS, PROMOTE, at

_LIST = sa.insert(schema.promotion)
_END_RECEIPTS = sa.delete(schema.receipt).where(
    schema.receipt.c.chain == sa.bindparam("at_chain", type_=sa.BigInteger)
)
_END_RECEIPT = _END_RECEIPTS.where(schema.receipt.c.event_id == sa.bindparam("at_event_id", type_=ExactText))


class Promotions(Chains):
    """The compare-and-swap with its manifest row, receipts, dead letters and violations."""

    def promote(self, promotion: Promotion) -> ChainRow | None:
        """Promote a run of pages. The chain's row as it now stands; None: lost, the caller rereads the row and goes on from it.

        Only an open chain is promoted, and only the row that `expected` was read from, with no event skipped since. The bound
        never goes back. What held the chain is cleared. Where the answer to the commit was lost, the promotion's own row in the
        manifest decides. Raises ValueError for a run without pages, or one that does not start at the expected token."""
        expected = promotion.expected
        if promotion.pages < 1:
            raise ValueError("a run of pages has at least one")
        if promotion.token_in != expected.page_token:
            raise ValueError(
                f"the run starts at {promotion.token_in!r}, the committed token is {expected.page_token!r}"
            )
        attempt = uuid.uuid4().hex
        now = self._clock.now()

        def work(connection: Connection) -> ChainRow | None:
            domain = self._domain(connection, expected.scope)
            row = connection.execute(PROMOTE, _swap(promotion, domain)).mappings().one_or_none()
            if row is None:
                return None
            connection.execute(_LIST, _manifest(promotion, domain, attempt, now))
            _end_receipts(connection, promotion)
            record_violations(connection, expected, promotion.violations, domain, now)
            new = record_dead_letters(connection, expected, promotion.dead_letters, domain, now)
            if new:
                count = {"at_chain": expected.chain, "new_dead_letters": new}
                row = connection.execute(ADD_DEAD_LETTERS, count).mappings().one()
            return self._decoded(connection, row)

        def again(connection: Connection) -> ChainRow | None:
            row = work(connection)
            if row is None and _is_listed(connection, promotion, attempt):
                return self._chain(connection, expected.chain)
            return row

        return self._database.write(work, again)


def _swap(promotion: Promotion, domain: Domain) -> dict[str, Any]:
    return {
        **at(promotion.expected),
        "at_dead_letters": promotion.expected.dead_letters,
        "pages": promotion.pages,
        "new_page_token": promotion.token_out,
        "new_bound": domain.key(promotion.bound),
        "new_read_to": domain.key(promotion.read_to),
        "new_basis": promotion.basis,
        "new_events": promotion.events,
        "new_drift": promotion.drift,
        "new_state": (ChainState.ENDED if promotion.end else ChainState.OPEN).value,
    }


def _manifest(promotion: Promotion, domain: Domain, attempt: str, now: datetime) -> dict[str, Any]:
    expected = promotion.expected
    return {
        "chain": expected.chain,
        "sequence": expected.sequence,
        "pages": promotion.pages,
        "fencing_token": expected.fencing_token,
        "attempt": attempt,
        "generation": expected.generation,
        "token_in": promotion.token_in,
        "token_out": promotion.token_out,
        "bound": domain.key(promotion.bound),
        "basis": promotion.basis,
        "read_to": domain.key(promotion.read_to),
        "events": promotion.events,
        "rows": promotion.rows,
        "path": promotion.path,
        "digest": promotion.digest,
        "size": promotion.size,
        "drift": promotion.drift,
        "evidence": None if promotion.evidence is None else dict(promotion.evidence),
        "promoted_at": now,
    }


def _end_receipts(connection: Connection, promotion: Promotion) -> None:
    chain = promotion.expected.chain
    if promotion.settled is None or promotion.end:
        connection.execute(_END_RECEIPTS, {"at_chain": chain})
    elif promotion.settled:
        connection.execute(
            _END_RECEIPT, [{"at_chain": chain, "at_event_id": event} for event in promotion.settled]
        )


def _is_listed(connection: Connection, promotion: Promotion, attempt: str) -> bool:
    """Whether this very attempt is in the manifest: a twin's promotion of the same pages is another one's."""
    column = schema.promotion.c
    mine = sa.select(column.attempt).where(
        column.chain == promotion.expected.chain, column.sequence == promotion.expected.sequence
    )
    return connection.execute(mine).scalar_one_or_none() == attempt
