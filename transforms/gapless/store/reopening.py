"""A chain that a bounded read has ended, opened again for a stream: by compare-and-swap, and with an entry in the journal."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.progress import ChainState
from gapless.store import schema
from gapless.store.chains import Chains
from gapless.store.findings import journal
from gapless.store.records import ChainRow
from gapless.store.swaps import UNCHANGED, at

RESUME = "resume"
"""The key of a promotion's evidence under which the token stands that its last page, which ended the chain, gave for a stream."""

_REOPEN = (
    sa.update(schema.chain)
    .where(UNCHANGED, schema.chain.c.state == ChainState.ENDED.value)
    .values(
        state=ChainState.OPEN.value,
        page_token=sa.bindparam("new_page_token", type_=schema.chain.c.page_token.type),
    )
    .returning(schema.chain)
)


class Reopening(Chains):
    """Only what ended is opened, and only as it was when it was read; its bound and everything promoted stay as they are."""

    def resume_token(self, row: ChainRow) -> str | None:
        """The token that the page which ended the chain gave for going on with it; None where there is none."""
        column = schema.promotion.c
        wanted = (
            sa.select(column.evidence)
            .where(column.chain == row.chain, column.sequence + column.pages == row.sequence)
            .order_by(column.sequence.desc())
            .limit(1)
        )
        evidence = self._database.read(lambda connection: connection.execute(wanted).scalar_one_or_none())
        token = (evidence or {}).get(RESUME)
        return token if isinstance(token, str) else None

    def reopen(self, expected: ChainRow, token: str, reason: str) -> ChainRow | None:
        """Open the chain to be read on with `token`. Its row as it now stands; None: lost, or it has not ended."""
        parameters = {**at(expected), "new_page_token": token}

        def work(connection: Connection) -> ChainRow | None:
            row = connection.execute(_REOPEN, parameters).mappings().one_or_none()
            if row is None:
                return None
            detail = {"sequence": expected.sequence, "from": expected.page_token, "to": token}
            journal(connection, expected, "reopen", detail, reason, self._clock.now())
            return self._decoded(connection, row)

        def again(connection: Connection) -> ChainRow | None:
            """Where the first attempt did commit, the row differs from the expected one in token and state alone."""
            row = work(connection)
            if row is not None:
                return row
            current = self._chain(connection, expected.chain)
            mine = (expected.fencing_token, expected.sequence, token, ChainState.OPEN)
            now = (current.fencing_token, current.sequence, current.page_token, current.state)
            return current if now == mine else None

        return self._database.write(work, again)
