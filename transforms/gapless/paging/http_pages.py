"""From an answer to a page: ids, positions, next token, certificate and generation, as the job file says
where they are.

The whole of it costs well under a millisecond for a page of a thousand events: where a column is of one
plain type, it is checked as a column; only what does not fit is looked at event by event, to say which one
it was."""

from collections.abc import Sequence
from typing import cast

from gapless.errors import InvalidPage, PositionError
from gapless.paging.http_client import Answer
from gapless.paging.http_config import BoundPaths, HttpSourceConfig
from gapless.paging.http_cursor import CursorReader
from gapless.paging.json_path import JsonPath, PathAbsentError, describe
from gapless.paging.page import Page, Row
from gapless.paging.page_token import NO_CURSOR, PageToken
from gapless.paging.source import Range
from gapless.progress import Assertion, Bound, Certificate, Domain, IntegerDomain, Position


class PageReader:
    """Reads the pages of one source. Stateless after construction."""

    def __init__(self, config: HttpSourceConfig, domain: Domain, range_: Range) -> None:
        pages, certificate = config.pages, config.certificate
        self._domain = domain
        self._range = range_
        self._records = JsonPath.parse(pages.records)
        self._id = JsonPath.parse(config.event.id)
        self._position = PositionReader(config.event.position, domain)
        self._cursor = CursorReader(pages.next)
        self._bound = None if certificate.page is None else BoundReader(certificate.page, domain)
        self._reason = None if certificate.assert_ is None else certificate.assert_.reason
        self._generation = (
            None if pages.routing_generation is None else JsonPath.parse(pages.routing_generation)
        )

    @property
    def cursor(self) -> CursorReader:
        """Where the cursor stands, and what the first request of a chain sends."""
        return self._cursor

    def read(self, answer: Answer, start_token: str | None, asked: PageToken, where: str) -> Page:
        """The page `answer` holds; `asked` is `start_token` decoded, with the first cursor where that is
        None.

        Raises InvalidPage."""
        ids, positions, rows = self.events(self._records, "pages.records", answer.value, where)
        cursor = self._cursor.next_cursor(answer, asked.cursor, where)
        end = cursor is NO_CURSOR
        return Page(
            start_token=start_token,
            next_token=None if end else PageToken(cursor, asked.since).encode(),
            end=end,
            ids=ids,
            positions=positions,
            rows=rows,
            certificate=self._certificate(answer.value, positions, end, where),
            generation=None
            if self._generation is None
            else generation_at(self._generation, answer.value, where),
            overlap=self._overlap(asked),
        )

    def _overlap(self, asked: PageToken) -> Bound | None:
        """What may come again after a restart, but for what is left out anyway."""
        if asked.since is None:
            return None
        overlap = Bound.through(self._domain.from_text(asked.since))
        if asked.after is None:
            return overlap
        after = Bound(self._domain.from_text(asked.after[0]), asked.after[1])
        return overlap if overlap > after else None

    def events(
        self, path: JsonPath, key: str, value: object, where: str
    ) -> tuple[list[str], list[Position], list[Row]]:
        """Ids, positions and rows of the events at `path`, those below the range's start left out; `key` is the path's place in
        the job file. Raises InvalidPage."""
        rows = self._rows(path, key, value, where)
        ids = self._ids(rows, where)
        positions = self._position.positions(rows, where)
        return self._within_range(ids, positions, rows)

    def _rows(self, path: JsonPath, key: str, value: object, where: str) -> list[Row]:
        rows = find(path, value, where, key)
        if not isinstance(rows, list):
            raise _refusal(f"`{path.text}` is {describe(rows)}, not an array of events", where)
        if set(map(type, rows)) - {dict}:
            index = next(index for index, row in enumerate(rows) if type(row) is not dict)
            raise _refusal(f"`{path.text}[{index}]` is {describe(rows[index])}, not an object", where)
        return rows

    def _ids(self, rows: Sequence[Row], where: str) -> list[str]:
        values = find_in_each(self._id, rows, where, "event.id")
        kinds = set(map(type, values))
        if kinds <= {str} and "" not in values:
            return cast(list[str], values)
        if kinds == {int}:
            return list(map(str, values))
        return [self._id_text(index, value, where) for index, value in enumerate(values)]

    def _id_text(self, index: int, value: object, where: str) -> str:
        if type(value) in (str, int) and value != "":
            return str(value)
        raise _refusal(
            f"event [{index}]: `{self._id.text}` is {describe(value)}; an id is a text or an integer", where
        )

    def _within_range(
        self, ids: list[str], positions: list[Position], rows: list[Row]
    ) -> tuple[list[str], list[Position], list[Row]]:
        """Without the events below the range's start, which the scope is not about. At its stop a page is
        not cut: it is promoted whole, with its token."""
        start = self._range.start
        if start is None or not positions or min(positions) >= start:  # type: ignore[operator]
            return ids, positions, rows
        inside = [index for index, position in enumerate(positions) if position >= start]  # type: ignore[operator]
        return [ids[i] for i in inside], [positions[i] for i in inside], [rows[i] for i in inside]

    def _certificate(
        self, value: object, positions: Sequence[Position], end: bool, where: str
    ) -> Certificate | Assertion | None:
        if self._bound is not None:
            bound = self._bound.bound(value, where)
            return None if bound is None else Certificate(bound, "page")
        stop = self._range.stop
        if self._reason is None or stop is None:
            return None
        # Pages come in order, which the page loop checks: an event at or beyond the stop ends the range as
        # the chain's end.
        if end or (positions and max(positions) >= stop):  # type: ignore[operator]
            return Assertion(Bound.before(stop), self._reason)
        return None


