"""A changing API that changes by itself: it splits, merges, renames, hides, adds and reroutes partitions while it is being read.

Everything is drawn from a seed, by the number of requests. What it says stays true: a certificate holds every event there is
through its bound, a sealed partition gets no more, and events move only as the proof that is offered allows. The events and who
owned them under which generation are known to the test.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from changing_api import ChangingApi, Listed, event

MOST_PARTITIONS = 7


@dataclass
class RestlessApi(ChangingApi):
    """`proof` is what the source offers when its routing changes: `reading again` (nothing, so that any event may move), `moves`
    (only events nobody has certified) or `handoff`. `certified_list`: it certifies its list, so that nobody ever joins behind."""

    seed: int = 1
    proof: str = "reading again"
    certified_list: bool = False
    last: int = 160
    rate: float = 0.15
    quiet: bool = False
    owners: dict[str, dict[int, str]] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    _hidden: set[str] = field(default_factory=set)
    _certified: dict[str, int] = field(default_factory=dict)
    _ends: dict[str, int] = field(default_factory=dict)
    _named: int = 0
    _next: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._draw = random.Random(self.seed)
        self._next = 2 * (self.now // 2 + 1)
        self.owners[self.generation] = {
            at: name for name, events in self.routing[self.generation].items() for at in events
        }

    @property
    def _own(self) -> dict[int, str]:
        return self.owners[self.generation]

    def answer(self, target: str) -> tuple[int, dict[str, Any]]:
        with self._lock:
            if not self.quiet:
                self._advance()
                if self._draw.random() < self.rate:
                    self._change()
            return super().answer(target)

    def calm(self) -> None:
        """No more changes; whatever is to come has come, and everybody who has not ended is listed."""
        with self._lock:
            self.quiet = True
            self._hidden.clear()
            self.now = self.last
            self._assign()
            self._follow()

    def no_more_events(self) -> None:
        """None but those the test makes."""
        self._next = self.last + 1000

    def _advance(self) -> None:
        self.now = min(self.last, self.now + self._draw.choice((0, 0, 1, 2)))
        self._assign()
        self._follow()

    def _assign(self) -> None:
        """New events, at even positions, go to whoever is open."""
        opened = self._opened()
        while self._next <= self.now:
            self._own[self._next] = self._draw.choice(opened)
            self._next += 2

    def _follow(self) -> None:
        routing: dict[str, list[int]] = {name: [] for name in self.listed}
        for at, name in self._own.items():
            routing.setdefault(name, []).append(at)
        self.routing[self.generation] = routing
        whole = self.certified_list and not self._hidden
        self.list_complete = (self.now, True) if whole else None

    def _opened(self) -> list[str]:
        return [name for name, one in self.listed.items() if one.seal is None]

    def _new_name(self) -> str:
        self._named += 1
        return f"n{self._named}"

    def _change(self) -> None:
        changes = [self._split, self._merge, self._rename, self._join, self._hide, self._show, self._reroute]
        change = self._draw.choice(changes)
        if change():
            self.changes.append(f"{len(self.requests)}: {change.__name__.strip('_')} at {self.now}")
            self._follow()

    def _end(self, parents: list[str], children: list[str]) -> None:
        for name in parents:
            self.listed[name].seal = (self.now, True)
            self.listed[name].successors = children
        for name in children:
            self.listed[name] = Listed(parents=list(parents))

    def _visible(self) -> list[str]:
        return [name for name in self._opened() if name not in self._hidden]

    def _split(self) -> bool:
        if not self._visible() or len(self._opened()) >= MOST_PARTITIONS:
            return False
        self._end([self._draw.choice(self._visible())], [self._new_name(), self._new_name()])
        return True

    def _merge(self) -> bool:
        if len(self._visible()) < 3:
            return False
        self._end(self._draw.sample(self._visible(), 2), [self._new_name()])
        return True

    def _rename(self) -> bool:
        if not self._visible():
            return False
        self._end([self._draw.choice(self._visible())], [self._new_name()])
        return True

    def _join(self) -> bool:
        if len(self._opened()) >= MOST_PARTITIONS:
            return False
        name = self._new_name()
        self.listed[name] = Listed()
        if not self.certified_list:
            # It was there all the time, with events that nobody knew of.
            for at in range(1, self.now + 1, 2):
                if at not in self._own and self._draw.random() < 0.2:
                    self._own[at] = name
        return True

    def _hide(self) -> bool:
        """The list comes without one of them, which has not ended."""
        if len(self._visible()) < 2:
            return False
        self._hidden.add(self._draw.choice(self._visible()))
        return True

    def _show(self) -> bool:
        self._hidden.clear()
        return True

    def _reroute(self) -> bool:
        visible = self._visible()
        if len(visible) < 2:
            return False
        before, own = self.generation, dict(self._own)
        self._ends[before] = self.now
        self.generation = f"r{len(self.owners) + 1}"
        for at, name in own.items():
            if name not in visible or self._draw.random() < 0.7:
                continue
            heir = self._draw.choice(visible)
            if self.proof != "moves" or at > max(
                self._certified.get(name, -1), self._certified.get(heir, -1)
            ):
                own[at] = heir
        self.owners[self.generation] = own
        return True

    def _partitions(self) -> dict[str, Any]:
        answer = super()._partitions()
        answer["partitions"] = [one for one in answer["partitions"] if one["id"] not in self._hidden]
        return answer

    def _events(self, name: str, cursor: str) -> tuple[int, dict[str, Any]]:
        status, answer = super()._events(name, cursor)
        if status == 200:
            through = answer["complete_through"]["position"]
            self._certified[name] = max(through, self._certified.get(name, -1))
        return status, answer

    def _handoff(self, before: str, after: str) -> tuple[int, dict[str, Any]]:
        old, new, end = self.owners[before], self.owners[after], self._ends[before]
        moved = [at for at in sorted(old) if at <= end and old[at] != new.get(at)]
        return 200, {
            "from": before,
            "to": after,
            "complete": {"position": end, "inclusive": True},
            "in_transit": [event(at) for at in moved],
        }

    def expected(self) -> list[str]:
        """The ids of all events there are."""
        with self._lock:
            return sorted(str(event(at)["id"]) for at in self._own)

    def promised(self, generation: str, names: Collection[str]) -> dict[str, int]:
        """Event id -> position of everything that these partitions own under `generation`."""
        with self._lock:
            own = self.owners[generation].items()
            return {str(event(at)["id"]): at for at, name in own if name in names}
