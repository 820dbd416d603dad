"""An HTTP API whose partitions and routing change as a test says, and which tells the truth about it.

An event belongs to one partition under each routing generation. `before` hooks run ahead of a request and may change anything,
as a real source does while it is being read:

    with ChangingApi({"r1": {"a": [1, 5], "b": [2, 80]}}, now=100) as api: ...

    GET /partitions                    {"partitions": [{"id", "sealed", "successors", "parents"}], "generation", "complete"}
    GET /partitions/{id}/events        {"events", "next_cursor", "complete_through", "generation"}
    GET /handoff/{from}/{to}           {"from", "to", "complete", "in_transit"}
"""

import json
import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from answering_api import AnsweringApi

Bound = tuple[int, bool]


def told(bound: Bound | None) -> dict[str, Any]:
    """A bound as the API writes it: null while there is none."""
    return {"position": None if bound is None else bound[0], "inclusive": bound is None or bound[1]}


@dataclass
class Listed:
    seal: Bound | None = None
    successors: list[str] | None = None
    parents: list[str] | None = None


@dataclass
class ChangingApi(AnsweringApi):
    """`routing`: generation -> partition -> positions of its events, whose ids are `e<position>`. `now`: everything through it
    is certified. `names_pages`: pages say under which generation they were answered."""

    routing: dict[str, dict[str, list[int]]]
    now: int
    page: int = 2
    names_pages: bool = True
    generation: str = ""
    list_complete: Bound | None = None
    handoffs: dict[tuple[str, str], tuple[Bound | None, list[int]]] = field(default_factory=dict)
    listed: dict[str, Listed] = field(default_factory=dict)
    before: list[Callable[[str, int], None]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.routing = deepcopy(self.routing)
        self.generation = self.generation or next(iter(self.routing))
        if not self.listed:
            self.listed = {name: Listed() for name in self.routing[self.generation]}
        self._lock = threading.RLock()

    def route(self, generation: str, routing: Mapping[str, list[int]]) -> None:
        """From now on the source routes so; who is listed is whoever has a place in it."""
        self.routing[generation] = {name: list(events) for name, events in routing.items()}
        self.generation = generation
        self.listed = {name: self.listed.get(name, Listed()) for name in routing}

    def answer(self, target: str) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.requests.append(target)
            for hook in list(self.before):
                hook(target, len(self.requests))
            url = urlsplit(target)
            parts = [unquote(part) for part in url.path.strip("/").split("/")]
            if parts == ["partitions"]:
                return 200, self._partitions()
            if len(parts) == 3 and parts[0] == "partitions" and parts[2] == "events":
                return self._events(parts[1], parse_qs(url.query).get("cursor", [""])[0])
            if len(parts) == 3 and parts[0] == "handoff":
                return self._handoff(parts[1], parts[2])
            return 404, {}

    def _partitions(self) -> dict[str, Any]:
        return {
            "partitions": [
                {
                    "id": name,
                    "sealed": told(one.seal),
                    "successors": one.successors,
                    "parents": one.parents,
                }
                for name, one in self.listed.items()
            ],
            "generation": self.generation,
            "complete": told(self.list_complete),
        }

    def _events(self, name: str, cursor: str) -> tuple[int, dict[str, Any]]:
        own = self.routing[self.generation].get(name)
        if own is None:
            return 404, {}
        after = int(cursor.split("-")[1]) if cursor else -1
        left = [at for at in sorted(own) if at > after and at <= self.now]
        page, more = left[: self.page], left[self.page :]
        answer = {
            "events": [event(at) for at in page],
            "next_cursor": f"after-{page[-1]}" if more else None,
            "complete_through": told((page[-1] if more else self.now, True)),
        }
        if not more and self.listed.get(name, Listed()).seal is None:
            # Nothing more for now: a partition that has not ended goes on from here.
            # (Each time by another token: one that came again with nothing new would never end.)
            answer["next_cursor"] = f"after-{max(self.now, after)}-{len(self.requests)}"
        if self.names_pages:
            answer["generation"] = self.generation
        return 200, answer

    def _handoff(self, before: str, after: str) -> tuple[int, dict[str, Any]]:
        if (before, after) not in self.handoffs:
            return 404, {}
        complete, moved = self.handoffs[before, after]
        return 200, {
            "from": before,
            "to": after,
            "complete": told(complete),
            "in_transit": [event(at) for at in moved],
        }


def event(at: int) -> dict[str, Any]:
    return {"id": f"e{at}", "position": at}


def ids(*positions: int) -> list[str]:
    """The ids of the events at these positions, in order."""
    return sorted(str(event(at)["id"]) for at in positions)


def job_text(
    api: ChangingApi, *, membership: str = "", stop: int | None = None, store: str = "sqlite:///progress.db"
) -> str:
    """A job file that reads it as far as it is certified now, or to `stop`, with every key of the list's proofs."""
    stop = api.now if stop is None else stop
    generation = "    routing_generation: generation\n" if api.names_pages else ""
    return f"""version: 1
scope: changing
domain: {{type: integer}}
source:
  type: http
  base_url: {api.url}
  client: {{retry: {{attempts: 2, backoff: 1ms, max: 2ms}}, connections: 2}}
  partitions:
    http:
      path: /partitions
      items: partitions
      id: id
      routing_generation: generation
      list_complete: {{position: complete.position, inclusive: complete.inclusive}}
      sealed: {{position: sealed.position, inclusive: sealed.inclusive}}
      successors: successors
      parents: parents
  pages:
    path: "/partitions/{{partition.id}}/events"
    records: events
    next: {{type: cursor, from: next_cursor, param: cursor, end: "null"}}
{generation}  event: {{id: id, position: position}}
  certificate:
    page: {{position: complete_through.position, inclusive: complete_through.inclusive}}
range: {{start: 0, stop: {stop}}}
{membership}
effect: {{type: parquet, path: out, target_rows: 3}}
store: {{url: {json.dumps(store)}}}
"""


HANDOFF = """membership:
  handoff:
    path: "/handoff/{from}/{to}"
    from: from
    to: to
    complete: {position: complete.position, inclusive: complete.inclusive}
    in_transit: in_transit
"""
MOVES = "membership: {moves: {guarantee: never_behind_certified, reason: documented}}\n"
HOLD = "membership: {on_change: hold}\n"
