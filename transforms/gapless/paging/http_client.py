"""One JSON answer at a time over kept-alive connections, asked for again while asking again can help.

What is transient (no connection, a time-out, the statuses of `retry.on`, a body that breaks off or is no
JSON) is tried again with doubling waits, or when Retry-After says so; every wait goes through the clock.
What is left becomes a SourceError whose text names partition and page, and holds no secret: no URL query,
no header, no cursor."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import quote_plus, urlencode, urljoin, urlsplit

import msgspec
import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

from gapless._version import __version__
from gapless.clock import Clock
from gapless.errors import InvalidPage, SourceError, SourceUnavailable, TokenExpired
from gapless.paging.http_config import ClientConfig
from gapless.paging.http_failure import (
    TransientFailure,
    connection_failure,
    malformed,
    read_failure,
    retry_after,
)
from gapless.paging.secrets import Secret

MAX_BODY_BYTES = 256 * 2**20
"""A larger answer, decompressed, is refused: a page is held in memory whole."""
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NEUTRAL_HEADERS = frozenset({"accept", "accept-encoding", "user-agent", "connection"})
_TELLING = 4
"""A cursor shorter than this, such as a page number, tells nobody anything; hiding it would garble the status and the counts
beside it."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Request:
    """One GET. `where` names it in errors; `expired` are the statuses that mean a dead page token;
    `hidden` are texts that must not show in errors, such as the cursor."""

    path: str
    query: Sequence[tuple[str, str]] = ()
    where: str = ""
    expired: Collection[int] = ()
    hidden: Sequence[str] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """A decoded JSON body and the headers it came with (names in any case)."""

    value: object
    headers: Mapping[str, str]


class HttpClient:
    """Used by one thread at a time. `close` it."""

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        bearer: Secret | None,
        config: ClientConfig,
        clock: Clock,
    ) -> None:
        self._base_url = base_url
        self._clock = clock
        self._retry = config.retry
        self._timeout = (config.timeout.connect, config.timeout.read)
        self._secrets = [] if bearer is None else [bearer.reveal()]
        self._headers = _all_headers(headers, bearer)
        # The adapter itself, not a session around it: no cookies, no netrc, no redirects but those below,
        # and a third of a request's cost less. The environment is asked once, for proxies and the CA
        # bundle.
        self._adapter = HTTPAdapter(pool_connections=2, pool_maxsize=config.connections, max_retries=0)
        with requests.Session() as session:
            environment = session.merge_environment_settings(base_url, {}, None, None, None)
        self._proxies = environment["proxies"]
        self._verify = True if environment["verify"] is None else environment["verify"]

    def close(self) -> None:
        self._adapter.close()

    def get_json(self, request: Request) -> Answer:
        """Raises TokenExpired, InvalidPage where asking again cannot help, else SourceUnavailable."""
        attempt = 1
        while True:
            try:
                return self._attempt(request)
            except TransientFailure as failure:
                if attempt >= self._retry.attempts:
                    self._give_up(failure, request, attempt)
                self._wait(failure, request, attempt)
                attempt += 1

    def _wait(self, failure: TransientFailure, request: Request, attempt: int) -> None:
        """Sleep as long as the source says, else twice as long as the last time.

        Where the source wants more than `retry.max`, the caller decides: a reader asleep would hold up
        other partitions."""
        if failure.retry_after is not None and failure.retry_after > self._retry.max:
            self._give_up(failure, request, attempt)
        backoff = min(self._retry.max, self._retry.backoff * 2.0 ** min(attempt - 1, 60))
        self._clock.sleep(backoff if failure.retry_after is None else failure.retry_after)

    def _give_up(self, failure: TransientFailure, request: Request, attempts: int) -> NoReturn:
        what = self._redacted(failure.what, request)
        if failure.retry_after is not None and failure.retry_after > self._retry.max:
            what += f", and not to be asked again for {failure.retry_after:,.0f} s"
        tried = f"{what} (asked {attempts} times)" if attempts > 1 else what
        if failure.is_answer:
            raise InvalidPage(
                tried, where=request.where, remedy="see what the source sends there: gapless check JOB"
            )
        raise SourceUnavailable(
            tried,
            where=request.where,
            remedy="run it again when the source answers",
            retry_after=failure.retry_after,
        )

    def _attempt(self, request: Request) -> Answer:
        url = self._base_url + request.path
        if request.query:
            url += "?" + urlencode(request.query, quote_via=quote_plus)
        headers = self._headers
        for _ in range(MAX_REDIRECTS + 1):
            response = self._send(url, headers, request.where)
            if response.status_code not in _REDIRECTS:
                return self._read(response, request)
            response.close()
            target = urljoin(url, response.headers.get("Location", ""))
            if not _may_follow(url, target):
                raise InvalidPage(
                    f"redirected (HTTP {response.status_code}) to where gapless does not follow",
                    where=request.where,
                    remedy="set base_url to where the API is served",
                )
            if _origin(target) != _origin(url):
                headers = _without_credentials(headers)
            url = target
        raise InvalidPage(
            f"redirected more than {MAX_REDIRECTS} times",
            where=request.where,
            remedy="set base_url to the end of them",
        )

    def _send(self, url: str, headers: CaseInsensitiveDict[str], where: str) -> requests.Response:
        prepared = requests.PreparedRequest()
        prepared.method, prepared.url, prepared.headers = "GET", url, headers
        try:
            return self._adapter.send(
                prepared, stream=True, timeout=self._timeout, verify=self._verify, proxies=self._proxies
            )
        except requests.RequestException as error:
            raise connection_failure(error, self._timeout, where) from None

    def _read(self, response: requests.Response, request: Request) -> Answer:
        try:
            return self._accepted(response, request)
        except BaseException:
            # Whatever is left of this answer must not be taken for the next one, and its connection may be
            # closing.
            response.close()
            self._adapter.close()
            raise

    def _accepted(self, response: requests.Response, request: Request) -> Answer:
        status = response.status_code
        if status in request.expired:
            raise TokenExpired(
                f"the page token is dead (HTTP {status})",
                where=request.where,
                remedy="it restarts where the job says how",
            )
        if status in self._retry.on:
            wait = retry_after(response.headers.get("Retry-After"), self._clock.now())
            raise TransientFailure(f"HTTP {status} {response.reason}", retry_after=wait)
        body = _body(response, request)
        if not 200 <= status < 300:
            raise self._refusal(status, response.reason, body, request)
        return Answer(_decoded(body, request), response.headers)

    def _refusal(self, status: int, reason: str, body: bytes, request: Request) -> SourceError:
        if status in (401, 403):
            return InvalidPage(
                f"HTTP {status} {reason}: the source does not accept the credentials",
                where=request.where,
                remedy="check `auth` and what its secret may read",
            )
        said = self._redacted(body[:200].decode("utf-8", "replace"), request)
        shown = "".join(character if character.isprintable() else " " for character in said).strip()
        return InvalidPage(
            f"HTTP {status} {reason}" + (f": {shown}" if shown else ""),
            where=request.where,
            remedy="check the path, the parameters and the partition's name",
        )

    def _redacted(self, text: str, request: Request) -> str:
        telling = [cursor for cursor in request.hidden if len(cursor) >= _TELLING]
        for hidden in (*self._secrets, *telling):
            if hidden:
                text = text.replace(hidden, "***")
        return text


