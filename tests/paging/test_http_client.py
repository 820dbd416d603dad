import gzip
import socket
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime

import pytest
from http_script import HttpScript, Reply, http_script

from gapless.errors import InvalidPage, SourceUnavailable, TokenExpired
from gapless.paging import http_client
from gapless.paging.http_client import HttpClient, Request
from gapless.paging.http_config import ClientConfig
from gapless.paging.secrets import Secret
from gapless.testing import ManualClock

FINE = Reply({"fine": True})
WHERE = "partition p7, page 0123456789"
TOKEN = "tok-s3cr3t"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def client_of(script: HttpScript | str, clock: ManualClock, **retry: object) -> HttpClient:
    config = ClientConfig.model_validate({"timeout": {"connect": "2s", "read": "200ms"}, "retry": retry})
    url = script if isinstance(script, str) else script.url
    return HttpClient(url, {"X-Tenant": "t1"}, Secret(TOKEN), config, clock)


def get(
    script: HttpScript | str, clock: ManualClock, request: Request | None = None, **retry: object
) -> object:
    client = client_of(script, clock, **retry)
    try:
        return client.get_json(request or Request("/x", where=WHERE)).value
    finally:
        client.close()


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


def test_one_connection_serves_many_requests(clock: ManualClock) -> None:
    with http_script(FINE) as script:
        client = client_of(script, clock)
        for _ in range(5):
            client.get_json(Request("/x"))
        client.close()
    assert len({asked.connection for asked in script.asked}) == 1


def test_headers_parameters_and_the_bearer_token_are_sent(clock: ManualClock) -> None:
    with http_script(FINE) as script:
        get(script, clock, Request("/a%2Fb", [("cursor", "a b&c/ü=+"), ("k", "1"), ("k", "2")]))
    (asked,) = script.asked
    assert asked.path == "/a%2Fb?cursor=a+b%26c%2F%C3%BC%3D%2B&k=1&k=2"
    assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["X-Tenant"] == "t1"
    assert asked.headers["Accept"] == "application/json"
    assert asked.headers["User-Agent"].startswith("gapless/")


def test_integers_come_back_exactly_at_any_size(clock: ManualClock) -> None:
    with http_script(
        Reply(b'{"n": [18446744073709551617, -9223372036854775809, 9007199254740993]}')
    ) as script:
        assert get(script, clock) == {"n": [18446744073709551617, -9223372036854775809, 9007199254740993]}


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Reply(status=503), "HTTP 503 Service Unavailable"),
        (Reply(status=429), "HTTP 429 Too Many Requests"),
        (Reply(b'{"events": [1, 2', length=400), "the body broke off, 384 bytes short"),
        (Reply(b'{"events": [1, 2]}', length=10), "the JSON breaks off after 10 bytes"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}"), "the body broke off"),
        (
            Reply(b"<html>down</html>", headers={"Content-Type": "text/html"}),
            "an HTML or XML page instead of JSON",
        ),
        (Reply(b""), "an empty body instead of JSON"),
        (Reply(b'{"a": 1'), "the JSON breaks off after 7 bytes"),
        (
            Reply(b"\x1f\x8b broken", headers={"Content-Encoding": "gzip"}),
            "the body could not be decompressed",
        ),
        (Reply(drop=True), "the connection was closed without an answer, or with one that is no HTTP"),
        (
            Reply(raw=b"SSH-2.0-x\r\n\r\n"),
            "the connection was closed without an answer, or with one that is no HTTP",
        ),
        (Reply(hang=True), "no answer within 0.2 s"),
    ],
)
def test_what_may_pass_is_asked_again_and_else_said_with_partition_and_page(
    clock: ManualClock, fault: Reply, said: str
) -> None:
    with http_script(fault, FINE) as script:
        assert get(script, clock) == {"fine": True}
    assert clock.slept == [1.0]
    with http_script(fault) as script:
        with pytest.raises(SourceUnavailable) as error:
            get(script, clock, attempts=2)
    assert said in error.value.what
    assert error.value.what.endswith("(asked 2 times)")
    assert error.value.where == WHERE


