"""Runs: each gets a number, its fencing token, that no run has had before or will ever get again."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.errors import StoreError
from gapless.store import schema
from gapless.store.base import StoreBase, insert_new
from gapless.store.records import FAILED, FINISHED, RUNNING, STOPPED


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
                    state=RUNNING,
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

    def require_run(self, scope: str, run_id: str, number: int) -> None:
        """Raises StoreError where the store has numbered no such run of the scope: it was planned in another one."""
        column = schema.run.c
        known = sa.select(column.scope, column.number).where(column.run_id == run_id)
        row = self._database.read(lambda connection: connection.execute(known).one_or_none())
        if row is None or tuple(row) != (scope, number):
            raise StoreError(
                f"run {number} of scope {scope!r} was planned in another store: its chains are none of this one",
                where=self._database.where,
                remedy="give all transforms of a scope the store that PlanPartitions has",
            )

    def heartbeat(self, run_id: str) -> bool:
        """Say that the run is alive; whether it has not been ended. One that was ended stays so, however late this comes.

        Raises StoreError where there is no such run."""
        column, now = schema.run.c, self._clock.now()

        def work(connection: Connection) -> bool:
            alive = sa.and_(column.run_id == run_id, column.state == RUNNING)
            # Clocks of several machines differ: the latest sign of life stays.
            newer = sa.update(schema.run).where(alive, column.heartbeat_at < now).values(heartbeat_at=now)
            if connection.execute(newer).rowcount:
                return True
            return self._state(connection, run_id) == RUNNING

        return self._database.write(work)

    def end_run(self, run_id: str, state: str) -> None:
        """Say how the run ended: the last word, of whoever started it. Raises StoreError where there is no such run."""
        self._set_state(run_id, _one_of_the_ends(state))

    def finish_run(self, run_id: str) -> None:
        """The same of a run that has come to its end by itself, said by its pipeline: changes nothing where it has ended already.

        Raises StoreError where there is no such run."""
        self._set_state(run_id, FINISHED, only_if=RUNNING)

    def resume_run(self, run_id: str) -> None:
        """The run reads further after its pipeline has ended, by another one. Raises StoreError where there is no such run."""
        self._set_state(run_id, RUNNING)

    def _set_state(self, run_id: str, state: str, only_if: str | None = None) -> None:
        column = schema.run.c
        change = sa.update(schema.run).where(column.run_id == run_id)
        if only_if is not None:
            change = change.where(column.state == only_if)
        change = change.values(state=state, heartbeat_at=self._clock.now())

        def work(connection: Connection) -> None:
            if connection.execute(change).rowcount == 0:
                self._state(connection, run_id)

        self._database.write(work)

    def _state(self, connection: Connection, run_id: str) -> str:
        known = sa.select(schema.run.c.state).where(schema.run.c.run_id == run_id)
        state = connection.execute(known).scalar_one_or_none()
        if state is None:
            raise StoreError(f"there is no run {run_id!r}", where=self._database.where)
        return str(state)


def _one_of_the_ends(state: str) -> str:
    if state not in (FINISHED, STOPPED, FAILED):
        raise ValueError(f"a run does not end as {state!r}")
    return state
