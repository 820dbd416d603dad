"""What went wrong with one attempt at an HTTP answer, in words that hold no URL, header or cursor."""

import http.client
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import msgspec
import requests
import urllib3

from gapless.errors import InvalidPage, SourceUnavailable

_NOT_JSON = re.compile(rb"-?(?:NaN|Infinity|nan|inf)|-?\d+[.\d]*[eE][+-]?\d+|-?\d{300,}")
_SHOWN = 60
_TEN_YEARS = 10 * 365 * 86_400.0


class TransientFailure(Exception):
    """An attempt failed in a way that may pass. `retry_after` in seconds where the source said so;
    `is_answer`: it was answered, whole, with something that is no JSON."""

    def __init__(self, what: str, *, retry_after: float | None = None, is_answer: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.retry_after = retry_after
        self.is_answer = is_answer


def connection_failure(
    error: requests.RequestException, timeout: tuple[float, float], where: str
) -> Exception:
    """Why no answer began, as a TransientFailure; a certificate that does not verify is none."""
    if isinstance(error, requests.exceptions.SSLError):
        return SourceUnavailable(
            "the TLS connection could not be made: the server's certificate does not verify, or it speaks no TLS",
            where=where,
            remedy="check base_url, and the CA bundle in REQUESTS_CA_BUNDLE",
        )
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return TransientFailure(f"no connection within {timeout[0]:g} s")
    if isinstance(error, requests.exceptions.Timeout):
        return TransientFailure(f"no answer within {timeout[1]:g} s")
    if isinstance(error, requests.exceptions.ProxyError):
        return TransientFailure("the proxy could not be reached")
    for cause in _causes(error):
        if isinstance(cause, urllib3.exceptions.NameResolutionError):
            return TransientFailure("the host's name could not be resolved")
        if isinstance(cause, http.client.BadStatusLine | http.client.LineTooLong):
            return TransientFailure(
                "the connection was closed without an answer, or with one that is no HTTP"
            )
        if isinstance(cause, OSError) and cause.strerror:
            return TransientFailure(f"no connection: {cause.strerror}")
    return TransientFailure(f"the request failed ({type(error).__name__})")


def read_failure(error: Exception) -> TransientFailure:
    """Why an answer that had begun did not arrive whole."""
    for cause in _causes(error):
        if isinstance(cause, urllib3.exceptions.IncompleteRead | http.client.IncompleteRead):
            missing = cause.expected
            rest = f", {missing} bytes short" if isinstance(missing, int) and missing > 0 else ""
            return TransientFailure(f"the body broke off{rest}")
        if isinstance(cause, urllib3.exceptions.ReadTimeoutError | TimeoutError):
            return TransientFailure("the body stopped arriving within the time allowed")
        if isinstance(cause, urllib3.exceptions.DecodeError):
            return TransientFailure("the body could not be decompressed")
    return TransientFailure("the connection broke while the body arrived")


def malformed(body: bytes, error: Exception, where: str) -> Exception:
    """What a whole body is that is no JSON. What a server or proxy may send once in a while is transient; a
    number that JSON does not have is how this source writes, and final."""
    start = body[:200].lstrip()
    if not start:
        return TransientFailure("an empty body instead of JSON")
    if start[:1] == b"<":
        return TransientFailure(f"an HTML or XML page instead of JSON: {_shown(start)}")
    at = _offset(error)
    number = _NOT_JSON.match(body, _start_of_word(body, at)) if at is not None else None
    if number is not None or "out of range" in str(error):
        named = _shown(number[0]) if number is not None else "a number beyond what can be read"
        return InvalidPage(
            f"{named} in the answer: that is no number of JSON",
            where=where,
            remedy="have the source send null or text there",
        )
    if "truncated" in str(error):
        return TransientFailure(f"the JSON breaks off after {len(body)} bytes")
    return TransientFailure(f"no JSON: {error}; it begins with {_shown(start)}", is_answer=True)


def retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or a date, ten years at most (no clock can be
    set by the longest that can be written); None where it says nothing usable."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return min(float(header), _TEN_YEARS)
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return min(max(0.0, (moment - now).total_seconds()), _TEN_YEARS)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that it wraps, as causes or as arguments, as requests and urllib3 do."""
    seen: set[int] = set()
    pending: list[object] = [error]
    while pending:
        one = pending.pop(0)
        if isinstance(one, BaseException) and id(one) not in seen:
            seen.add(id(one))
            yield one
            pending += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]


def _offset(error: Exception) -> int | None:
    found = re.search(r"byte (\d+)", str(error)) if isinstance(error, msgspec.DecodeError) else None
    return int(found[1]) if found else None


def _start_of_word(body: bytes, at: int) -> int:
    while at > 0 and (body[at - 1 : at].isalnum() or body[at - 1 : at] in (b"-", b"+", b".")):
        at -= 1
    return at


def _shown(text: bytes) -> str:
    plain = text.decode("utf-8", "replace")
    line = "".join(character if character.isprintable() else " " for character in plain[:_SHOWN])
    return f"`{line}…`" if len(plain) > _SHOWN else f"`{line}`"