def test_a_body_that_stops_arriving_is_asked_for_again(clock: ManualClock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        client = client_of(f"http://127.0.0.1:{server.getsockname()[1]}", clock, attempts=1)
        import threading

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"a": ')
                connection.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(SourceUnavailable, match="the body stopped arriving within the time allowed"):
            client.get_json(Request("/x"))
        client.close()
        thread.join()


def test_waits_double_up_to_the_maximum(clock: ManualClock) -> None:
    with http_script(Reply(status=500)) as script:
        with pytest.raises(SourceUnavailable, match="asked 7 times"):
            get(script, clock, attempts=7, backoff="500ms", max="5s")
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert len(script.asked) == 7


def test_retry_after_is_obeyed_as_seconds_and_as_a_date(clock: ManualClock) -> None:
    date = format_datetime(clock.now() + timedelta(seconds=37), usegmt=True)
    with http_script(
        Reply(status=429, headers={"Retry-After": "7"}),
        Reply(status=503, headers={"Retry-After": date}),
        FINE,
    ) as script:
        get(script, clock)
    assert clock.slept == [7.0, 30.0]


def test_a_retry_after_beyond_the_maximum_is_left_to_the_caller(clock: ManualClock) -> None:
    with http_script(Reply(status=503, headers={"Retry-After": "3600"})) as script:
        with pytest.raises(SourceUnavailable) as error:
            get(script, clock)
    assert error.value.retry_after == 3600.0
    assert clock.slept == []
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    "header", ["9" * 20, "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -1200"]
)
def test_a_retry_after_beyond_every_calendar_is_a_long_time(clock: ManualClock, header: str) -> None:
    with http_script(Reply(status=429, headers={"Retry-After": header})) as script:
        with pytest.raises(SourceUnavailable, match="and not to be asked again for 315,360,000 s") as error:
            get(script, clock)
    assert error.value.retry_after is not None
    assert clock.now() + timedelta(seconds=error.value.retry_after) > clock.now()
    assert clock.slept == []


@pytest.mark.parametrize(
    "header", ["soon", "-5", "1e9", "9999-99-99", "Wed, 21 Oct 2015 07:28:00 -99999999999999"]
)
def test_an_unreadable_retry_after_is_as_none(clock: ManualClock, header: str) -> None:
    with http_script(Reply(status=503, headers={"Retry-After": header}), FINE) as script:
        get(script, clock)
    assert clock.slept == [1.0]


def test_a_refused_connection_is_said_without_the_query(clock: ManualClock, closed_port: int) -> None:
    request = Request("/x", [("cursor", "c-s3cr3t")], WHERE, hidden=["c-s3cr3t"])
    with pytest.raises(SourceUnavailable, match="no connection: Connection refused") as error:
        get(f"http://127.0.0.1:{closed_port}", clock, request, attempts=1)
    assert "s3cr3t" not in str(error.value)


@pytest.mark.parametrize("cursor", ["2", "9", "50", "503"])
def test_a_cursor_that_tells_nothing_garbles_no_message(clock: ManualClock, cursor: str) -> None:
    request = Request("/x", [("cursor", cursor)], WHERE, hidden=[cursor])
    with http_script(Reply(status=502), Reply(status=429), Reply(status=503)) as script:
        for said in ("HTTP 502 Bad Gateway", "HTTP 429 Too Many Requests", "HTTP 503 Service Unavailable"):
            with pytest.raises(SourceUnavailable) as error:
                get(script, clock, request, attempts=1)
            assert error.value.what == said


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "HTTP 401 Unauthorized: the source does not accept the credentials"),
        (403, "HTTP 403 Forbidden: the source does not accept the credentials"),
        (404, 'HTTP 404 Not Found: {"error":"no *** *** here"}'),
        (400, 'HTTP 400 Bad Request: {"error":"no *** *** here"}'),
        (410, 'HTTP 410 Gone: {"error":"no *** *** here"}'),
        (304, "HTTP 304 Not Modified"),
    ],
)
def test_what_asking_again_does_not_help_is_said_at_once_and_without_secrets(
    clock: ManualClock, status: int, said: str
) -> None:
    request = Request("/x", [("cursor", "cur-5")], WHERE, hidden=["cur-5"])
    with http_script(Reply({"error": f"no {TOKEN} cur-5 here"}, status=status)) as script:
        with pytest.raises(InvalidPage) as error:
            get(script, clock, request)
    assert error.value.what.startswith(said)
    assert error.value.where == WHERE
    assert TOKEN not in str(error.value)
    assert "cur-5" not in str(error.value)
    assert clock.slept == []


def test_a_status_means_an_expired_token_only_where_it_is_declared(clock: ManualClock) -> None:
    with http_script(Reply(status=410)) as script:
        with pytest.raises(TokenExpired, match=r"the page token is dead \(HTTP 410\)"):
            get(script, clock, Request("/x", where=WHERE, expired={410}))
        with pytest.raises(InvalidPage, match="HTTP 410"):
            get(script, clock, Request("/x", where=WHERE))
    assert len(script.asked) == 2


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"position": NaN}', "`NaN`"),
        (b'{"position": -Infinity}', "`-Infinity`"),
        (b"[1, 2, Infinity]", "`Infinity`"),
        (b'{"position": 1e999}', "a number beyond what can be read"),
    ],
)
def test_numbers_that_json_does_not_have_are_named_and_final(
    clock: ManualClock, body: bytes, named: str
) -> None:
    with http_script(Reply(body)) as script:
        with pytest.raises(InvalidPage, match="that is no number of JSON") as error:
            get(script, clock)
    assert error.value.what.startswith(named)
    assert clock.slept == []