def _all_headers(headers: Mapping[str, str], bearer: Secret | None) -> CaseInsensitiveDict[str]:
    every: CaseInsensitiveDict[str] = CaseInsensitiveDict(requests.utils.default_headers())
    every["User-Agent"] = f"gapless/{__version__}"
    every["Accept"] = "application/json"
    every.update(headers)
    if bearer is not None:
        every["Authorization"] = f"Bearer {bearer.reveal()}"
    return every


def _without_credentials(headers: CaseInsensitiveDict[str]) -> CaseInsensitiveDict[str]:
    return CaseInsensitiveDict(
        {name: value for name, value in headers.items() if name.lower() in _NEUTRAL_HEADERS}
    )


def _may_follow(url: str, target: str) -> bool:
    scheme = urlsplit(target).scheme
    return scheme == "https" or (scheme == "http" and urlsplit(url).scheme == "http")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _body(response: requests.Response, request: Request) -> bytes:
    raw: urllib3.HTTPResponse = response.raw
    announced = None if "Content-Encoding" in response.headers else raw.length_remaining
    try:
        if announced is None:
            body = raw.read(MAX_BODY_BYTES + 1, decode_content=True)
        else:
            body = b"" if announced > MAX_BODY_BYTES else raw.read(decode_content=True)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise read_failure(error) from None
    if len(body) > MAX_BODY_BYTES or (announced or 0) > MAX_BODY_BYTES:
        raise InvalidPage(
            f"the answer is larger than {MAX_BODY_BYTES // 2**20} MiB",
            where=request.where,
            remedy="ask for smaller pages",
        )
    return body


def _decoded(body: bytes, request: Request) -> object:
    try:
        return _decode(body.removeprefix(_BYTE_ORDER_MARK))
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise malformed(body, error, request.where) from None
