"""What a chain waits for while pages of it are open, and the outcomes that a later run need not repeat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gapless.progress import Terminal
from gapless.store.records import Blocker, DeadLetter
from gapless.tracking.chain_tracking import ChainTracking

MOST_RECEIPTS: Final = 50_000
"""So many outcomes of open pages are made durable by themselves; what is beyond comes to the pipeline again in the next run."""

MOST_PARTS: Final = 8
"""So many parts of an outcome are named."""

_NO_PAGE: Final = Blocker(
    code="unsettled_event",
    hint="later pages have come, but not the one that follows what is promoted: TrackPartitions needs all of ReadPages' pages",
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """`blocker` says what the chain waits for. `receipts` are outcomes of open pages that are not in the store yet, with their
    dead letters."""

    blocker: Blocker
    receipts: Mapping[str, str] = field(default_factory=dict)
    letters: Sequence[DeadLetter] = ()


def waiting_of(tracking: ChainTracking) -> Waiting | None:
    """What keeps a chain from getting on: a page at its committed token lacks an outcome, or is lacking itself; else None."""
    found = tracking.waits_for()
    if found is None:
        return Waiting(_NO_PAGE) if tracking.open_pages and not tracking.has_head() else None
    page, missing = found
    event, position = missing[0]
    more = f" (and {len(missing) - 1} more events of its page)" if len(missing) > 1 else ""
    blocker = Blocker(
        code="unsettled_event",
        hint=f"{_said(tracking.parts_of(page, event))}{more}",
        event_id=event,
        position=position,
    )
    receipts, letters = _receipts(tracking)
    return Waiting(blocker, receipts, letters)


def _said(parts: Sequence[tuple[int, int]]) -> str:
    """What has been said of an event that has no outcome.

    >>> _said([]), _said([(0, 2), (1, 3)])
    ('the pipeline has said no outcome of it', 'of its outcome the pipeline has only said part 0 of 2, 1 of 3')
    """
    if not parts:
        return "the pipeline has said no outcome of it"
    come = ", ".join(f"{number} of {of}" for number, of in parts[:MOST_PARTS])
    return (
        f"of its outcome the pipeline has only said part {come}{', ...' if len(parts) > MOST_PARTS else ''}"
    )


def _receipts(tracking: ChainTracking) -> tuple[dict[str, str], list[DeadLetter]]:
    receipts: dict[str, str] = {}
    letters: list[DeadLetter] = []
    # A receipt goes by the event's name alone: one that is settled on one page and not on another has none.
    missing = tracking.unsettled_events()
    for sequence, page in enumerate(tracking.pages_in_order(), tracking.row.sequence):
        fresh = {
            event: outcome.value
            for event, outcome in tracking.outcomes_of(page).items()
            if event not in tracking.stored and event not in missing
        }
        if len(receipts) + len(fresh) > MOST_RECEIPTS:
            break
        receipts.update(fresh)
        letters += [
            DeadLetter(
                page.task.partition, sequence, letter.event_id, letter.position, letter.reason, letter.payload
            )
            for letter in tracking.letters_of(page)
            if fresh.get(letter.event_id) == Terminal.DEAD_LETTERED.value
        ]
    return receipts, letters
