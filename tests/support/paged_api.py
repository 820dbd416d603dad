"""A paginated API of the test's own making: partitions of pages that are written down, and a hook before each answer."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class PagedApi:
    """`pages`: partition -> its pages, each {"events": [...], "complete_through": {...} | None}. `asked`: (partition, page)
    in order. `before_answer` is called with the same, and may wait."""

    pages: Mapping[str, Sequence[Mapping[str, Any]]]
    before_answer: Callable[[str, int], None] = lambda partition, page: None
    url: str = ""
    asked: list[tuple[str, int]] = field(default_factory=list)

    def answer(self, path: str, query: Mapping[str, list[str]]) -> tuple[int, Any]:
        parts = path.strip("/").split("/")
        if len(parts) != 3 or parts[1] not in self.pages:
            return 404, {"error": "nothing here"}
        number = int(query.get("cursor", ["0"])[0])
        pages = self.pages[parts[1]]
        self.asked.append((parts[1], number))
        self.before_answer(parts[1], number)
        last = number + 1 == len(pages)
        return 200, {**pages[number], "next_cursor": None if last else str(number + 1)}


def page(*positions: int, through: int | None = None, **fields: Any) -> dict[str, Any]:
    """Events at these positions; certified through the last of them, or `through` (-1: not at all)."""
    events = [{"id": f"e{position}", "position": position, **fields} for position in positions]
    bound = max(positions) if through is None else through
    return {
        "events": events,
        "complete_through": None if bound < 0 else {"position": bound, "inclusive": True},
    }


@contextmanager
def served(api: PagedApi) -> Iterator[PagedApi]:
    """Serve it on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            status, value = api.answer(url.path, parse_qs(url.query))
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Tests read what the command says, not this."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
