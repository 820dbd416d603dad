"""An HTTP API of partitioned events that does everything to its reader that an API may do, and says the truth all the same.

Which events exist, and what may be done to the reader, `hostile_universe` says. Everything else is drawn anew at each request:
where a page is cut, whether it is empty, certified, repeated at its edge, or not answered as it should be. Standard library only;
thread-safe; in a process of its own, each knob by its name:

    python hostile_api.py --port 0 --seed 7 --partitions 4 --events 500        prints its port, serves until it is killed

    GET /partitions                             {"partitions": [{"id": "p0", ...}, ...], "routing_generation": "r1"}
    GET /partitions/{id}/events[?cursor=|since=]
        {"events": [...], "next_cursor": TEXT | null, "complete_through": {"position": INT, "inclusive": BOOL} | null}
    GET /stats       requests, faults by name, events and pages served, the highest certificate of each partition, and the
                     partitions of which somebody waits at the gate
    GET /release     the stalled partition answers from now on, and so does what is behind the gate
    GET /grow?by=N   N more events of each partition are visible
"""

import argparse
import base64
import json
import random
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from hostile_universe import END, HOSTILE, Knobs, partition_names, token_text, universe

GENERATION = "r1"
LATE_BY = 5
"""How many events later the one comes that `event_behind_bound` holds back."""


