"""What the polls of a stream have seen at the tail of each chain, so that an event which has come late is told from one that was
given before.

It belongs to a stream's view of its source, not to a session: chains change sessions, and what one has seen another has to know.
It only adds to what is noticed. Whoever remembers nothing takes an event behind the bound for one that was given."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from gapless.progress import Position

MOST_IDS = 500_000
"""Event ids that one process remembers, over all chains; those of the chain that was polled longest ago go first."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the poll that led to a page token saw: every event on the page, `ids`, and in the chain from position `whole_from` on
    (None: on that page)."""

    ids: frozenset[str]
    whole_from: Position | None

    def missed(self, event_id: str, position: Position) -> bool:
        """Whether the event was not there, where it would have been seen."""
        whole = self.whole_from is None or position >= self.whole_from  # type: ignore[operator]
        return whole and event_id not in self.ids


class TailMemory:
    """Of each chain the last poll, by the token that it led to, and the one before, until that token is promoted: a page that is
    not is fetched again. Thread-safe; a copy in another process begins empty.

    >>> memory = TailMemory()
    >>> memory.polled("eu", None, "t1", Seen(frozenset({"a"}), None))
    >>> memory.polled("eu", "t1", "t2", Seen(frozenset({"a", "b"}), None))
    >>> [memory.before("eu", token) and len(memory.before("eu", token).ids) for token in (None, "t1", "t2")]
    [None, 1, 2]
    """

    def __init__(self, most_ids: int = MOST_IDS) -> None:
        self._most_ids = most_ids
        self._chains: OrderedDict[str, dict[str | None, Seen]] = OrderedDict()
        self._ids = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["TailMemory"], tuple[int]]:
        return TailMemory, (self._most_ids,)

    def before(self, partition: str, asked: str | None) -> Seen | None:
        """What the poll that led to the token `asked` saw; None where nobody remembers."""
        with self._lock:
            return self._chains.get(partition, {}).get(asked)

    def polled(self, partition: str, asked: str | None, token: str | None, seen: Seen | None) -> None:
        """A poll with the token `asked` has led to `token` and saw that; None: it saw nothing that is of use later."""
        with self._lock:
            known = self._chains.pop(partition, {})
            self._ids -= _weight(known)
            kept = {asked: known[asked]} if asked in known else {}
            if seen is not None:
                kept[token] = seen
            if kept:
                self._chains[partition] = kept
                self._ids += _weight(kept)
            while self._ids > self._most_ids:
                self._ids -= _weight(self._chains.popitem(last=False)[1])


def _weight(polls: dict[str | None, Seen]) -> int:
    return sum(len(seen.ids) + 1 for seen in polls.values())
