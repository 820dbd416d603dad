"""An HTTP server that answers what a test has written down, in turn, down to the bytes, and keeps what it
was asked."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec


@dataclass(frozen=True)
class Reply:
    """One answer. `length`: a Content-Length that need not be true; `hang`: no answer before the server is
    closed; `drop`: the connection is closed without one; `raw`: these very bytes instead of an answer."""

    body: object = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    hang: bool = False
    drop: bool = False
    raw: bytes | None = None

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    connection: int


class HttpScript:
    """`replies` are given in turn, the last one again and again; `asked` are the requests so far."""

    def __init__(self, replies: list[Reply]) -> None:
        self.replies = replies
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"script": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            return self.replies[min(len(self.asked), len(self.replies)) - 1]

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def http_script(*replies: Reply) -> Iterator[HttpScript]:
    script = HttpScript(list(replies))
    try:
        yield script
    finally:
        script.close()


class _Handler(BaseHTTPRequestHandler):
    script: HttpScript
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        reply = self.script.take(Asked(self.path, dict(self.headers), self.client_address[1]))
        if reply.hang:
            self.script.closing.wait(30)
        if reply.hang or reply.drop:
            self.close_connection = True
            return
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            self.close_connection = True
            return
        body = reply.content()
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(body) if reply.length is None else reply.length))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = reply.length is not None

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
