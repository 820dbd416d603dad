"""The flights API as a process of its own: it listens on loopback, tells its port, and ends when its standard input does.

    python -m gapless_pipelines.demo.server [--broken ID] [--delay-ms N]

So whoever started it need not outlive it to see it end.
"""

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from gapless_pipelines.demo.flights import read_departures
from gapless_pipelines.demo.flights_api import FlightsApi


class FlightsHandler(BaseHTTPRequestHandler):
    """One connection, kept open over its requests. Each answer is held back for `delay` seconds, as a network would."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, api: FlightsApi, lock: threading.Lock, delay: float, *connection: object) -> None:
        self._api = api
        self._lock = lock
        self._delay = delay
        super().__init__(*connection)  # type: ignore[arg-type]  # as socketserver passes them

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        with self._lock:
            answer = self._api.answer(url.path, dict(parse_qsl(url.query)))
        time.sleep(self._delay)
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the demo counts requests itself."""


class FlightsServer(ThreadingHTTPServer):
    """Listens on a free port of the loopback interface."""

    daemon_threads = True

    def __init__(self, api: FlightsApi, delay: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), partial(FlightsHandler, api, threading.Lock(), delay))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed in the middle of an answer is part of the demo; anything else is told."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="flights-api", description="serve the departures of 2013 on loopback"
    )
    parser.add_argument("--broken", metavar="ID", help="send this departure with a delay that is no number")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="hold each answer back that long")
    given = parser.parse_args(arguments)
    server = FlightsServer(FlightsApi(read_departures(), given.broken), given.delay_ms / 1000)
    threading.Thread(target=_shut_down_at_end_of_input, args=(server,), daemon=True).start()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    with server:
        server.serve_forever(poll_interval=0.05)


def _shut_down_at_end_of_input(server: FlightsServer) -> None:
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
