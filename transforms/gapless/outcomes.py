"""What the steps of a user's pipeline say of the pages they were given: what became of which events.

    def process(self, page):
        rows = [event.row for event in page.events]
        self.table.write(rows)                              # durable, and safe to do twice
        yield delivered(page)

Say it after the events are durable, never before. Nothing is settled by silence: an event that is filtered out is said to be
left out, and one that cannot be delivered to be a dead letter. A page that fans out over several steps is settled when each of
them has said its part.

What a reader sends besides pages, such as where a chain stands, has no events; an outcome of it says nothing and harms nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gapless.effects.lossless_json import event_json
from gapless.emitted_page import EmittedPage, LetterOf, Outcome
from gapless.progress import Position


def delivered(
    page: EmittedPage, ids: Iterable[str] | None = None, *, but: Mapping[str, str] | None = None
) -> Outcome:
    """These events of the page have been applied, durably; without `ids` every one of them.

    `but` are those that were given up on, id -> reason: their data is kept as dead letters. Raises ValueError for an id that the
    page does not have, TypeError for ids or a reason of another type.

    >>> page = example_page()
    >>> delivered(page).event_ids is None, delivered(page, ["a"]).event_ids
    (True, ('a',))
    >>> delivered(page, but={"b": "no such account"}).letters[0].reason
    'no such account'
    """
    letters = _letters(page, but or {})
    if ids is None:
        return _outcome(page, None, letters)
    return _outcome(page, (*_known(page, ids), *_known(page, but or {})), letters)


def dead_lettered(page: EmittedPage, reasons: Mapping[str, str]) -> Outcome:
    """These events were given up on, each for its reason (one line): their data is kept as dead letters.

    It says nothing of the other events of the page. Raises ValueError for an id that the page does not have, EffectError where an
    event's data cannot be kept.

    >>> dead_lettered(example_page(), {"b": "no such account"}).letters
    (LetterOf(event_id='b', position=2, reason='no such account', payload='{"amount":7}'),)
    """
    return _outcome(page, _known(page, reasons), _letters(page, reasons))


def left_out(page: EmittedPage, ids: Iterable[str]) -> Outcome:
    """These events are not to be applied: the pipeline has decided so, and they are settled.

    It counts as delivered: there is nothing more to be done for them. Raises ValueError for an id that the page does not have.

    >>> page = example_page()
    >>> wanted = {event.id for event in page.events if event.row["amount"] > 5}
    >>> left_out(page, (event.id for event in page.events if event.id not in wanted)).event_ids
    ('a',)
    """
    return _outcome(page, _known(page, ids), ())


def part(outcome: Outcome, number: int, of: int) -> Outcome:
    """The same outcome as one part, from 0, of several that make one: an event is settled when all `of` parts of it
    have come, and a dead letter where any of them says so.

    Each part has to name the events that went its way, or leave the ids out, for all; the parts of one event have the same `of`.
    Raises ValueError for a number that is none of these.

    >>> page = example_page()
    >>> [part(delivered(page), branch, of=2).part for branch in (0, 1)]
    [(0, 2), (1, 2)]
    """
    return replace(outcome, part=(number, of))


def example_page() -> EmittedPage:
    """A page of two events, `a` and `b`, for examples and for trying out steps of one's own."""
    from gapless.progress import IntegerDomain
    from gapless.updates import ReadTask

    task = ReadTask("example", IntegerDomain(), 1, "p", "{}", 1, 1, 1, 1, True, "run")
    rows = ({"amount": 3}, {"amount": 7})
    return EmittedPage(task, "attempt", 0, None, "next", ("a", "b"), (1, 2), rows)


def _outcome(page: EmittedPage, ids: tuple[str, ...] | None, letters: tuple[LetterOf, ...]) -> Outcome:
    return Outcome(
        scope=page.task.scope,
        chain=page.task.chain,
        attempt=page.attempt if page.is_page else "",
        event_ids=ids,
        letters=letters,
        read_through=_seen(page)[1],
        number=page.number,
    )


def _known(page: EmittedPage, ids: Iterable[str]) -> tuple[str, ...]:
    if isinstance(ids, str):
        # Its letters may be ids of the page, too.
        raise TypeError(f"event ids are several, not the text {ids!r}: [{ids!r}]")
    wanted = tuple(dict.fromkeys(ids))
    there = _seen(page)[0]
    for event_id in wanted:
        if event_id not in there:
            raise ValueError(
                f"the page has no event {event_id!r}: an outcome names events of the page it is of"
            )
    return wanted


_last: list[tuple[EmittedPage, frozenset[str], Position | None]] = []


def _seen(page: EmittedPage) -> tuple[frozenset[str], Position | None]:
    """The ids of a page and its highest position: kept for the page looked at last, of which many outcomes may be said."""
    for known, ids, through in tuple(_last):
        if known is page:
            return ids, through
    seen = (frozenset(page.ids), max(page.positions, default=None))
    _last[:] = [(page, *seen)]
    return seen


def _letters(page: EmittedPage, reasons: Mapping[str, str]) -> tuple[LetterOf, ...]:
    if not reasons:
        return ()
    _known(page, reasons)
    return tuple(
        LetterOf(event_id, position, reasons[event_id], event_json(row))
        for event_id, position, row in zip(page.ids, page.positions, page.rows, strict=True)
        if event_id in reasons
    )