def test_what_is_no_json_in_the_end_is_an_invalid_page_that_shows_its_beginning(clock: ManualClock) -> None:
    with http_script(Reply(b"id,position\n1,2\n" * 40)) as script:
        with pytest.raises(InvalidPage, match=r"no JSON.*it begins with `id,position 1,2") as error:
            get(script, clock, attempts=3)
    assert len(script.asked) == 3
    assert len(error.value.what) < 300


def test_compressed_bodies_are_read(clock: ManualClock) -> None:
    body = gzip.compress(b'{"a": [1, 2, 3]}')
    with http_script(Reply(body, headers={"Content-Encoding": "gzip"})) as script:
        assert get(script, clock) == {"a": [1, 2, 3]}


@pytest.mark.parametrize("compressed", [False, True])
def test_a_body_beyond_the_limit_is_refused(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    monkeypatch.setattr(http_client, "MAX_BODY_BYTES", 1000)
    body = b'["' + b"x" * 2000 + b'"]'
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    with http_script(Reply(gzip.compress(body) if compressed else body, headers=headers), FINE) as script:
        with pytest.raises(InvalidPage, match="larger than"):
            get(script, clock)
    assert clock.slept == []


def test_what_is_left_of_a_broken_answer_is_not_taken_for_the_next(clock: ManualClock) -> None:
    with http_script(
        Reply(b'{"a": 1}HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"no": 1}', length=7), FINE
    ) as script:
        assert get(script, clock) == {"fine": True}
    assert len({asked.connection for asked in script.asked}) == 2


def test_a_redirect_within_the_origin_keeps_the_credentials(clock: ManualClock) -> None:
    with http_script(Reply(status=307, headers={"Location": "/y?z=1"}), FINE) as script:
        assert get(script, clock) == {"fine": True}
    assert [asked.path for asked in script.asked] == ["/x", "/y?z=1"]
    assert script.asked[1].headers["Authorization"] == f"Bearer {TOKEN}"


def test_a_redirect_to_another_origin_takes_no_credentials_along(clock: ManualClock) -> None:
    with http_script(FINE) as other:
        with http_script(Reply(status=302, headers={"Location": f"{other.url}/y"})) as script:
            assert get(script, clock) == {"fine": True}
    (asked,) = other.asked
    assert "Authorization" not in asked.headers
    assert "X-Tenant" not in asked.headers
    assert asked.headers["Accept"] == "application/json"


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_a_redirect_out_of_http_is_not_followed(clock: ManualClock, location: str) -> None:
    with http_script(Reply(status=302, headers={"Location": location})) as script:
        with pytest.raises(InvalidPage, match="does not follow"):
            get(script, clock)


def test_redirects_without_end_are_left(clock: ManualClock) -> None:
    with http_script(Reply(status=302, headers={"Location": "/x"})) as script:
        with pytest.raises(InvalidPage, match="more than 5 times"):
            get(script, clock)
    assert len(script.asked) == 6


def test_credentials_of_a_netrc_file_are_not_used(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    netrc = f"{tmp_path}/netrc"
    with open(netrc, "w") as file:
        file.write("machine 127.0.0.1 login u password n-s3cr3t\n")
    monkeypatch.setenv("NETRC", netrc)
    with http_script(FINE) as script:
        client = HttpClient(script.url, {}, None, ClientConfig(), clock)
        client.get_json(Request("/x"))
        client.close()
    assert "Authorization" not in script.asked[0].headers


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b" \r\n[1] \n", [1]),
        ('{"ü": "\u2028"}'.encode(), {"ü": "\u2028"}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
    ],
)
def test_json_is_read_as_servers_write_it(clock: ManualClock, body: bytes, value: object) -> None:
    with http_script(Reply(body)) as script:
        assert get(script, clock) == value


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a": "\xff"}', b'{"a": 1} x', b"9" * 5000, b"\xef\xbb\xbf"]
)
def test_no_body_ends_in_anything_but_an_error_of_the_source(clock: ManualClock, body: bytes) -> None:
    with http_script(Reply(body)) as script:
        with pytest.raises((InvalidPage, SourceUnavailable)) as error:
            get(script, clock, attempts=2)
    assert error.value.where == WHERE
    assert len(error.value.what) < 400
