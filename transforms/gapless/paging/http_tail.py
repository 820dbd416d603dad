"""The tail of an HTTP chain: what is made of a page after which the source has nothing further, and where a
stream asks again.

    token      the source gives a cursor on that page, too: it is asked with again, later
    last_page  the page itself is asked for again: it grows, until it leads on
    since      what follows the certified bound is asked for, as after a token has expired

A bounded read ends there, and keeps with its last page where a stream would go on. A stream goes on. With
`token` nothing can come twice. With the two others what is asked for again holds events that were applied
before, so that every token says which: all that its bound `after` covers, and those named `beyond` it. A stream
applies of such a page what its certificate covers, in which nothing is missing, and leaves the rest, among which
events may still appear, to the next poll: also of a page that leads on, whose cursor would pass them by. A bounded
read takes all, and whatever comes in front of that later comes in its turn."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from gapless.errors import ConfigurationError, InvalidPage, PositionError
from gapless.paging.http_client import Answer
from gapless.paging.http_config import HttpSourceConfig, TailMode
from gapless.paging.http_cursor import CursorReader
from gapless.paging.page import Page
from gapless.paging.page_token import NO_CURSOR, PageToken, token_digest
from gapless.paging.tail_memory import Seen, TailMemory
from gapless.progress import Bound, Certificate, Domain, Position

MOST_BEYOND = 10_000
"""Events that a token names one by one: of a longer last page nobody knows, later, which events were applied."""


class TailReader:
    """Makes of a page as it was read what a bounded read, or where `follows` a stream, does with it. `mode` None: nobody knows
    how to ask again. `restart` gives the position to ask from after a bound, as canonical text, or None. `memory` is
    what all sessions of a stream have seen, to tell events that have come late. One session's."""

    def __init__(
        self,
        mode: TailMode | None,
        cursor: CursorReader,
        domain: Domain,
        restart: Callable[[Bound], str | None],
        memory: TailMemory,
        *,
        follows: bool,
    ) -> None:
        self._mode = mode
        self._cursor = cursor
        self._domain = domain
        self._restart = restart
        self._follows = follows
        self._memory = memory

    def page(self, partition: str, page: Page, asked: PageToken, answer: Answer, where: str) -> Page:
        """`page` as read from `answer`; `asked` is its start token decoded, PageToken() at the chain's start."""
        after = bound_of(asked, self._domain, where)
        left = self._without_what_was_applied(partition, page, asked, after)
        left = replace(left, asked_again=bool(asked.beyond))
        if self._is_open(page, after):
            return self._tail(partition, page, left, asked, after)
        if not page.end:
            self._memory.polled(partition, page.start_token, page.next_token, None)
            token = self._next(page, asked, after)
            certificate = left.certificate
            if certificate is not None and after is not None and certificate.bound < after:
                # While it was the last page it was certified further than it reaches, which still holds.
                certificate = None
            caught_up = self._is_caught_up(page, token)
            return replace(left, next_token=token, certificate=certificate, caught_up=caught_up)
        if self._mode is None:
            return left
        if self._mode == "token":
            return self._with_token(left, asked, answer, where)
        return self._tail(partition, page, left, asked, after)

    def _is_open(self, page: Page, after: Bound | None) -> bool:
        """A page that leads on, beyond what is certified: further events may appear on it. (At the position it ends at they may
        as well, but then behind its cursor.) A bounded read cannot wait for that."""
        if page.end or not self._follows or self._mode in (None, "token") or not page.positions:
            return False
        if not isinstance(page.certificate, Certificate):
            # It says nothing: that its cursor leads on is all there is to go by.
            return False
        reached = _reached(page, after)
        return reached is not None and reached < Bound.before(max(page.positions))

    def _is_caught_up(self, page: Page, token: str | None) -> bool:
        """Whoever always gives a cursor says by an empty page that there is nothing further; a bounded read believes it where the
        cursor leads nowhere."""
        always = self._mode == "token" and self._cursor.told_by_cursor
        return always and not page.ids and (self._follows or token == page.start_token)

    def _with_token(self, page: Page, asked: PageToken, answer: Answer, where: str) -> Page:
        if self._cursor.told_by_cursor:
            return page
        try:
            cursor = self._cursor.cursor_at_end(answer, where)
        except InvalidPage:
            if self._follows:
                raise
            # A bounded read needs none; the stream will say that it does.
            return page
        token = replace(asked, cursor=cursor) if cursor == asked.cursor else PageToken(cursor, asked.since)
        if not self._follows:
            return replace(page, resume=token.encode())
        return replace(page, next_token=token.encode(), end=False, caught_up=True)

    def _without_what_was_applied(
        self, partition: str, page: Page, asked: PageToken, after: Bound | None
    ) -> Page:
        """An event that the bound covers is left out, unless it is known not to have been there: the source broke its promise,
        which is for the page loop to say."""
        if after is None and not asked.beyond:
            return page
        seen = self._memory.before(partition, page.start_token)
        beyond = frozenset(asked.beyond)
        keep = []
        for index, (event_id, position) in enumerate(zip(page.ids, page.positions, strict=True)):
            applied = event_id in beyond
            if not applied and after is not None and after.covers(position):
                applied = seen is None or not seen.missed(event_id, position)
            if not applied:
                keep.append(index)
        return _only(page, keep)

    def _next(self, page: Page, asked: PageToken, after: Bound | None) -> str | None:
        """A page that leads on: what its bound covers can only come again where nothing else has come since."""
        if page.next_token is None or (after is None and not asked.beyond):
            return page.next_token
        cursor = PageToken.decode(page.next_token).cursor
        met = frozenset(page.ids)
        beyond = tuple(one for one in asked.beyond if one not in met)
        if after is None or all(after.covers(position) for position in page.positions):
            return PageToken(cursor, asked.since, asked.after, beyond).encode()
        return PageToken(cursor, _still_of_use(asked, after, self._domain), beyond=beyond).encode()

    def _tail(self, partition: str, page: Page, left: Page, asked: PageToken, after: Bound | None) -> Page:
        reached = _reached(page, after)
        late = [position for position in left.positions if after is not None and after.covers(position)]
        if not self._follows:
            resume = self._resume(page, asked, reached)
            return replace(left, resume=resume, asked_again=left.asked_again or resume is not None)
        keep = [
            index
            for index, position in enumerate(left.positions)
            if reached is not None and reached.covers(position)
        ]
        applied = _only(left, keep)
        if reached is None:
            token = page.start_token
        else:
            open_still = frozenset(page.ids) - _covered(page, reached)
            beyond = tuple(one for one in asked.beyond if one in open_still)
            token = self._token(page, asked, reached, beyond, asked.late + len(late)).encode()
        self._memory.polled(partition, page.start_token, token, self._seen(page, asked, token))
        return replace(applied, next_token=token, end=False, caught_up=True)

    def _resume(self, page: Page, asked: PageToken, reached: Bound | None) -> str | None:
        """Where a stream goes on after a bounded read, which has applied the whole of the page."""
        covered = frozenset() if reached is None else _covered(page, reached)
        beyond = tuple(one for one in page.ids if one not in covered)
        if len(beyond) > MOST_BEYOND:
            return None
        return self._token(page, asked, reached, beyond, asked.late).encode()

    def _token(
        self, page: Page, asked: PageToken, reached: Bound | None, beyond: tuple[str, ...], late: int
    ) -> PageToken:
        after = None if reached is None else (self._domain.text(reached.position), reached.inclusive)
        if self._mode == "since" and reached is not None and self._may_skip_to(page, asked, reached):
            since = self._restart(reached)
            if since is not None:
                return PageToken(since=since, after=after, beyond=beyond, late=late)
        since = asked.since if reached is None else _still_of_use(asked, reached, self._domain)
        if asked.cursor is NO_CURSOR and since is None:
            # The restart's position is what the page was asked with.
            since = asked.since
        return PageToken(asked.cursor, since, after, beyond, late)

    def _may_skip_to(self, page: Page, asked: PageToken, reached: Bound) -> bool:
        """Whether everything that was applied on the pages before this one lies within the bound: there are none since the last
        poll, or they cannot lie above an event of this page that does. Else the page is asked for again, as it is."""
        return asked.cursor is NO_CURSOR or any(reached.covers(position) for position in page.positions)

    def _seen(self, page: Page, asked: PageToken, token: str | None) -> Seen | None:
        """What is to be remembered of a page that was asked for with `asked` and led to `token`."""
        if token is None or len(page.ids) > MOST_BEYOND:
            return None
        whole_from: Position | None = None
        if PageToken.decode(token).cursor is NO_CURSOR:
            if asked.cursor is not NO_CURSOR:
                # The pages before this one are not known any more.
                return None
            whole_from = None if asked.since is None else self._domain.from_text(asked.since)
        return Seen(frozenset(page.ids), whole_from)


