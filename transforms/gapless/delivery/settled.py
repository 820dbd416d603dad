"""The settled id: through which id no open transaction can add a row any more, and who keeps it from rising.

Ids are given out in order, but transactions commit in any order: a row with a smaller id may become visible after one
with a larger id. Through the settled id S that cannot happen: every transaction that was given an id at or below S has
ended, so that a statement that begins later sees whatever it left. Only rows at or below S enter a delivery frontier.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from sqlalchemy.engine import Connection

WriterCode = Literal["open_writer", "prepared_transaction"]


@dataclass(frozen=True, slots=True)
class OpenWriter:
    """A transaction that was given an id and has not ended.

    `pid`, `user` and `application` name the session (`open_writer`); `gid` and `user` name a transaction that was prepared
    for a two-phase commit and waits for its second phase (`prepared_transaction`). `since`: when the transaction began, or
    was prepared; None where the role may not know (another role's session is told to members of `pg_read_all_stats`)."""

    code: WriterCode
    pid: int | None = None
    user: str | None = None
    application: str | None = None
    since: datetime | None = None
    gid: str | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The settled id, 0 where nothing is known yet, and who keeps it from rising: empty where nobody does.

    It holds for one `incarnation` of the server: a statement that uses `id` also selects the barrier's `incarnation_sql`,
    and what it found counts only where the two are equal. After a crash ids at or below `id` may be given out again."""

    id: int
    blockers: tuple[OpenWriter, ...]
    incarnation: str


class Barrier(Protocol):
    """Finds the settled id of one message log. One for each process and log serves all shards and threads."""

    @property
    def incarnation_sql(self) -> str:
        """An SQL expression of type text, without parameters: the incarnation of the server that runs the statement."""

    def settled(self, connection: Connection) -> Settled:
        """The settled id as far as it is known now: a few statements, and no waiting for any writer.

        A statement that begins afterwards sees every row at or below it. Raises MessageLogError where nothing may be
        concluded from what the server says: a standby, a connection inside a transaction, a sequence that was replaced."""