class HostileApi:
    """The server, in this process: `with HostileApi(Knobs(seed=7)) as api: ... api.url`."""

    def __init__(self, knobs: Knobs, port: int = 0) -> None:
        self.knobs = knobs
        self.data = _Data(knobs)
        handler = type("Handler", (_Handler,), {"data": self.data})
        self._server = _Server(("127.0.0.1", port), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "HostileApi":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.data.closing.set()
        self.data.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def serve_for_ever(self) -> None:
        self._server.serve_forever()


@dataclass
class _Reply:
    """What goes over the wire. `announced` is the Content-Length where it is to lie."""

    status: int
    body: bytes
    content_type: str = "application/json"
    retry_after: int = -1
    announced: int | None = None
    chunked: bool = False
    close: bool = False


class _Data:
    """Everything the handlers share, behind one lock."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.universe = universe(knobs)
        self.positions = {name: [e["position"] for e in events] for name, events in self.universe.items()}
        self.closing = threading.Event()
        self.stalled = knobs.stall >= 0
        self.visible = knobs.events if knobs.visible < 0 else min(knobs.visible, knobs.events)
        self.gate = threading.Event()
        self._waiting: set[str] = set()
        self._stall_name = partition_names(knobs)[knobs.stall] if self.stalled else ""
        self._lock = threading.Lock()
        self._draw = random.Random(f"{knobs.seed}/requests")
        self._serial = 0
        self._dead: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._certified: dict[str, tuple[int, bool]] = {}

    def count(self, what: str, by: int = 1) -> None:
        with self._lock:
            self._counts[what] += by

    def stats(self) -> dict[str, object]:
        with self._lock:
            certified = {p: {"position": at, "inclusive": inc} for p, (at, inc) in self._certified.items()}
            return {**self._counts, "certified": certified, "waiting": sorted(self._waiting)}

    def partitions(self) -> dict[str, object]:
        listed = [{"id": name, "n": n} for n, name in enumerate(self.universe)]
        return {"partitions": listed, "routing_generation": GENERATION}

    def fault(self) -> str | None:
        """Which way of not answering is drawn for this request."""
        knobs = self.knobs
        rates = {
            "429": knobs.rate_429,
            "500": knobs.rate_500,
            "503": knobs.rate_503,
            "hang": knobs.rate_hang,
            "truncated": knobs.rate_truncated,
            "html": knobs.rate_html,
            "length": knobs.rate_length,
            "drop": knobs.rate_drop,
        }
        with self._lock:
            at = self._draw.random()
        for name, rate in rates.items():
            if at < rate:
                self.count(f"fault_{name}")
                return name
            at -= rate
        return None

    def events(self, name: str, cursor: str | None, since: str | None) -> _Reply:
        if name not in self.universe:
            return _Reply(404, b'{"error": "no such partition"}')
        with self._lock:
            index, seen_back = self._where(name, cursor, since)
            if index is None or cursor in self._dead:
                return _Reply(410, b'{"error": "the cursor is no longer valid"}')
            gated = self.knobs.gate >= 0 and index >= self.knobs.gate and not self.gate.is_set()
            if gated:
                self._waiting.add(name)
            if cursor is not None and self._draw.random() < self.knobs.rate_expired:
                self._dead.add(cursor)
                self._counts["fault_expired"] += 1
                return _Reply(410, b'{"error": "the cursor has expired"}')
            if self.stalled and name == self._stall_name and index >= self.knobs.stall_after:
                self._counts["fault_stalled"] += 1
                return _Reply(503, b"{}")
            page = None if gated else self._page(name, index, seen_back, cursor)
            if page is not None:
                self._counts["pages"] += 1
                self._counts["events"] += len(page["events"])
        if page is None:
            self.gate.wait()
            return self.events(name, cursor, since)
        self.closing.wait(self.knobs.pause)
        return _Reply(200, json.dumps(page, ensure_ascii=False).encode())

    def _where(self, name: str, cursor: str | None, since: str | None) -> tuple[int | None, bool]:
        if cursor is not None:
            try:
                of, index, flag, _ = base64.urlsafe_b64decode(cursor).decode().rsplit("|", 3)
            except ValueError:
                return None, False
            return (int(index), flag == "1") if of == name else (None, False)
        if since is not None:
            cut = self._draw.choice((bisect_left, bisect_right))
            return min(cut(self.positions[name], int(since)), self.visible), False
        return 0, False

    def _token(self, name: str, index: int, flag: bool = False) -> str:
        self._serial += 1
        return token_text(name, index, flag, self._serial)

    def grow(self, by: int) -> None:
        with self._lock:
            self.visible = min(self.visible + by, self.knobs.events)

    def _page(self, name: str, index: int, seen_back: bool, asked: str | None) -> dict[str, object]:
        total, middle = self.visible, len(self.positions[name]) // 2
        broken = self.knobs.break_promise
        if broken == "certificate_went_back" and index == middle and not seen_back:
            low = {"position": self.positions[name][0], "inclusive": False}
            return {"events": [], "next_cursor": self._token(name, index, True), "complete_through": low}
        size = 0 if self._drawn(self.knobs.rate_empty) else self._draw.randint(1, self.knobs.page)
        stop = self._cut(index, min(index + size, total), middle)
        events = self._slice(name, index, stop, middle)
        all_there = total == len(self.positions[name])
        ends = all_there and stop == total and (index == total or not self._drawn(self.knobs.rate_empty))
        certificate = self._certificate(name, index, stop, ends, must=ends or stop == middle + LATE_BY)
        if broken == "certificate_behind_events" and index <= middle < stop:
            certificate = (self.positions[name][index], False)
        if certificate is not None and broken == "none":
            self._certified[name] = max(certificate, self._certified.get(name, certificate))
        return {
            "events": events,
            "next_cursor": None if ends else self._following(name, index, stop, asked),
            "complete_through": None
            if certificate is None
            else {"position": certificate[0], "inclusive": certificate[1]},
        }

    def _following(self, name: str, index: int, stop: int, asked: str | None) -> str:
        """The next cursor; where nothing more is visible mostly the one that was asked with, as long as it lives."""
        if asked is not None and index == stop == self.visible and self._drawn(0.7):
            return asked
        return self._token(name, stop)

    def _cut(self, index: int, stop: int, middle: int) -> int:
        """Where a promise is to be broken, pages are cut so that nothing else is broken with it."""
        broken = self.knobs.break_promise
        if broken == "certificate_went_back" and index < middle:
            return min(stop, middle)
        if broken == "event_behind_bound" and index < middle + LATE_BY:
            return min(stop, middle + LATE_BY)
        if broken == "certificate_behind_events":
            if index < middle - LATE_BY:
                return min(stop, middle - LATE_BY)
            if index == middle - LATE_BY:
                return middle + LATE_BY
        return stop

    def _slice(self, name: str, index: int, stop: int, middle: int) -> list[dict[str, object]]:
        events = self.universe[name][index:stop]
        if self.knobs.break_promise == "event_behind_bound":
            late = self.universe[name][middle]
            events = [event for event in events if event is not late]
            if index == middle + LATE_BY and stop > index:
                events.insert(0, late)
            return events
        if index > 0 and events and self._drawn(self.knobs.rate_duplicate):
            events.insert(0, self.universe[name][index - 1])
        if events and self._drawn(self.knobs.rate_duplicate):
            events.append(events[-1])
        return events

    def _certificate(
        self, name: str, index: int, stop: int, ends: bool, must: bool
    ) -> tuple[int, bool] | None:
        """A true bound, at least before the page's last position, and never below what another page may
        have said."""
        positions = self.positions[name]
        if ends:
            return END, True
        if self._drawn(self.knobs.rate_uncertified) and not must:
            return None
        following = (positions[stop], False) if stop < len(positions) else (positions[-1], True)
        if stop == index or positions[stop - 1] == following[0]:
            return following
        last = positions[stop - 1]
        return self._draw.choice(((last, True), (following[0] - 1, True), following))

    def _drawn(self, rate: float) -> bool:
        return self._draw.random() < rate


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle of an answer is no news here."""


class _Handler(BaseHTTPRequestHandler):
    data: _Data
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        if parts == ["stats"]:
            return self._send(_Reply(200, json.dumps(self.data.stats()).encode()))
        if parts == ["release"]:
            self.data.stalled = False
            self.data.gate.set()
            return self._send(_Reply(200, b"{}"))
        if parts == ["grow"]:
            self.data.grow(int(parse_qs(url.query)["by"][0]))
            return self._send(_Reply(200, b"{}"))
        self.data.count("requests")
        fault = self.data.fault()
        if fault == "drop":
            self.close_connection = True
            return None
        if fault == "hang":
            self.data.closing.wait(self.data.knobs.hang)
            self.close_connection = True
            return None
        reply = self._answer(parts, parse_qs(url.query))
        return self._send(self._spoiled(reply, fault))

    def _answer(self, parts: list[str], query: dict[str, list[str]]) -> _Reply:
        wanted = self.data.knobs.token
        if wanted and self.headers.get("Authorization") != f"Bearer {wanted}":
            return _Reply(401, b'{"error": "no"}')
        if parts == ["partitions"]:
            return _Reply(200, json.dumps(self.data.partitions(), ensure_ascii=False).encode())
        if len(parts) == 3 and parts[0] == "partitions" and parts[2] == "events":
            return self.data.events(parts[1], query.get("cursor", [None])[0], query.get("since", [None])[0])
        return _Reply(404, b'{"error": "nothing here"}')

    def _spoiled(self, reply: _Reply, fault: str | None) -> _Reply:
        if fault in ("429", "500", "503"):
            return _Reply(int(fault), b'{"error": "later"}', retry_after=self.data.knobs.retry_after)
        if fault == "html":
            return _Reply(200, b"<html><body>Bad gateway, try later</body></html>", content_type="text/html")
        if fault == "length":
            return _Reply(reply.status, reply.body, announced=max(len(reply.body) - 7, 0), close=True)
        if fault == "truncated":
            half = reply.body[: len(reply.body) // 2]
            if len(half) % 2:
                return _Reply(reply.status, half, announced=len(reply.body), close=True)
            return _Reply(reply.status, half, chunked=True, close=True)
        return reply

    def _send(self, reply: _Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        if reply.retry_after >= 0:
            self.send_header("Retry-After", str(reply.retry_after))
        if reply.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            body = f"{len(reply.body) + 10:x}\r\n".encode() + reply.body
        else:
            self.send_header(
                "Content-Length", str(len(reply.body) if reply.announced is None else reply.announced)
            )
            body = reply.body
        self.close_connection = self.close_connection or reply.close
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description="A hostile, truthful HTTP API of partitioned events.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--hostile", action="store_true", help="every fault at once, but hanging")
    for knob in fields(Knobs):
        parser.add_argument(f"--{knob.name.replace('_', '-')}", type=type(knob.default), default=None)
    given = vars(parser.parse_args())
    chosen = dict(HOSTILE) if given.pop("hostile") else {}
    port = given.pop("port")
    chosen.update({name: value for name, value in given.items() if value is not None})
    api = HostileApi(Knobs(**chosen), port)
    print(api.port, flush=True)
    api.serve_for_ever()


if __name__ == "__main__":
    main()
