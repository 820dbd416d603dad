"""What a streaming reader of a chain carries from one call to the next: where it reads, and since when it waits for what.

Nothing rests on it. Where it is lost, or does not fit the chain's durable row any more, the reader goes on from the row.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gapless.settling.emitting import ReadingPoint
from gapless.settling.retrying import LONGEST_WAIT
from gapless.store.records import ChainRow

STUCK_SECONDS = 30.0
"""Pages that stay open for so long without the row getting on are read again, from the committed token; each time after twice as
long. Whatever held them up may have lost them."""

_STEP = 8
_START = bytes(_STEP)


@dataclass(frozen=True, slots=True)
class StreamState:
    """`point` is where the reader reads on; None: at the committed token. `path` are the digests of the tokens with which the
    pages still open began, the oldest first, and `generation` is the routing generation they were read under.

    `idle` counts the polls in a row that brought nothing. `seen` is the committed sequence, and `since` when it was met first
    while pages were open; `rereads` counts how often they have been read again since the row got on. `done`: nothing is left."""

    point: ReadingPoint | None = None
    path: bytes = b""
    generation: str = ""
    idle: int = 0
    seen: int = -1
    since: datetime | None = None
    rereads: int = 0
    done: bool = False

    @property
    def open_pages(self) -> int:
        """How many pages are emitted and not known to be promoted."""
        return len(self.path) // _STEP

    def emitted(self, start_tokens: Iterable[str | None], point: ReadingPoint) -> "StreamState":
        """After pages that began with these tokens went out, up to `point`."""
        return replace(self, point=point, path=self.path + b"".join(map(_digest, start_tokens)), idle=0)

    def met(self, row: ChainRow, now: datetime) -> "StreamState":
        """The state over the chain's row as it is now: what was promoted is open no more.

        It begins anew at the committed token where the row does not stand on this reader's path, where its generation is
        another, and where it has stood still for too long with pages open."""
        point = self.point
        if point is None or row.generation != self.generation:
            return self._anew(row, now, rereads=0)
        promoted = row.sequence - (point.number - self.open_pages)
        if not 0 <= promoted <= self.open_pages:
            return self._anew(row, now, rereads=0)
        path = self.path[promoted * _STEP :]
        passes = path[:_STEP] if path else _digest(point.token)
        if passes != _digest(row.page_token) and (path or not point.ended):
            return self._anew(row, now, rereads=0)
        if not path or row.sequence != self.seen or self.since is None:
            rereads = 0 if row.sequence != self.seen else self.rereads
            return replace(self, path=path, seen=row.sequence, since=now, rereads=rereads)
        if now - self.since >= self._patience():
            return self._anew(row, now, rereads=self.rereads + 1)
        return replace(self, path=path)

    def _anew(self, row: ChainRow, now: datetime, rereads: int) -> "StreamState":
        return StreamState(
            point=ReadingPoint.of(row),
            generation=row.generation,
            idle=self.idle,
            seen=row.sequence,
            since=now,
            rereads=rereads,
        )

    def _patience(self) -> timedelta:
        return timedelta(seconds=min(LONGEST_WAIT, STUCK_SECONDS * 2 ** min(self.rereads, 16)))


def _digest(token: str | None) -> bytes:
    """Enough to tell a token from others of its chain."""
    return _START if token is None else hashlib.sha256(token.encode()).digest()[:_STEP]
