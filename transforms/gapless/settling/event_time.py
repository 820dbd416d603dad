"""Positions as event time: microseconds since 1970, rounded down, in domains whose positions are instants or begin with one."""

from gapless.progress import Domain, ListDomain, Position, TimestampDomain

_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


def event_micros(domain: Domain, position: Position) -> int | None:
    """The event time of a position; None where the domain has none.

    Law: p <= q implies event_micros(d, p) <= event_micros(d, q). So whatever is still to come behind a certified bound at `p`
    has no earlier event time than `p` has.

    >>> event_micros(TimestampDomain("ns"), -1), event_micros(TimestampDomain("ms"), 5)
    (-1, 5000)
    >>> from gapless.progress import TextDomain
    >>> event_micros(ListDomain((TimestampDomain("s"), TextDomain())), (2, "b")), event_micros(TextDomain(), "b")
    (2000000, None)
    """
    while isinstance(domain, ListDomain) and isinstance(position, tuple):
        domain, position = domain.items[0], position[0]
    if not isinstance(domain, TimestampDomain) or not isinstance(position, int):
        return None
    times, parts = _MICROS[domain.precision]
    return position * times // parts
