"""Runs: each gets a number, its fencing token, that no run has had before or will ever get again."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.errors import StoreError
from gapless.store import schema
from gapless.store.base import StoreBase, insert_new


class Runs(StoreBase):
    """Numbering runs, and signs of life."""

    def begin_run(self, scope: str, run_id: str, engine: str) -> int:
        """The run's number. The same `run_id` gets the same one, however often and by however many it is asked for.

        Raises UnknownScope; StoreError where the run id is already one of another scope."""
        column = schema.run.c
        now = self._clock.now()

        def work(connection: Connection) -> int:
            self._scope_row(connection, scope)
            known = sa.select(column.number, column.scope).where(column.run_id == run_id)
            row = connection.execute(known).one_or_none()
            if row is None:
                begin = insert_new(connection, schema.run).values(
                    run_id=run_id,
                    scope=scope,
                    engine=engine,
                    state="running",
                    started_at=now,
                    heartbeat_at=now,
                )
                connection.execute(begin)
                row = connection.execute(known).one()
            number, owner = row
            if owner != scope:
                raise StoreError(
                    f"the run id {run_id!r} belongs to scope {owner!r}",
                    where=self._database.where,
                    remedy="give every submission a run id of its own",
                )
            return int(number)

        return self._database.write(work)

    def heartbeat(self, run_id: str) -> None:
        """Say that the run is alive. Raises StoreError where there is no such run."""
        self._update_run(run_id, heartbeat_at=self._clock.now())

    def end_run(self, run_id: str, state: str) -> None:
        """Say how the run ended. Raises StoreError where there is no such run."""
        self._update_run(run_id, state=state, heartbeat_at=self._clock.now())

    def _update_run(self, run_id: str, **values: object) -> None:
        def work(connection: Connection) -> None:
            update = sa.update(schema.run).where(schema.run.c.run_id == run_id).values(values)
            if connection.execute(update).rowcount == 0:
                raise StoreError(f"there is no run {run_id!r}", where=self._database.where)

        self._database.write(work)
