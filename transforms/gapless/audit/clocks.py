"""When things are said to have happened, in the order in which they can have.

Law: what rests on something was stamped no earlier than it. Each machine stamps by its own clock, so that only what is further
out of order than such clocks are apart contradicts.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from gapless.audit.lists import LineageLists
from gapless.audit.publishes import LineagePublishes
from gapless.clock import instant_text

CLOCKS_APART: Final = timedelta(minutes=5)
"""How far the clocks of machines that share a store may differ before an audit says so."""


def precedes(earlier: datetime, later: datetime) -> bool:
    """Whether `earlier` lies before `later` by more than clocks are apart."""
    return later - earlier > CLOCKS_APART


def opening_faults(
    opened: datetime,
    number: int,
    observation: int | None,
    lists: LineageLists,
    published: LineagePublishes,
    before: tuple[int, datetime, LineagePublishes] | None,
) -> Iterator[str]:
    """What contradicts that membership epoch `number` was opened then, on that list (None: on its lineage's first one).

    `before` is the epoch before it, of whatever lineage: its number, when it was opened, and what its lineage published."""
    said = f"it was opened at {instant_text(opened)}"
    if observation is None:
        # One stamp stands in both rows.
        if lists.seen and opened != lists.seen[0]:
            yield f"{said}, and not when its list was seen: {instant_text(lists.seen[0])}"
    else:
        seen, following = lists.seen_at(observation), lists.seen_at(observation + 1)
        if seen is not None and precedes(opened, seen):
            yield f"{said}; its list was seen at {instant_text(seen)}"
        if following is not None and precedes(following, opened):
            yield f"{said}; a later list was seen at {instant_text(following)}"
    first, _ = published.moments(number)
    if first is not None and precedes(first, opened):
        yield f"{said}; a frontier was published in it at {instant_text(first)}"
    if before is None:
        return
    earlier, its_opening, its_publishes = before
    if precedes(opened, its_opening):
        yield f"{said}; membership epoch {earlier} before it at {instant_text(its_opening)}"
    _, last = its_publishes.moments(earlier)
    if last is not None and precedes(opened, last):
        yield f"{said}; a frontier was published in the one before it at {instant_text(last)}"