def require_a_tail(config: HttpSourceConfig, where: str) -> None:
    """Raises ConfigurationError where a stream could not go on at the end of what there is, or not without losing events."""
    mode = config.pages.tail
    if mode is None:
        raise ConfigurationError(
            "a stream has to know how the source is asked again where it has nothing further at present",
            where=where,
            remedy="set pages.tail: token, last_page or since",
        )
    if mode == "token":
        return
    if config.certificate.page is None:
        raise ConfigurationError(
            f"pages.tail: {mode} asks for events again, and only the certificate of a page tells which were applied",
            where=where,
            remedy="set certificate.page, or tail: token where the source's last page holds a token",
        )
    if mode == "since" and (config.pages.expired is None or config.pages.expired.restart is None):
        raise ConfigurationError(
            "pages.tail: since asks for what follows a bound, but pages.expired.restart does not say how",
            where=where,
            remedy="set pages.expired.restart: {param: ...}, or tail: last_page",
        )


def bound_of(token: PageToken, domain: Domain, where: str) -> Bound | None:
    """What the token leaves out. Raises InvalidPage where that is no bound of the domain."""
    if token.after is None:
        return None
    try:
        return Bound(domain.from_text(token.after[0]), token.after[1])
    except PositionError as error:
        raise InvalidPage(
            f"the page token {token_digest(token.encode())} leaves out what no position bounds: {error.what}",
            where=where,
        ) from None


def _reached(page: Page, after: Bound | None) -> Bound | None:
    bound = page.certificate.bound if isinstance(page.certificate, Certificate) else None
    return after if bound is None else bound if after is None else max(after, bound)


def _still_of_use(asked: PageToken, after: Bound, domain: Domain) -> str | None:
    """The position of a restart, while what it says may come again reaches beyond what is left out anyway."""
    if asked.since is None or Bound.through(domain.from_text(asked.since)) <= after:
        return None
    return asked.since


def _covered(page: Page, bound: Bound) -> frozenset[str]:
    return frozenset(
        one for one, position in zip(page.ids, page.positions, strict=True) if bound.covers(position)
    )


def _only(page: Page, keep: Sequence[int]) -> Page:
    if len(keep) == len(page.ids):
        return page
    return replace(
        page,
        ids=[page.ids[index] for index in keep],
        positions=[page.positions[index] for index in keep],
        rows=[page.rows[index] for index in keep],
    )
