"""An HTTP API on loopback for as long as a `with` block lasts: each GET is answered by `answer`."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class NoAnswer(Exception):
    """Raised by `answer`: the connection is closed without one."""


class AnsweringApi:
    """What it says is up to the classes made of it."""

    def answer(self, target: str) -> tuple[int, dict[str, Any]]:
        """The status and the JSON document. Many threads ask at once."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Any:
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    api: AnsweringApi
    protocol_version = "HTTP/1.1"
    # One packet an answer.
    wbufsize = -1

    def do_GET(self) -> None:
        try:
            status, value = self.api.answer(self.path)
        except NoAnswer:
            self.close_connection = True
            return
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The tests' output is no place for it."""
