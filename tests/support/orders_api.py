"""The API that the README's job file reads: two partitions of orders behind a bearer token."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

TOKEN = "an-orders-token"
PAGE = 50
ORDERS = {"eu": range(0, 400, 2), "us": range(1, 400, 2)}


class _Orders(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "who are you?"})
            return
        parts = url.path.strip("/").split("/")
        if parts == ["partitions"]:
            self._answer(200, {"partitions": list(ORDERS)})
        elif len(parts) == 3 and parts[1] in ORDERS:
            self._answer(200, _page(parts[1], parse_qs(url.query).get("cursor", ["0"])[0]))
        else:
            self._answer(404, {"error": "nothing here"})

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _page(partition: str, cursor: str) -> dict[str, object]:
    start = int(cursor)
    positions = ORDERS[partition][start : start + PAGE]
    last = start + PAGE >= len(ORDERS[partition])
    events = [{"id": f"o-{n}", "position": n, "amount_cents": 100 * n, "currency": "EUR"} for n in positions]
    bound = {"position": 400, "inclusive": False} if last else {"position": positions[-1], "inclusive": True}
    return {"events": events, "next_cursor": None if last else str(start + PAGE), "complete_through": bound}


@contextmanager
def orders_api() -> Iterator[str]:
    """Serve it on loopback; its base URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Orders) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
