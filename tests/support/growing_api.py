"""An HTTP API whose partitions grow while they are read, with each way of telling that there is nothing further.

    GET /partitions                              {"partitions": ["eu", ...]}
    GET /partitions/{id}/events?cursor= &since=  {"events", "next_cursor", "more", "complete_through"}

`style` says how a page after which there is nothing tells so: `more` (false, and a cursor that can be asked again), `always` (an
empty page with a cursor), `null` (no cursor: the page itself, or what follows a position, is to be asked for again).

Everything at or below a partition's `certified` is final. Above it events may still appear, in any order; where a cursor is all
that tells what was given (`more`, `always`), only what is certified is shown.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from answering_api import AnsweringApi

Event = tuple[int, str]
"""(position, id)"""


@dataclass
class Growing:
    """One partition: its events in order, and how far they are final. `exclusive`: certified up to, and not including, that."""

    events: list[Event] = field(default_factory=list)
    certified: int = -1
    exclusive: bool = False

    def covers(self, position: int) -> bool:
        return position < self.certified or (position == self.certified and not self.exclusive)


@dataclass
class GrowingApi(AnsweringApi):
    """`before` hooks run ahead of each answer with its target; one that returns a status gives that instead. `inclusive`: `since`
    gives the events at that position, too. `dead` holds cursors that have expired. `hasty`: a full page leads on although not all
    of it is final; it is certified no further than the partition."""

    style: str = "null"
    page: int = 3
    inclusive: bool = False
    partitions: dict[str, Growing] = field(default_factory=dict)
    before: list[Callable[[str], int | None]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    dead: Callable[[int], bool] = lambda offset: False
    hidden: set[str] = field(default_factory=set)
    hasty: bool = False

    def __post_init__(self) -> None:
        self.lock = threading.RLock()

    def add(self, name: str, *positions: int) -> list[str]:
        """Events at these positions, in their place; their ids."""
        with self.lock:
            own = self.partitions.setdefault(name, Growing()).events
            ids = []
            for position in positions:
                ids.append(f"{name}-{position}-{len(own)}")
                own.insert(bisect_right(own, position, key=lambda event: event[0]), (position, ids[-1]))
            return ids

    def certify(self, name: str, through: int, *, exclusive: bool = False) -> None:
        """Everything through that position is there, and stays as it is."""
        with self.lock:
            partition = self.partitions.setdefault(name, Growing())
            partition.certified, partition.exclusive = through, exclusive

    def expected(self) -> dict[str, list[str]]:
        """Partition -> the ids of all its events that are final."""
        with self.lock:
            return {
                name: [event_id for position, event_id in one.events if one.covers(position)]
                for name, one in self.partitions.items()
            }

    def answer(self, target: str) -> tuple[int, dict[str, Any]]:
        for hook in list(self.before):
            status = hook(target)
            if status is not None:
                return status, {}
        with self.lock:
            self.asked.append(target)
            url = urlsplit(target)
            parts = [unquote(part) for part in url.path.strip("/").split("/")]
            if parts == ["partitions"]:
                return 200, {"partitions": [name for name in self.partitions if name not in self.hidden]}
            query = parse_qs(url.query)
            if len(parts) != 3 or parts[1] not in self.partitions:
                return 404, {}
            return self._events(self.partitions[parts[1]], query)

    def _events(self, partition: Growing, query: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        by_cursor = self.style != "null"
        shown = [event for event in partition.events if not by_cursor or partition.covers(event[0])]
        offset = 0
        if "cursor" in query:
            offset = int(query["cursor"][0].removeprefix("c"))
            if self.dead(offset):
                return 410, {"error": "expired"}
        elif "since" in query:
            since = int(query["since"][0])
            offset = sum(at < since or (at == since and not self.inclusive) for at, _ in shown)
        given = shown[offset : offset + self.page]
        bound: dict[str, object]
        final = all(partition.covers(position) for position, _ in given)
        leads_on = len(given) == self.page and (final or self.hasty) and offset + self.page < len(shown)
        after = f"c{offset + len(given)}"
        if leads_on and final:
            # More of the last position may follow.
            bound = {"position": given[-1][0], "inclusive": False}
        else:
            bound = {"position": partition.certified, "inclusive": not partition.exclusive}
        if partition.certified < 0:
            bound = {"position": None, "inclusive": True}
        cursor = after if leads_on or self.style in ("more", "always") else None
        return 200, {
            "events": [{"id": event_id, "position": position} for position, event_id in given],
            "next_cursor": cursor,
            "more": leads_on,
            "complete_through": bound,
        }


TAILS = {"more": "token", "always": "token", "null": "last_page"}


def source_block(api: GrowingApi, tail: str | None = None, **pages: Any) -> dict[str, Any]:
    """The `source:` block of a job file that reads it; `tail` where it is not the natural one of its style."""
    end: object = {"has_more": "more"} if api.style == "more" else "null"
    return {
        "base_url": api.url,
        "client": {"retry": {"attempts": 2, "backoff": "10ms"}},
        "partitions": {"http": {"path": "/partitions", "items": "partitions", "id": "@"}},
        "pages": {
            "path": "/partitions/{partition.id}/events",
            "records": "events",
            "next": {"type": "cursor", "from": "next_cursor", "param": "cursor", "end": end},
            "expired": {"status": [410], "restart": {"param": "since"}},
            "tail": tail or TAILS[api.style],
            **pages,
        },
        "event": {"id": "id", "position": "position"},
        "certificate": {
            "page": {"position": "complete_through.position", "inclusive": "complete_through.inclusive"}
        },
    }
