"""How long after the source has certified a page the frontier through it is published, while streaming.

    python benchmarks/stream_latency.py [--pages 40 --every 0.7 --partitions 4 --poll 1] [--prism PATH]

A source grows by a certified page in each partition every so many seconds, all at once; the store is watched. Prints the delays
in polls, on the local engine, and on Prism (LOOPBACK) where its binary is given. Needs no extra.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from gapless.errors import StoreError
from gapless.progress import Bound
from gapless.reading import Progress

EVENTS = 10
JOB = """\
version: 1
scope: growing
domain: {{type: integer}}
source:
  type: http
  base_url: {url}
  partitions: {{list: {names}}}
  pages:
    path: "/partitions/{{partition.id}}/events"
    records: events
    next: {{type: cursor, from: next_cursor, param: cursor, end: "null"}}
    tail: token
  event: {{id: id, position: position}}
  certificate:
    page: {{position: complete_through.position, inclusive: complete_through.inclusive}}
range: {{start: 0}}
effect: {{type: parquet, path: {folder}/out}}
store: {{url: "sqlite:///{folder}/progress.db"}}
stream: {{poll: {poll}s, longest: {poll}s}}
"""


class Growing:
    """Every partition has the same positions; `certified` says when each page became complete."""

    def __init__(self) -> None:
        self.pages = 0
        self.certified: list[tuple[int, float]] = []

    def grow(self) -> None:
        self.pages += 1
        self.certified.append((self.pages * EVENTS - 1, time.monotonic()))

    def answer(self, partition: str, cursor: int) -> dict[str, object]:
        pages = self.pages
        rows = [
            {"id": f"{partition}-{position}", "position": position}
            for position in range(cursor * EVENTS, min(cursor + 1, pages) * EVENTS)
        ]
        through = min(cursor + 1, pages) * EVENTS - 1
        return {
            "events": rows,
            "next_cursor": str(min(cursor + 1, pages)),
            "complete_through": None if through < 0 else {"position": through, "inclusive": True},
        }


def serve(growing: Growing) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            cursor = int(parse_qs(url.query).get("cursor", ["0"])[0])
            body = json.dumps(growing.answer(url.path.split("/")[2], cursor)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is said of a request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def measure(given: argparse.Namespace, options: list[str]) -> list[float]:
    """Seconds from each certificate to the published frontier through it."""
    growing = Growing()
    growing.grow()
    server = serve(growing)
    with tempfile.TemporaryDirectory() as folder:
        names = json.dumps([f"p{number}" for number in range(given.partitions)])
        job = Path(folder, "job.yaml")
        url = f"http://127.0.0.1:{server.server_address[1]}"
        job.write_text(JOB.format(url=url, names=names, folder=folder, poll=given.poll))
        command = [str(Path(sys.executable).parent / "gapless"), "stream", str(job), *options]
        with Path(folder, "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            seen = watched(given, growing, f"sqlite:///{folder}/progress.db", process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(20)
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            server.shutdown()
        if len(seen) < given.pages:
            raise SystemExit(f"only {len(seen)} frontiers came\n{Path(folder, 'log').read_text()[-3000:]}")
    return seen


def watched(
    given: argparse.Namespace, growing: Growing, store: str, process: subprocess.Popen
) -> list[float]:
    """Grow the source and watch the frontier, once it has moved for the first time."""
    delays: list[float] = []
    last = time.monotonic() + 120
    growing_since = None
    while time.monotonic() < last and process.poll() is None:
        try:
            with Progress(store) as progress:
                while time.monotonic() < last and process.poll() is None and len(delays) < given.pages:
                    frontier = progress.scope("growing").frontier
                    now = time.monotonic()
                    if frontier is not None:
                        if growing_since is None:
                            growing_since = now
                            growing.certified.clear()
                            threading.Thread(target=grow, args=(given, growing), daemon=True).start()
                        while growing.certified and frontier.bound >= Bound.through(growing.certified[0][0]):
                            delays.append(now - growing.certified.pop(0)[1])
                    time.sleep(0.01)
        except StoreError:
            time.sleep(0.05)
        if len(delays) >= given.pages:
            break
    return delays


def grow(given: argparse.Namespace, growing: Growing) -> None:
    """Irregularly, so that it does not keep step with the polls."""
    spread = random.Random(1)
    for _ in range(given.pages):
        time.sleep(given.every * spread.uniform(0.5, 1.5))
        growing.grow()


def show(given: argparse.Namespace, engine: str, delays: list[float]) -> None:
    polls = sorted(delay / given.poll for delay in delays)
    print(
        f"{engine}, {given.partitions} partitions, poll {given.poll} s, {len(polls)} pages: certificate to published frontier"
        f" median {statistics.median(polls):.2f} polls, 90 % {polls[int(len(polls) * 0.9)]:.2f},"
        f" longest {polls[-1]:.2f}",
        flush=True,
    )


def main(given: argparse.Namespace) -> None:
    show(given, "local", measure(given, []))
    if given.prism:
        options = [
            "--",
            "--runner=PrismRunner",
            f"--prism_location={given.prism}",
            "--environment_type=LOOPBACK",
        ]
        show(given, "Prism", measure(given, options))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--every", type=float, default=0.7)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--poll", type=float, default=1)
    parser.add_argument("--prism", default=os.environ.get("PRISM"))
    main(parser.parse_args())
