"""A page: what one fetch attempt returned. Its events, next token, certificate and generation belong together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gapless.progress import Assertion, Bound, Certificate, Position

Row = Mapping[str, object]
"""One event's data as the source sent it, decoded without loss (integers of any size, no float in place of an integer)."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One independently paginated member of a scope, as the source's list names it.

    `fields` are what the source's list says of it besides the id; path templates may use them. `transit` stands for no member
    but for the events in transit between the routing generations `fields` names, `from` and `to`."""

    id: str
    fields: Mapping[str, object]
    transit: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One fetch attempt. `ids`, `positions` and `rows` run in parallel, in the source's order.

    `start_token` is the token the attempt was asked with (None: the chain's start). `next_token` is None exactly where
    `end` is True: the source stated that the chain ends here. `certificate` is what the source certified with this very
    attempt, an `Assertion` where the operator assumed it, None where nothing was said. `generation` is the routing
    generation the page itself names, None where it names none. `overlap` is set where the chain was restarted after its
    token had expired: what it covers may have been given before.

    `caught_up`: the source has nothing further at present, and the next token is where to ask again, later. It may be the start
    token, also None, where the page brings nothing. `resume`, on a page that ends its chain for a bounded read: where a stream
    asks again; None where the end is one for good, or nobody knows. `asked_again`: events above its certificate were or will be
    given although others may still appear in front of them, which a later read of the page then gives."""

    start_token: str | None
    next_token: str | None
    end: bool
    ids: Sequence[str]
    positions: Sequence[Position]
    rows: Sequence[Row]
    certificate: Certificate | Assertion | None = None
    generation: str | None = None
    overlap: Bound | None = None
    caught_up: bool = False
    resume: str | None = None
    asked_again: bool = False

    def __len__(self) -> int:
        return len(self.ids)
