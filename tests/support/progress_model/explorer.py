"""Every interleaving of a world's atomic steps, breadth first; each state is judged once.

A state is the numbers of its parts in one integer, kept exactly: nothing is told apart by a hash alone. What a step reads and
writes is a few parts only, so that its outcome is worked out once for each combination of those.
"""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from progress_model.rules import Rules
from progress_model.source import CAP
from progress_model.state import Broken, Row, Scope
from progress_model.steps import (
    DECIDED,
    LOOKS,
    PUBLISH,
    ROWS,
    SCOPE,
    SOURCE,
    TRANSITS,
    WORKERS,
    Outcome,
    Steps,
)

BITS = 24
PARTS = 8


class Part:
    """The values that one part of a state has taken, by number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
            if number >> BITS:
                raise AssertionError("too many values for one part of a state")
        return number


@dataclass
class Explored:
    """What was found: `broken` with the shortest path to it, else every reachable state has been judged, unless `cut` short."""

    states: int
    steps: int
    reached: set[str]
    broken: Broken | None = None
    path: list[str] = field(default_factory=list)
    cut: bool = False
    stuck: int | None = None


class Explorer(Steps):
    """Breadth first, so that the first path to a broken invariant is a shortest one."""

    def __init__(self, rules: Rules, *, unlocked: bool = False) -> None:
        super().__init__(rules, unlocked=unlocked)
        self.parts = [Part() for _ in range(PARTS)]
        self.families: list[tuple[tuple[int, ...], Callable[..., Iterable[Outcome]]]] = [
            ((SOURCE,), self.source_steps),
            ((SOURCE, ROWS, TRANSITS, WORKERS), self.worker_steps),
            ((SCOPE, ROWS, PUBLISH, DECIDED), self.publish_steps),
            ((SOURCE, SCOPE, LOOKS), self.look_steps),
            ((SCOPE, ROWS, TRANSITS, LOOKS, DECIDED), self.observe_steps),
            ((SCOPE, ROWS, TRANSITS, DECIDED), self.cutover_steps),
        ]
        self.judged: set[tuple[int, int]] = set()

    def begin(self) -> list[Any]:
        """An epoch frozen from the source's first list, and nobody at work."""
        world = self.world
        source = world.begin()
        listing = world.listing(source)
        rows = tuple(
            Row(one.partition, 0, True, "", True, 0, 0, 0, 0, 0, one.seal, one.successors, one.parents, 0)
            for one in listing.entries
        )
        owed = 0
        for name in world.initial:
            owed |= world.owned(name, 0)
        certified = listing.list_bound != 0
        cap = listing.list_bound or CAP
        scope = Scope(1, 0, 0, 0, cap, certified, listing.list_bound, 1, 0, owed)
        return [source, scope, rows, None, (None,) * world.workers, None, (None,) * world.observers, None]

    def explore(self, most: int | None = None, *, to_the_end: bool = False) -> Explored:
        """Judge every state, at most `most`. `to_the_end`: also count the states from which the end is out of reach."""
        first = self._packed(self.begin())
        states = [first]
        index = {first: 0}
        parents = array("l", [-1])
        edges, begins = array("l"), array("l", [0])
        goals: list[int] = []
        caches: list[dict[Any, Any]] = [{} for _ in self.families]
        masks = [sum(((1 << BITS) - 1) << (BITS * part) for part in reads) for reads, _ in self.families]
        looked = list(zip(masks, caches, range(len(masks)), strict=True))
        steps = at = 0
        cut = False
        try:
            self._judge(first)
            while at < len(states):
                state = states[at]
                for mask, cache, family in looked:
                    key = state & mask
                    deltas = cache.get(key)
                    if deltas is None:
                        deltas = cache[key] = self._deltas(family, state)
                    for delta, judged in deltas:
                        after = state + delta
                        steps += 1
                        known = index.get(after)
                        if known is None:
                            known = index[after] = len(states)
                            states.append(after)
                            parents.append(at)
                            if judged:
                                self._judge(after)
                        if to_the_end:
                            edges.append(known)
                if to_the_end:
                    begins.append(len(edges))
                    if self._is_end(state):
                        goals.append(at)
                at += 1
                if most is not None and len(states) > most:
                    cut = True
                    break
        except Broken as broken:
            path = self._path(states, parents, at, broken)
            return Explored(len(states), steps, self.reached, broken, path)
        stuck = _out_of_reach(edges, begins, goals) if to_the_end and not cut else None
        return Explored(len(states), steps, self.reached, cut=cut, stuck=stuck)

    def _packed(self, values: list[Any]) -> int:
        return sum(self.parts[part].number(value) << (BITS * part) for part, value in enumerate(values))

    def _value(self, state: int, part: int) -> Any:
        return self.parts[part].values[state >> (BITS * part) & ((1 << BITS) - 1)]

    def _deltas(self, family: int, state: int) -> list[tuple[int, bool]]:
        return [(delta, judged) for delta, judged, _ in self._outcomes(family, state)]

    def _outcomes(self, family: int, state: int) -> list[tuple[int, bool, str]]:
        reads, steps = self.families[family]
        found = {}
        for label, changed in steps(*(self._value(state, part) for part in reads)):
            delta = 0
            for part, value in changed.items():
                old = state >> (BITS * part) & ((1 << BITS) - 1)
                delta += (self.parts[part].number(value) - old) << (BITS * part)
            if delta:
                found.setdefault(delta, (delta, SCOPE in changed or ROWS in changed, label))
        return list(found.values())

    def _path(self, states: list[int], parents: Any, at: int, broken: Broken) -> list[str]:
        """The steps to the state at `at`, and the one that broke."""
        chain = [at]
        while parents[chain[-1]] >= 0:
            chain.append(parents[chain[-1]])
        labels = []
        for was, now in zip(chain[::-1], chain[-2::-1], strict=False):
            delta = states[now] - states[was]
            labels.append(
                next(
                    label
                    for family in range(len(self.families))
                    for known, _, label in self._outcomes(family, states[was])
                    if known == delta
                )
            )
        last = states[-1]
        if len(states) > 1 and parents[-1] == at and at != len(states) - 1:
            for family in range(len(self.families)):
                try:
                    labels += [
                        label
                        for delta, _, label in self._outcomes(family, states[at])
                        if delta == last - states[at]
                    ]
                except Broken:
                    continue
        return [*labels, str(broken)]

    def _judge(self, state: int) -> None:
        mask = (1 << BITS) - 1
        pair = (state >> (BITS * SCOPE) & mask, state >> (BITS * ROWS) & mask)
        if pair not in self.judged:
            self.judged.add(pair)
            self.judge(self.parts[SCOPE].values[pair[0]], self.parts[ROWS].values[pair[1]])

    def _is_end(self, state: int) -> bool:
        scope, rows = self._value(state, SCOPE), self._value(state, ROWS)
        if scope.frontier < self.world.goal or self.rules.changing(scope, rows):
            return False
        listed = {one.partition for one in self.world.listing(self._value(state, SOURCE)).entries}
        gone = {row.partition for row in rows if row.closed == "sealed"}
        members = {row.partition for row in rows if row.member and not row.closed}
        return members == listed - gone and scope.observed == self.world.generation(
            self._value(state, SOURCE)
        )


def _out_of_reach(edges: Any, begins: Any, goals: list[int]) -> int:
    """How many states lead to no goal."""
    count = len(begins) - 1
    degree = array("l", bytes(8 * (count + 1)))
    for target in edges:
        degree[target + 1] += 1
    for n in range(count):
        degree[n + 1] += degree[n]
    place = array("l", degree)
    sources = array("l", bytes(8 * len(edges)))
    for n in range(count):
        for edge in range(begins[n], begins[n + 1]):
            target = edges[edge]
            sources[place[target]] = n
            place[target] += 1
    reached = bytearray(count)
    for goal in goals:
        reached[goal] = 1
    left = list(goals)
    while left:
        state = left.pop()
        for edge in range(degree[state], degree[state + 1]):
            before = sources[edge]
            if not reached[before]:
                reached[before] = 1
                left.append(before)
    return count - sum(reached)
