"""Cursor paging: where an answer holds the next cursor, and how it says that the chain ends."""

from gapless.errors import InvalidPage
from gapless.paging.http_client import Answer
from gapless.paging.http_config import CursorPaging, HasMore
from gapless.paging.json_path import JsonPath, PathAbsentError, describe
from gapless.paging.page_token import NO_CURSOR


class CursorReader:
    """Reads the next cursor of an answer. Stateless after construction."""

    def __init__(self, paging: CursorPaging) -> None:
        self._header = paging.header
        self._path = None if paging.from_ is None else JsonPath.parse(paging.from_)
        self._end = paging.end
        self._has_more = JsonPath.parse(paging.end.has_more) if isinstance(paging.end, HasMore) else None
        self._first: object = NO_CURSOR if paging.first is None else paging.first

    def next_cursor(self, answer: Answer, sent: object, where: str) -> object:
        """The cursor of the next page, or NO_CURSOR where the source says that the chain ends here.

        `sent` is the cursor this answer was asked for with, NO_CURSOR where there was none. Raises
        InvalidPage where the place of the cursor is absent, or holds what can neither be sent nor is the
        declared end."""
        if self._has_more is not None and not self._says_more(answer, self._has_more, where):
            return NO_CURSOR
        cursor = self._found(answer, where)
        if cursor is None or cursor in ("", {}, []):
            if self._end == "empty" or (self._end == "null" and cursor is None):
                return NO_CURSOR
            raise self._no_cursor(cursor, where)
        if self._end == "same" and sent is not NO_CURSOR and type(cursor) is type(sent) and cursor == sent:
            return NO_CURSOR
        return cursor

    def cursor_at_end(self, answer: Answer, where: str) -> object:
        """The cursor that an answer without a further page holds all the same, to ask again with.

        Raises InvalidPage where it holds none."""
        cursor = self._found(answer, where)
        if cursor is None or cursor in ("", {}, []):
            place = f"`{self._path.text}`" if self._path is not None else f"the header {self._header}"
            raise InvalidPage(
                f"{place} is {describe(cursor)} on the last page: there is no token to ask again with later",
                where=where,
                remedy="pages.tail: last_page or since reads such a source",
            )
        return cursor

    @property
    def told_by_cursor(self) -> bool:
        """The end of a chain is that it has no cursor: one that has may go on at any time."""
        return self._end in ("null", "empty")

    @property
    def first(self) -> object:
        """The cursor of a chain's first request; NO_CURSOR where none is sent."""
        return self._first

    def _says_more(self, answer: Answer, path: JsonPath, where: str) -> bool:
        try:
            more = path.find(answer.value)
        except PathAbsentError as absent:
            raise InvalidPage(str(absent), where=where, remedy="correct pages.next.end.has_more") from None
        if not isinstance(more, bool):
            raise InvalidPage(
                f"`{path.text}` is {describe(more)}, where true or false says whether there is more",
                where=where,
            )
        return more

    def _found(self, answer: Answer, where: str) -> object:
        if self._path is None:
            cursor = answer.headers.get(self._header or "")
            if cursor is None:
                raise InvalidPage(
                    f"the header {self._header} is absent; the end of a chain is never inferred from that",
                    where=where,
                    remedy="correct pages.next.header, or tell the end by end: {has_more: PATH}",
                )
            return cursor
        try:
            return self._path.find(answer.value)
        except PathAbsentError as absent:
            raise InvalidPage(str(absent), where=where, remedy="correct pages.next.from") from None

    def _no_cursor(self, cursor: object, where: str) -> InvalidPage:
        place = f"`{self._path.text}`" if self._path is not None else f"the header {self._header}"
        end = "has_more" if isinstance(self._end, HasMore) else self._end
        return InvalidPage(
            f"{place} is {describe(cursor)}, which is no cursor, and no end where pages.next.end is {end!r}",
            where=where,
            remedy="if the source ends its chains so, declare it: pages.next.end",
        )
