"""The HTTP source: partitions and pages of a JSON API, described in the words of a job file's `source:`
block."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gapless.clock import Clock, SystemClock
from gapless.errors import ConfigurationError, GaplessError, HandoffUnproven, InvalidPage, PositionError
from gapless.paging.http_client import HttpClient, Request
from gapless.paging.http_config import BearerAuth, HandoffConfig, HttpSourceConfig
from gapless.paging.http_described import range_of, validated
from gapless.paging.http_handoff import HandoffReader
from gapless.paging.http_pages import PageReader
from gapless.paging.http_partitions import PartitionListReader, listed_in_job
from gapless.paging.http_tail import TailReader, require_a_tail
from gapless.paging.page import Page, Partition
from gapless.paging.page_token import NO_CURSOR, PageToken, cursor_text, token_digest
from gapless.paging.source import Assignment, Range
from gapless.paging.source_text import source_text
from gapless.paging.tail_memory import TailMemory
from gapless.paging.template import Template, TemplateValueError
from gapless.progress import Bound, Domain, ListDomain, Position, domain_from

NEUTRAL_PARAMS = frozenset({"limit", "pagesize", "perpage", "maxresults"})
"""Parameters that say how large a page is, in any spelling (page_size, perPage, ...): no part of a scope's
identity."""


class HttpSource:
    """A picklable description of a JSON API of independently paginated partitions.

    Takes the keys of a job file: `scope`, `domain` (a Domain, or as in the file), `range` (a Range, or
    {start, stop} as the source writes positions), `handoff` (as under `membership:`), and those of `source:`.
    Raises ConfigurationError, naming the key.

    >>> source = HttpSource(
    ...     scope="orders",
    ...     domain={"type": "integer"},
    ...     base_url="http://127.0.0.1:8080",
    ...     partitions={"list": ["eu", "us"]},
    ...     pages={
    ...         "path": "/partitions/{partition.id}/events",
    ...         "records": "events",
    ...         "next": {"type": "cursor", "from": "next_cursor", "param": "cursor", "end": "null"},
    ...     },
    ...     event={"id": "id", "position": "position"},
    ...     certificate={"page": {"position": "complete.position", "inclusive": "complete.inclusive"}},
    ... )
    >>> source.basis()
    'certified'
    """

    def __init__(
        self,
        *,
        scope: str,
        domain: Domain | Mapping[str, object],
        range: Range | Mapping[str, object] | None = None,
        handoff: Mapping[str, object] | None = None,
        **source: Any,
    ) -> None:
        self._scope = scope
        where = f"the source of scope {scope!r}"
        self._domain = domain if isinstance(domain, Domain) else domain_from(dict(domain))
        self._config = validated(HttpSourceConfig, source, where)
        self._handoff = None if handoff is None else validated(HandoffConfig, handoff, where)
        self._range = range if isinstance(range, Range) else range_of(self._domain, range, where)
        self._follows = False
        self._memory = TailMemory()
        self._check(where)

    @property
    def scope(self) -> str:
        return self._scope

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def range(self) -> Range:
        return self._range

    @property
    def config(self) -> HttpSourceConfig:
        """The validated `source:` block, defaults filled in; secrets are references in it."""
        return self._config

    @property
    def hands_off(self) -> bool:
        """Whether it can certify what moved between two routing generations."""
        return self._handoff is not None

    @property
    def handoff(self) -> HandoffConfig | None:
        """The validated `membership.handoff` block; None where the source hands nothing off."""
        return self._handoff

    def identity(self) -> Mapping[str, object]:
        """What makes it this scope. Host, credentials, time-outs, page size, paging and stop are neutral."""
        pages, event, certificate = self._config.pages, self._config.event, self._config.certificate
        start = self._range.start
        return {
            "type": "http",
            "path": pages.path,
            "method": pages.method,
            "filters": {name: value for name, value in sorted(pages.params.items()) if not _is_neutral(name)},
            "records": pages.records,
            "event": event.model_dump(),
            "domain": self._domain.describe(),
            "certificate": certificate.model_dump(
                by_alias=True, exclude_none=True, exclude={"assert_": {"reason"}}
            ),
            "ordering": "by position, not decreasing",
            "range": {
                "start": None if start is None else self._domain.text(start),
                "bounds": "start <= position < stop",
            },
        }

    def basis(self) -> str:
        if self._config.certificate.page is not None:
            return "certified"
        return "none" if self._config.certificate.assert_ is None else "asserted"

    @property
    def follows(self) -> bool:
        """Whether this is a stream's view."""
        return self._follows

    @property
    def ends_for_good(self) -> bool:
        """Whether a chain whose end was reached is never gone on with: it always has a cursor until then."""
        tail, end = self._config.pages.tail, self._config.pages.next.end
        return tail is None or (tail == "token" and end in ("null", "empty"))

    def following(self) -> "HttpSource":
        """The same scope as a stream reads it: where the source has nothing further at present, it is asked again
        later, in the way that `pages.tail` says. Raises ConfigurationError where that cannot be."""
        require_a_tail(self._config, f"the source of scope {self._scope!r}")
        view = copy.copy(self)
        view._follows, view._memory = True, TailMemory()
        return view

    def restart_token(self, bound: Bound) -> str | None:
        """Asks from the bound's position, inclusive or not: whether the source gives that position's events
        again or not, none above the bound is missed. So an exclusive bound needs a position before it,
        which only a discrete domain knows."""
        since = self.restart_position(bound)
        return None if since is None else PageToken(since=since).encode()

    def restart_position(self, bound: Bound) -> str | None:
        """The position that a restart asks from, as canonical text; None where there is none."""
        if self._config.pages.expired is None or self._config.pages.expired.restart is None:
            return None
        position = bound.position
        if not bound.inclusive:
            if not self._domain.discrete or not isinstance(position, int):
                return None
            position -= 1
        try:
            source_text(self._domain, position)
        except GaplessError:
            return None
        return self._domain.text(position)

    def open(self, clock: Clock | None = None) -> "HttpSession":
        """Resolve the secrets, here and now. Raises ConfigurationError where one is not there."""
        return HttpSession(self, clock or SystemClock(), self._memory)

    def __repr__(self) -> str:
        return f"HttpSource(scope={self._scope!r}, base_url={self._config.base_url!r})"

    def _check(self, where: str) -> None:
        """What holds between the keys, once the domain is known."""
        http = self._config.partitions.http
        if self._handoff is not None and (http is None or http.routing_generation is None):
            raise ConfigurationError(
                "handoff: the list of partitions names no routing generation, so that none is ever handed off",
                where=where,
                remedy="set partitions.http.routing_generation",
            )
        start, stop = self._range.start, self._range.stop
        if start is not None and stop is not None and Bound.before(stop) <= Bound.before(start):
            raise ConfigurationError(
                "range: it is empty", where=where, remedy="range.start has to lie below range.stop"
            )
        if self._config.certificate.assert_ is not None and stop is None:
            raise ConfigurationError(
                "certificate.assert.closed_range asserts nothing without an end of the range",
                where=where,
                remedy="set range.stop",
            )
        position = self._config.event.position
        if isinstance(position, list):
            parts = len(self._domain.items) if isinstance(self._domain, ListDomain) else None
            if parts != len(position):
                raise ConfigurationError(
                    f"event.position: {len(position)} paths, but the domain "
                    + (f"is a list of {parts}" if parts else "is no list"),
                    where=where,
                    remedy="one path for each part of a list domain, else a single path",
                )
        for place, end in (("start", start), ("stop", stop)):
            used = any(place in template.places for template in self._config.templates())
            if used and end is None:
                raise ConfigurationError(
                    f"a template of the pages uses {{{place}}}, but range.{place} is open",
                    where=where,
                    remedy=f"set range.{place}",
                )
            if used and end is not None:
                source_text(self._domain, end)