class PositionReader:
    """Reads positions at one path, or, in a domain that is a list, at one path for each of its parts."""

    def __init__(self, paths: str | Sequence[str], domain: Domain) -> None:
        self._paths = [JsonPath.parse(path) for path in ([paths] if isinstance(paths, str) else paths)]
        self._composed = not isinstance(paths, str)
        self._domain = domain

    def positions(self, rows: Sequence[Row], where: str) -> list[Position]:
        """Raises InvalidPage, naming the event whose position is absent or of another type."""
        columns = [find_in_each(path, rows, where, "event.position") for path in self._paths]
        values: Sequence[object] = list(zip(*columns, strict=True)) if self._composed else columns[0]
        if isinstance(self._domain, IntegerDomain) and set(map(type, values)) <= {int}:
            return cast(list[Position], values)
        try:
            return list(map(self._domain.parse, values))
        except PositionError:
            return [self._parsed(value, where, f"event [{index}]: ") for index, value in enumerate(values)]

    def position(self, value: object, where: str, key: str) -> Position | None:
        """One position somewhere else in an answer; None where null stands there. Raises InvalidPage."""
        parts = [find(path, value, where, key) for path in self._paths]
        if all(part is None for part in parts):
            return None
        return self._parsed(tuple(parts) if self._composed else parts[0], where, "")

    def _parsed(self, value: object, where: str, event: str) -> Position:
        try:
            return self._domain.parse(value)
        except PositionError as error:
            names = ", ".join(f"`{path.text}`" for path in self._paths)
            reason = error.what
        raise _refusal(f"{event}{names} is no position of the scope's domain: {reason}", where)


class BoundReader:
    """Reads a bound: its position, and whether it is inclusive."""

    def __init__(self, paths: BoundPaths, domain: Domain) -> None:
        self._position = PositionReader(paths.position, domain)
        self._inclusive = (
            paths.inclusive if isinstance(paths.inclusive, bool) else JsonPath.parse(paths.inclusive)
        )

    def bound(self, value: object, where: str) -> Bound | None:
        """None where null stands in its place: nothing is stated. Raises InvalidPage."""
        position = self._position.position(value, where, "the bound's position")
        if position is None:
            return None
        if isinstance(self._inclusive, bool):
            return Bound(position, self._inclusive)
        inclusive = find(self._inclusive, value, where, "the bound's inclusive")
        if not isinstance(inclusive, bool):
            raise _refusal(
                f"`{self._inclusive.text}` is {describe(inclusive)}, where true or false is needed", where
            )
        return Bound(position, inclusive)


def find(path: JsonPath, value: object, where: str, key: str) -> object:
    """`path.find(value)`, its absence as InvalidPage; `key` is where the job file holds the path."""
    try:
        return path.find(value)
    except PathAbsentError as absent:
        raise InvalidPage(
            str(absent), where=where, remedy=f"correct the path in the job file: {key}"
        ) from None


def find_in_each(path: JsonPath, rows: Sequence[Row], where: str, key: str) -> list[object]:
    """`path.find_in_each(rows)`, an absence as InvalidPage that names the event."""
    try:
        return path.find_in_each(rows)
    except PathAbsentError as absent:
        raise InvalidPage(
            f"event {absent}", where=where, remedy=f"correct the path in the job file: {key}"
        ) from None


def generation_at(path: JsonPath, value: object, where: str) -> str:
    generation = find(path, value, where, "routing_generation")
    if type(generation) in (str, int) and generation != "":
        return str(generation)
    raise _refusal(
        f"`{path.text}` is {describe(generation)}; a routing generation is a text or an integer", where
    )


def _refusal(what: str, where: str) -> InvalidPage:
    return InvalidPage(what, where=where, remedy="correct the job file, or have the source send what it says")
