"""The page loop's judgement: one chain's pages, fed in as they were fetched, are linked, ordered, and
heading somewhere.

Pure of threads, clocks and connections: whoever fetches asks `next_token`, and gives each page to `accept`.
What contradicts the declaration raises a SourceError and ends the reading; a broken promise about what was
certified is collected as a violation and does not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import msgspec

from gapless.errors import InvalidPage, PositionError, RoutingChanged, TokenCycle
from gapless.paging.limits import LONGEST_BOUND, LONGEST_EVENT_ID, is_longer, may_be_longer, too_long
from gapless.paging.novelty import Novelty
from gapless.paging.page import Page, Partition
from gapless.paging.page_token import token_digest
from gapless.paging.source import ChainEnd, Range
from gapless.paging.token_memory import DEFAULT_LIMIT, TokenMemory
from gapless.progress import Bound, Certificate, Domain, Position, bound_text, highest

EVENT_BEHIND_BOUND = "event_behind_bound"
CERTIFICATE_WENT_BACK = "certificate_went_back"
CERTIFICATE_BEHIND_EVENTS = "certificate_behind_events"


@dataclass(frozen=True, slots=True)
class PageViolation:
    """A promise the source broke with this page. `kind` is one of the three above; `bound` what had been
    promised."""

    kind: str
    detail: str
    event_id: str | None = None
    position: Position | None = None
    bound: Bound | None = None


@dataclass(frozen=True, slots=True)
class CheckedPage:
    """A page that may be applied: each event once. `ends` says why nothing is to be read after it, None to
    read on. `idle`: the source has nothing further at present, and the page changes nothing: no event, no higher
    bound, no other token. Such a page is not promoted."""

    page: Page
    violations: Sequence[PageViolation] = ()
    ends: ChainEnd | None = None
    idle: bool = False

    @property
    def done(self) -> bool:
        return self.ends is not None


class PageChain:
    """One read of one chain, from a token on. Used by one thread; worth nothing after `accept` raised.

    `bound` is the durable certified bound, `read_to` covers the last position promoted, `generation` is the
    chain's routing generation (None: pages are not asked for theirs), `certifies` whether the source ever
    proves the range's end itself. `token_limit` is how many page tokens are remembered."""

    def __init__(
        self,
        partition: Partition,
        domain: Domain,
        start_token: str | None,
        bound: Bound | None = None,
        range: Range = Range(),  # noqa: B008 - a frozen value
        *,
        read_to: Bound | None = None,
        generation: str | None = None,
        certifies: bool = True,
        token_limit: int = DEFAULT_LIMIT,
    ) -> None:
        self._partition = partition.id
        self._domain = domain
        self._range = range
        self._read_to = None if read_to is None else read_to.position
        self._generation = generation
        self._certifies = certifies
        self._certified = bound
        self._last_certificate = bound
        self._heard_a_certificate = False
        self._token = start_token
        self._ended = False
        self._asked: set[int] = set()
        self._token_limit = token_limit
        self._tokens = TokenMemory(start_token, token_limit)
        self._events = Novelty()
        self._edge: dict[str, int] = {}
        self._edge_at: Position | None = None
        self.pages = 0

    @property
    def next_token(self) -> str | None:
        """What to fetch next. After a page that ends the chain it stays that page's own token: there a
        stream asks again."""
        return self._token

    def accept(self, page: Page) -> CheckedPage:
        """Take in the page fetched with `next_token`.

        Raises InvalidPage (another page's successor, out of order, one id with two contents),
        RoutingChanged, or TokenCycle where the chain would go on for ever without anything new."""
        self._require_link(page)
        self._require_lengths(page)
        self._require_positions(page)
        page = self._each_event_once(page)
        is_replay = hash(page.start_token) in self._asked
        self._require_order(page, is_replay)
        violations = [*self._events_behind(page, is_replay), *self._certificate_faults(page, is_replay)]
        if not is_replay and page.overlap is None:
            self._require_same_content(page)
        idle = self._is_idle(page) and not violations
        something_new = self._events.take(page.ids, page.positions)
        self._remember_edge(page)
        self._advance(page, something_new)
        return CheckedPage(page, violations, self._end(page), idle)

    def _require_link(self, page: Page) -> None:
        if self._ended or page.start_token != self._token:
            self._refuse("this page was fetched with another token than the one before it led to", page)
        if (page.next_token is None) != page.end and not self._is_idle(page):
            self._refuse("the page has neither a next token nor an end, or both", page)
        if page.caught_up and page.ids and page.next_token == page.start_token:
            self._refuse("the source has nothing further, and would give the page's events again", page)
        if self._generation is not None and page.generation not in (None, self._generation):
            raise RoutingChanged(
                f"the page was answered under routing generation {page.generation!r}, its chain is of {self._generation!r}",
                where=self._where(page),
                remedy="the new generation is read as chains of its own, and enters by a cutover",
            )

    def _require_lengths(self, page: Page) -> None:
        if not may_be_longer(max(map(len, page.ids), default=0), LONGEST_EVENT_ID):
            return
        for event_id in page.ids:
            if is_longer(event_id, LONGEST_EVENT_ID):
                self._refuse(too_long("an event's id", event_id, LONGEST_EVENT_ID), page)

    def _require_positions(self, page: Page) -> None:
        """Positions and certificate are of the scope's domain: a source of one's own may give others.

        One position of each shape is tried: what has the same types is as good as it."""
        shapes: dict[object, Position] = {}
        for kind in set(map(type, page.positions)):
            if kind is tuple:
                for position in page.positions:
                    shapes.setdefault(_shape(position), position)
            else:
                shapes[kind] = next(position for position in page.positions if type(position) is kind)
        positions = list(shapes.values())
        if page.certificate is not None:
            positions.append(page.certificate.bound.position)
        for position in positions:
            try:
                self._domain.key(Bound.before(position))
            except PositionError as error:
                self._refuse(f"position {position!r} is none of the scope's domain: {error.what}", page)
        if page.certificate is not None:
            size = len(self._domain.key(page.certificate.bound))
            if size > LONGEST_BOUND:
                self._refuse(f"a certificate of {size:,} bytes; at most {LONGEST_BOUND:,} can be kept", page)

    def _each_event_once(self, page: Page) -> Page:
        """An event that stands twice on a page, alike in every way, is one. Raises InvalidPage where it
        differs."""
        if len(set(page.ids)) == len(page.ids):
            return page
        first: dict[str, int] = {}
        for index, event_id in enumerate(page.ids):
            kept = first.setdefault(event_id, index)
            if page.positions[kept] != page.positions[index] or _content(page, kept) != _content(page, index):
                self._refuse(f"event {event_id!r} stands twice on the page, with different content", page)
        rest = list(first.values())
        return replace(
            page,
            ids=[page.ids[index] for index in rest],
            positions=[page.positions[index] for index in rest],
            rows=[page.rows[index] for index in rest],
        )

    def _require_same_content(self, page: Page) -> None:
        """An event that comes again at a page's edge is the same one. Raises InvalidPage where it differs from the first."""
        edge = self._edge_at
        if edge is None or not page.positions or min(page.positions) > edge:  # type: ignore[operator]
            return
        for index, (event_id, position) in enumerate(zip(page.ids, page.positions, strict=True)):
            known = self._edge.get(event_id) if position == edge else None
            if known is not None and known != hash(_content(page, index)):
                self._refuse(f"event {event_id!r} comes again with different content", page)

    def _remember_edge(self, page: Page) -> None:
        """Keep what the events at the highest position hold: the next page may begin with them again."""
        highest_met = self._events.highest
        if highest_met != self._edge_at:
            self._edge, self._edge_at = {}, highest_met
        for index in range(len(page.ids) - 1, -1, -1):
            if page.positions[index] != highest_met or len(self._edge) >= self._token_limit:
                return
            self._edge.setdefault(page.ids[index], hash(_content(page, index)))

    def _require_order(self, page: Page, is_replay: bool) -> None:
        """Positions do not decrease, within the page and from page to page.

        Exempt are events behind the certified bound, which are violations of more than order, and, from
        page to page, a page asked for again, which repeats what came before."""
        positions = page.positions
        floor = None if is_replay else self._floor(page)
        ascends = list(positions) == sorted(positions)
        if ascends and (not positions or floor is None or positions[0] >= floor):  # type: ignore[operator]
            return
        last, last_id = floor, "the last event before it"
        for event_id, position in zip(page.ids, positions, strict=True):
            if self._certified is not None and self._certified.covers(position):
                continue
            if last is not None and position < last:  # type: ignore[operator]
                self._refuse(
                    f"event {event_id!r} at {self._domain.text(position)} comes after {last_id} at {self._domain.text(last)}: "
                    "positions have to ascend",
                    page,
                )
            last, last_id = position, repr(event_id)

    def _floor(self, page: Page) -> Position | None:
        """Where the page has to go on from: this read's highest position, or the last promoted one. After a
        restart the latter says nothing: from the bound on, everything comes again. Nor does it where the page was read before
        all of it was certified."""
        if self._events.highest is not None:
            return self._events.highest
        return self._read_to if page.overlap is None and not page.asked_again else None

    def _events_behind(self, page: Page, is_replay: bool) -> list[PageViolation]:
        bound = self._certified
        if bound is None or not page.positions or not bound.covers(min(page.positions)):
            return []
        certified = bound_text(bound, self._domain)
        return [
            PageViolation(
                EVENT_BEHIND_BOUND,
                f"event {event_id!r} at {self._domain.text(position)} came after {certified} had been certified",
                event_id=event_id,
                position=position,
                bound=bound,
            )
            for event_id, position in zip(page.ids, page.positions, strict=True)
            if bound.covers(position) and not self._may_come_again(event_id, position, page, is_replay)
        ]

    def _may_come_again(self, event_id: str, position: Position, page: Page, is_replay: bool) -> bool:
        """Events at a page's edge may be on both pages; a page asked for again repeats them; after a
        restart all up to where it restarted come again."""
        met = self._events.highest
        if (
            page.overlap is not None
            and page.overlap.covers(position)
            and (met is None or page.overlap.covers(met))
        ):
            return True
        if met is None:
            return position == self._read_to or self._is_edge_after_restart(position, page)
        return self._events.knows(event_id, position) or (is_replay and position < met)  # type: ignore[operator]

    def _is_edge_after_restart(self, position: Position, page: Page) -> bool:
        """Where a chain was restarted it may have been read further before than it has come since: then what the page before
        this read's first one ended with is not known, only that a page in order begins with it."""
        before = self._read_to
        if page.overlap is None or before is None or position != min(page.positions):
            return False
        return position <= before  # type: ignore[operator]

    def _certificate_faults(self, page: Page, is_replay: bool) -> list[PageViolation]:
        if not isinstance(page.certificate, Certificate):
            return []
        bound, before = page.certificate.bound, self._last_certificate
        if is_replay or (page.overlap is not None and not self._heard_a_certificate):
            # After a restart the chain stands below its bound, and what it is told there does too.
            before = None
        faults = []
        if before is not None and bound < before:
            faults.append(
                PageViolation(
                    CERTIFICATE_WENT_BACK,
                    f"certified {bound_text(bound, self._domain)} after {bound_text(before, self._domain)}",
                    bound=before,
                )
            )
        last = max(page.positions, default=None)
        if page.end and page.asked_again:
            # What it does not certify it will be asked for again.
            last = None
        if last is not None and bound < Bound.before(last):
            faults.append(
                PageViolation(
                    CERTIFICATE_BEHIND_EVENTS,
                    f"certified {bound_text(bound, self._domain)} on a page with an event at {self._domain.text(last)}",
                    position=last,
                    bound=bound,
                )
            )
        return faults

    def _is_idle(self, page: Page) -> bool:
        """Nothing further, and nothing new: also at the chain's start, whose token is None."""
        if not page.caught_up or page.end or page.ids or page.next_token != page.start_token:
            return False
        certificate, before = page.certificate, self._certified
        return certificate is None or (before is not None and certificate.bound <= before)

    def _advance(self, page: Page, something_new: bool) -> None:
        if page.certificate is not None:
            self._last_certificate = page.certificate.bound
            self._heard_a_certificate = True
            self._certified = highest(self._certified, page.certificate.bound)
        self.pages += 1
        self._ended = page.end
        if page.caught_up:
            self._begin_anew(page)
            return
        if page.next_token is None:
            return
        if len(self._asked) < self._token_limit:
            self._asked.add(hash(page.start_token))
        if self._tokens.meets_again(page.next_token, something_new=something_new):
            raise TokenCycle(
                f"page token {token_digest(page.next_token)} comes again and nothing new has arrived since it came first",
                where=self._where(page),
                remedy="the source does not end this chain: see what its last pages hold, and how it tells the end",
            )
        self._token = page.next_token

    def _begin_anew(self, page: Page) -> None:
        """The source has nothing further: asked again, later, the same token is no circle, and its page none that is repeated."""
        self._asked.clear()
        self._tokens = TokenMemory(page.next_token, self._token_limit)
        self._token = page.next_token

    def _end(self, page: Page) -> ChainEnd | None:
        if page.end:
            return ChainEnd("end")
        stop = self._range.stop
        if stop is None:
            return None
        proved = self._certified is not None and self._certified >= Bound.before(stop)
        met = self._events.highest
        # Without certificates to wait for, an event at or beyond the stop is the end: pages are in order.
        passed = not self._certifies and met is not None and met >= stop  # type: ignore[operator]
        return ChainEnd("stop") if proved or passed else None

    def _where(self, page: Page) -> str:
        return f"partition {self._partition}, page {token_digest(page.start_token)} ({self.pages + 1} of this read)"

    def _refuse(self, what: str, page: Page) -> NoReturn:
        raise InvalidPage(
            what, where=self._where(page), remedy="correct the job file, or have the source keep to it"
        )


def _shape(position: Position) -> object:
    return tuple(map(_shape, position)) if isinstance(position, tuple) else type(position)


def _content(page: Page, index: int) -> bytes:
    """An event's row in a form in which 1, 1.0 and true differ and the order of keys does not."""
    return msgspec.json.encode(page.rows[index], order="deterministic")