class HttpSession:
    """An open HttpSource: its connections and its resolved secrets. Used by one thread at a time; never
    pickled."""

    def __init__(self, source: HttpSource, clock: Clock, memory: TailMemory) -> None:
        config = source.config
        self._domain = source.domain
        self._pages_config = config.pages
        self._pages = PageReader(config, source.domain, source.range)
        self._tail = TailReader(
            config.pages.tail,
            self._pages.cursor,
            source.domain,
            source.restart_position,
            memory,
            follows=source.follows,
        )
        http = config.partitions.http
        self._list_path = None if http is None else http.path
        self._list = None if http is None else PartitionListReader(http, source.domain)
        self._listed = listed_in_job(config.partitions)
        self._path = Template.parse(config.pages.path)
        self._params = [
            (name, Template.parse(_param_text(one)))
            for name, value in config.pages.params.items()
            for one in (value if isinstance(value, list) else [value])
        ]
        self._ends = {
            place: source_text(source.domain, end)
            for place, end in (("start", source.range.start), ("stop", source.range.stop))
            if end is not None and any(place in template.places for template in config.templates())
        }
        expired = config.pages.expired
        self._expired = frozenset() if expired is None else frozenset(expired.status)
        self._restart_param = None if expired is None or expired.restart is None else expired.restart.param
        bearer = config.auth.token.resolve() if isinstance(config.auth, BearerAuth) else None
        self._client = HttpClient(config.base_url, config.headers, bearer, config.client, clock)
        handoff = source.handoff
        self._handoff = None if handoff is None else HandoffReader(handoff, self._pages, source.domain)

    def assignment(self) -> Assignment:
        if self._list is None or self._list_path is None:
            assignment = self._listed
        else:
            where = f"the list of partitions: GET {self._list_path}"
            answer = self._client.get_json(Request(self._list_path, where=where))
            assignment = self._list.assignment(answer.value, where)
        self._require_a_usable_one(assignment)
        return assignment

    def _require_a_usable_one(self, assignment: Assignment) -> None:
        """Raises InvalidPage where no partition at all can be asked for: then the job file is wrong, or the whole list. One that
        cannot, among others, is held by its own name when it is read, and stops nobody else."""
        refused: InvalidPage | None = None
        for one in assignment.partitions:
            try:
                self._rendered(one.partition, f"partition {one.partition.id}")
            except InvalidPage as error:
                refused = refused or error
            else:
                return
        if refused is not None:
            raise refused

    def generation(self) -> str:
        if self._list is None or self._list_path is None or not self._list.names_generation:
            return ""
        where = f"the list of partitions: GET {self._list_path}"
        return self._list.generation(
            self._client.get_json(Request(self._list_path, where=where)).value, where
        )

    def fetch(self, partition: Partition, page_token: str | None) -> Page:
        if partition.transit:
            return self._in_transit(partition, page_token)
        where = f"partition {partition.id}, page {token_digest(page_token)}"
        path, query = self._rendered(partition, where)
        where += f": GET {path}"
        token = self._decoded(page_token, where)
        asked = token
        if token.cursor is NO_CURSOR and token.since is None:
            asked = replace(token, cursor=self._pages.cursor.first)
        hidden = []
        if asked.cursor is not NO_CURSOR:
            hidden.append(cursor_text(asked.cursor))
            query.append((self._pages_config.next.param, hidden[0]))
        elif asked.since is not None:
            query.append(self._restart_query(asked.since, where))
        answer = self._client.get_json(
            Request(
                path, query, where, expired=self._expired if page_token is not None else (), hidden=hidden
            )
        )
        page = self._pages.read(answer, page_token, asked, where)
        return self._tail.page(partition.id, page, token, answer, where)

    def close(self) -> None:
        self._client.close()

    def _in_transit(self, partition: Partition, page_token: str | None) -> Page:
        before, after = str(partition.fields["from"]), str(partition.fields["to"])
        where = f"the handoff from {before!r} to {after!r}"
        if self._handoff is None:
            raise HandoffUnproven(
                "the job no longer says where the handoff certificate is",
                where=where,
                remedy="put membership.handoff back",
            )
        path = self._handoff.path(before, after, where)
        where += f": GET {path}"
        answer = self._client.get_json(Request(path, where=where))
        return self._handoff.read(answer.value, page_token, before, after, where)

    def _decoded(self, page_token: str | None, where: str) -> PageToken:
        if page_token is None:
            return PageToken()
        try:
            return PageToken.decode(page_token)
        except ValueError as error:
            raise InvalidPage(
                str(error), where=where, remedy="the scope was read by another source: name another"
            ) from None

    def _restart_query(self, since: str, where: str) -> tuple[str, str]:
        if self._restart_param is None:
            raise InvalidPage(
                "the chain stands where it was to restart, but the job file no longer says how",
                where=where,
                remedy="put pages.expired.restart back",
            )
        try:
            position: Position = self._domain.from_text(since)
        except PositionError as error:
            raise InvalidPage(f"the chain restarts from no position: {error.what}", where=where) from None
        return self._restart_param, source_text(self._domain, position)

    def _rendered(self, partition: Partition, where: str) -> tuple[str, list[tuple[str, str]]]:
        """Path and parameters for a partition. Raises InvalidPage where it lacks what a template needs."""
        values: dict[str, object] = {"partition.id": partition.id, **self._ends}
        for name, field in partition.fields.items():
            values[f"partition.{name}"] = field
        try:
            path = self._path.path(values)
            return path, [(name, template.plain(values)) for name, template in self._params]
        except TemplateValueError as error:
            raise InvalidPage(
                str(error),
                where=where,
                remedy="correct the template under pages, or what the list says of the partition",
            ) from None


def _is_neutral(param: str) -> bool:
    return param.lower().replace("_", "").replace("-", "") in NEUTRAL_PARAMS


def _param_text(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
