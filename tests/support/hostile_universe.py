"""Which events the hostile API has, and what it may be told to do: a function of the seed, so that a checker recomputes it.

Rates are probabilities for each request:

    seed, partitions, events        the universe: `events` in each partition
    page                            at most so many events a page
    ties                            how often an event shares the position of the one before it
    token                           the bearer token that is asked for; empty: none
    rate_429, rate_500, rate_503    these statuses, with Retry-After where `retry_after` (seconds) is not negative
    rate_hang, hang                 no answer for `hang` seconds: give the client a shorter read time-out
    rate_truncated, rate_html       a body that breaks off (announced longer, or chunked); an HTML page with status 200
    rate_length                     a Content-Length shorter than the body
    rate_drop                       the connection is closed without an answer
    rate_expired                    the token dies: 410, from then on; `since` restarts (exclusive or inclusive, drawn)
    rate_empty                      a page without events, that goes on; also after the last event
    rate_uncertified                `complete_through` is null; what it would have said, a later page says
    rate_duplicate                  an event twice on the page, and the last of the page before again on this one
    stall, stall_after              number of a partition that answers 503 from its n-th event on, until /release; -1: none
    gate                            nothing is answered from each partition's n-th event on, until /release; -1: everything is
    visible                         so many events of each partition are there at first, and no chain ends before /grow has shown
                                    all of them: the last page there is leads to itself, or to another like it; -1: all are there
    pause                           seconds that each page takes
    break_promise                   none, or one kept promise less, in the middle of each partition: event_behind_bound,
                                    certificate_went_back, certificate_behind_events

As long as `break_promise` is none: certificates are true, never go back along a chain, and never lie behind the events of
their own page; the last page of a partition certifies through `END`."""

import base64
import random
from dataclasses import dataclass

END = 10**9
"""Certified at the end of every partition, inclusive; above every position."""


@dataclass(frozen=True)
class Knobs:
    seed: int = 1
    partitions: int = 4
    events: int = 300
    page: int = 40
    ties: float = 0.3
    token: str = ""
    rate_429: float = 0.0
    rate_500: float = 0.0
    rate_503: float = 0.0
    retry_after: int = 0
    rate_hang: float = 0.0
    hang: float = 1.0
    rate_truncated: float = 0.0
    rate_html: float = 0.0
    rate_length: float = 0.0
    rate_drop: float = 0.0
    rate_expired: float = 0.0
    rate_empty: float = 0.0
    rate_uncertified: float = 0.0
    rate_duplicate: float = 0.0
    stall: int = -1
    stall_after: int = 0
    gate: int = -1
    visible: int = -1
    pause: float = 0.0
    break_promise: str = "none"


HOSTILE = {
    "rate_429": 0.02,
    "rate_500": 0.03,
    "rate_503": 0.03,
    "rate_truncated": 0.03,
    "rate_html": 0.03,
    "rate_length": 0.02,
    "rate_drop": 0.02,
    "rate_expired": 0.02,
    "rate_empty": 0.15,
    "rate_uncertified": 0.3,
    "rate_duplicate": 0.3,
}
"""Everything at once but hanging, which costs time: `Knobs(seed=7, **HOSTILE)`, `--hostile` on the command
line."""


def partition_names(knobs: Knobs) -> list[str]:
    """Names that a URL has to encode are among them."""
    return [f"p{n}" if n % 3 else f"p{n} ä/{n}?" for n in range(knobs.partitions)]


def token_text(name: str, index: int, flag: bool, serial: int) -> str:
    """The cursor of the page that begins with event `index` of a partition; `serial` makes it another one each time."""
    return base64.urlsafe_b64encode(f"{name}|{index}|{int(flag)}|{serial}".encode()).decode()


def index_of(cursor: str) -> int:
    """How many events of its partition lie before the page of that cursor."""
    return int(base64.urlsafe_b64decode(cursor).decode().rsplit("|", 3)[1])


def universe(knobs: Knobs) -> dict[str, list[dict[str, object]]]:
    """Every event there is, by partition, in source order: `id`, `position` (ascending, with ties), and
    hostile data."""
    return {name: _events(knobs, n, name) for n, name in enumerate(partition_names(knobs))}


def _events(knobs: Knobs, number: int, name: str) -> list[dict[str, object]]:
    draw = random.Random(f"{knobs.seed}/{number}")
    position = draw.randrange(10)
    events = []
    for n in range(knobs.events):
        if n and draw.random() >= knobs.ties:
            position += draw.choice((1, 1, 2, 7, 40))
        event: dict[str, object] = {"id": f"{name}-{n}", "position": position, "n": n}
        event.update(_hostile_fields(draw, n))
        events.append(event)
    return events


def _hostile_fields(draw: random.Random, n: int) -> dict[str, object]:
    """Nulls first, keys that come and go, several types in one column, integers beyond 64 bits."""
    data: dict[str, object] = {"amount": None if n < 5 else draw.randrange(10**6)}
    if draw.random() < 0.1:
        data["big"] = draw.randrange(2**70)
    if draw.random() < 0.1:
        data["mixed"] = draw.choice((1, "eins", True, None, 1.5, [1, "a"], {"k": 1}))
    if draw.random() < 0.05:
        data[f"rare_{n}"] = "ümläut\u2028"
    return data


def job_source(url: str, knobs: Knobs) -> dict[str, object]:
    """The `source:` block of a job file that reads this API; the bearer token comes from HOSTILE_TOKEN."""
    return {
        "type": "http",
        "base_url": url,
        "auth": {"type": "bearer", "token": {"env": "HOSTILE_TOKEN"}} if knobs.token else {"type": "none"},
        "client": {
            "timeout": {"connect": "5s", "read": "500ms" if knobs.rate_hang else "10s"},
            "retry": {"attempts": 12, "backoff": "1ms", "max": "20ms"},
        },
        "partitions": {
            "http": {
                "path": "/partitions",
                "items": "partitions",
                "id": "id",
                "routing_generation": "routing_generation",
            }
        },
        "pages": {
            "path": "/partitions/{partition.id}/events",
            "records": "events",
            "next": {"type": "cursor", "from": "next_cursor", "param": "cursor", "end": "null"},
            "expired": {"status": [410], "restart": {"param": "since"}},
            **({} if knobs.visible < 0 else {"tail": "token"}),
        },
        "event": {"id": "id", "position": "position"},
        "certificate": {
            "page": {"position": "complete_through.position", "inclusive": "complete_through.inclusive"}
        },
    }
