"""What a state of the model is made of. Each part is a small value that is kept once and known by its number."""

from typing import NamedTuple

from progress_model.source import Listing, Page

TRANSIT = 90
"""Stands for a chain where a worker has the events in transit in hand."""


class Row(NamedTuple):
    """The durable row of a chain. `closed`: empty, `sealed` or `replaced` (also dropped). `events` are those in its files."""

    partition: str
    generation: int
    member: bool
    closed: str
    listed: bool
    fence: int
    sequence: int
    token: int
    bound: int
    read_to: int
    seal: int
    successors: tuple[str, ...] | None
    parents: tuple[str, ...] | None
    events: int


class Scope(NamedTuple):
    """The scope's durable row. `seen`: the generations observed; `carried`: events in transit that count; `owed`: events that
    were the members', or lie with who carries on from one that left, in some epoch. Generations by number."""

    epoch: int
    generation: int
    observed: int
    frontier: int
    cap: int
    certified: bool
    list_bound: int
    seen: int
    carried: int
    owed: int


class Transit(NamedTuple):
    """The chain of events in transit from one generation to another. `ended`: each has its outcome."""

    before: int
    after: int
    complete: int
    ended: bool
    events: int


class Worker(NamedTuple):
    """What one worker has in hand: the row it expects, and pages from there on. `phase`: taken, fetched (the last page is not
    settled), settled, confirmed. `confirmed` is 1 + the generation that the pages carry, or that was read after the last one;
    0: not known."""

    chain: int
    fence: int
    generation: int
    sequence: int
    token: int
    pages: tuple[Page, ...]
    phase: str
    confirmed: int


class PendingPublish(NamedTuple):
    """A publish between its snapshot and its lock: the epoch it read, and the minimum of that epoch's members."""

    epoch: int
    minimum: int


class Look(NamedTuple):
    """A list that was read and is not noted yet, and the epoch that stood before it was read."""

    listing: Listing
    epoch: int


INVARIANTS = {
    1: "whatever a published frontier covers has a durable outcome",
    2: "an event lies in the data set once",
    3: "bounds and frontiers never go back",
    4: "the frontier is at most every member's bound",
    5: "all members are read under the epoch's routing generation",
    6: "who enters and who leaves is proved, and the cap holds the frontier until then",
}


class Broken(Exception):
    """One of INVARIANTS does not hold, by its number."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(f"{what}; but {INVARIANTS[number]}")
        self.number = number
