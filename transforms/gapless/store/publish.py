"""Publishing: one monotonic UPDATE of the scope's row, the minimum recomputed by index from the members' durable rows."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.store import schema
from gapless.store.base import StoreBase
from gapless.store.records import FrontierRow
from gapless.store.rows import frontier_row
from gapless.store.swaps import PUBLISH


class Publishing(StoreBase):
    """The only place where a frontier moves."""

    def publish(self, scope: str, epoch: int) -> FrontierRow | None:
        """Publish the frontier that the members of `epoch` support now, capped. The row where it moved, else None: nothing new,
        a member without a bound, the cap reached, or another epoch (then the caller rereads the scope).

        The frontier is `asserted` from the first move that rests on a member's assertion. Safe against a concurrent cutover:
        frontier and epoch are one row, and what waits for its lock checks the epoch again."""
        now = self._clock.now()
        parameters = {"at_scope": scope, "at_epoch": epoch, "new_published_at": now}

        def work(connection: Connection) -> FrontierRow | None:
            row = connection.execute(PUBLISH, parameters).mappings().one_or_none()
            if row is None:
                return None
            history = sa.insert(schema.frontier_history).values(
                scope=scope,
                lineage=row["lineage"],
                epoch=row["epoch"],
                frontier=row["frontier"],
                basis=row["basis"],
                published_at=now,
            )
            connection.execute(history)
            return frontier_row(row)

        def again(connection: Connection) -> FrontierRow | None:
            """Where the first attempt did commit, this one finds nothing to move, and the row tells by its time."""
            moved = work(connection)
            if moved is not None:
                return moved
            row = self._scope_row(connection, scope)
            return frontier_row(row) if row["published_at"] == now and row["epoch"] == epoch else None

        return self._database.write(work, again)
