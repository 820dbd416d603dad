"""A chain between promotions: taken, held, restarted, and the receipts of its open page."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.errors import StoreError
from gapless.progress import ChainState
from gapless.store import schema
from gapless.store.base import StoreBase, insert_new
from gapless.store.findings import journal, record_dead_letters
from gapless.store.records import Blocker, ChainRow, DeadLetter
from gapless.store.rows import chain_row, write_position
from gapless.store.swaps import ADD_DEAD_LETTERS, EXPLAIN, HOLD, OPEN_PAGE, RESTART, TAKE, at

OUTCOMES = ("delivered", "dead_lettered")


class Chains(StoreBase):
    """Every change is a compare-and-swap on the row the caller has read: who loses rereads it and goes on from there."""

    def chain(self, chain: int) -> ChainRow:
        """The chain's durable row. Raises StoreError where there is none."""
        return self._database.read(lambda connection: self._chain(connection, chain))

    def take(self, chain: int, fencing_token: int) -> ChainRow | None:
        """Take the chain for run `fencing_token`; None where a newer run has it. A held chain is opened again; what held it
        stays on the row until a promotion. Its twin, under the same token, takes it too, and loses by compare-and-swap.

        Raises StoreError where there is no such chain."""
        parameters = {"at_chain": chain, "new_fencing_token": fencing_token}

        def work(connection: Connection) -> ChainRow | None:
            row = connection.execute(TAKE, parameters).mappings().one_or_none()
            if row is not None:
                return self._decoded(connection, row)
            self._chain(connection, chain)
            return None

        return self._database.write(work)

    def restart(self, expected: ChainRow, new_token: str | None, reason: str) -> ChainRow | None:
        """Replace the page token, and nothing else, after the source has forgotten it; kept in the journal with its reason.

        None: lost."""
        parameters = {**at(expected), "new_page_token": new_token}

        def work(connection: Connection) -> ChainRow | None:
            row = connection.execute(RESTART, parameters).mappings().one_or_none()
            if row is None:
                return None
            detail = {"sequence": expected.sequence, "from": expected.page_token, "to": new_token}
            journal(connection, expected, "restart", detail, reason, self._clock.now())
            return self._decoded(connection, row)

        def again(connection: Connection) -> ChainRow | None:
            """Where the first attempt did commit, the row differs from the expected one in the token alone."""
            row = work(connection)
            if row is not None:
                return row
            current = self._chain(connection, expected.chain)
            mine = (expected.fencing_token, expected.sequence, new_token)
            return current if (current.fencing_token, current.sequence, current.page_token) == mine else None

        return self._database.write(work, again)

    def hold(self, expected: ChainRow, state: ChainState, blocker: Blocker) -> bool:
        """Make what stopped the chain its durable state: HELD, or GAP, which no taking opens again; OPEN says of an open chain
        what it waits for, and changes no more than that. False: lost.

        Lost, too, where an event was skipped since the row was read: there may be nothing left to hold. `since` stays where the
        same code held on the same event before. Raises ValueError for another state, or an event without its position."""
        if state not in (ChainState.HELD, ChainState.GAP, ChainState.OPEN):
            raise ValueError(f"a chain is explained as open, or held as held or gap, not {state}")
        if blocker.event_id is not None and blocker.position is None:
            raise ValueError(f"the position of event {blocker.event_id!r} is missing")
        now = self._clock.now()

        def work(connection: Connection) -> bool:
            parameters = {
                **at(expected),
                "at_dead_letters": expected.dead_letters,
                "new_state": state.value,
                "new_blocker_code": blocker.code,
                "new_blocker_hint": blocker.hint,
                "new_blocker_event_id": blocker.event_id,
                "new_blocker_position": write_position(
                    self._domain(connection, expected.scope), blocker.position
                ),
                "new_blocker_since": blocker.since or now,
                "new_blocker_retry_at": blocker.retry_at,
            }
            return (
                connection.execute(HOLD if state is not ChainState.OPEN else EXPLAIN, parameters).rowcount
                == 1
            )

        return self._database.write(work)

    def receipts(self, chain: int) -> dict[str, str]:
        """The outcomes of events of open pages, by event id: `delivered` or `dead_lettered`."""
        column = schema.receipt.c
        wanted = sa.select(column.event_id, column.outcome).where(column.chain == chain)
        return self._database.read(lambda connection: {row[0]: row[1] for row in connection.execute(wanted)})

    def record_receipts(
        self, expected: ChainRow, outcomes: Mapping[str, str], dead_letters: Sequence[DeadLetter] = ()
    ) -> bool:
        """Store outcomes of events of an open page, so that its replay repeats nothing. Idempotent; False: lost.

        New dead letters are counted on the row, which is to be read again before it is promoted or held. An event that has a
        receipt keeps it. Raises ValueError for an unknown outcome."""
        if unknown := sorted(set(outcomes.values()) - set(OUTCOMES)):
            raise ValueError(f"no such outcome: {', '.join(unknown)}; allowed: {', '.join(OUTCOMES)}")
        now = self._clock.now()

        def work(connection: Connection) -> bool:
            if connection.execute(OPEN_PAGE, at(expected)).first() is None:
                return False
            rows = [
                {"chain": expected.chain, "event_id": event, "outcome": outcome, "recorded_at": now}
                for event, outcome in outcomes.items()
            ]
            if rows:
                connection.execute(insert_new(connection, schema.receipt), rows)
            domain = self._domain(connection, expected.scope)
            new = record_dead_letters(connection, expected, dead_letters, domain, now)
            if new:
                connection.execute(ADD_DEAD_LETTERS, {"at_chain": expected.chain, "new_dead_letters": new})
            return True

        return self._database.write(work)

    def _chain(self, connection: Connection, chain: int) -> ChainRow:
        row = (
            connection.execute(sa.select(schema.chain).where(schema.chain.c.chain == chain))
            .mappings()
            .one_or_none()
        )
        if row is None:
            raise StoreError(f"there is no chain {chain}", where=self._database.where)
        return self._decoded(connection, row)

    def _decoded(self, connection: Connection, row: RowMapping) -> ChainRow:
        return chain_row(row, self._domain(connection, row["scope"]))
