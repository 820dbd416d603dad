"""A paginated event API on loopback that is fast enough not to be what is measured.

Every answer's bytes are made before the first request. P partitions of N pages of M events; opaque cursors; a certificate on
each page; `GET /requests` tells how many answers were given, and how many were held back at once at most.

    python event_api.py --partitions 8 --pages 100 --events 1000 [--delay-ms 50] [--port 0]

prints `ready PORT`. With --delay-ms each answer is held back so long, any number of them at once.
"""

import argparse
import asyncio
import base64
import json
from urllib.parse import parse_qs, urlsplit


def answers(partitions: int, pages: int, events: int) -> dict[str, bytes]:
    """Path and query -> body. A page of the same shape is encoded once and filled in, which keeps 10 M events cheap."""
    names = [f"p{number:04d}" for number in range(partitions)]
    found = {"/partitions": json.dumps({"routing_generation": "r1", "partitions": names}).encode()}
    for number, name in enumerate(names):
        for page in range(pages):
            cursor = _cursor(name, page)
            after = _cursor(name, page + 1) if page + 1 < pages else None
            found[f"/partitions/{name}/events{'?cursor=' + cursor if page else ''}"] = _page(
                name, number, partitions, page * events, events, after
            )
    return found


def _cursor(name: str, page: int) -> str:
    return base64.urlsafe_b64encode(f"{name}/{page}/opaque".encode()).decode().rstrip("=")


def _page(name: str, number: int, partitions: int, first: int, events: int, after: str | None) -> bytes:
    rows = []
    for ordinal in range(first, first + events):
        position = ordinal * partitions + number
        rows.append(
            {
                "id": f"{name}-{ordinal:09d}",
                "position": position,
                "kind": "order.updated",
                "customer": f"c{position % 9973:05d}",
                "amount_cents": position * 7919 % 100_000,
                "currency": "EUR",
                "note": "x" * 64,
                "flag": position % 3 == 0,
            }
        )
    last = (first + events - 1) * partitions + number
    page = {
        "events": rows,
        "next_cursor": after,
        "complete_through": {"position": last, "inclusive": True},
    }
    return json.dumps(page).encode()


class Answering(asyncio.Protocol):
    """One connection; requests are answered in the order they came."""

    def __init__(self, found: dict[str, bytes], delay: float, count: list[int]) -> None:
        self._found = found
        self._delay = delay
        self._count = count
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            target = self._received.split(b" ", 2)[1].decode()
            self._received = self._received[end + 4 :]
            self._answer(target)

    def _answer(self, target: str) -> None:
        self._count[0] += 1
        url = urlsplit(target)
        cursor = parse_qs(url.query).get("cursor")
        body = self._found.get(url.path + (f"?cursor={cursor[0]}" if cursor else ""))
        if url.path == "/requests":
            body = json.dumps({"requests": self._count[0], "most_at_once": self._count[2]}).encode()
        status = "200 OK" if body is not None else "404 Not Found"
        body = body if body is not None else b"{}"
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        answer = head.encode() + body
        if self._delay:
            self._count[1] += 1
            self._count[2] = max(self._count[2], self._count[1])
            asyncio.get_running_loop().call_later(self._delay, self._write_late, answer)
        else:
            self._transport.write(answer)

    def _write_late(self, answer: bytes) -> None:
        self._count[1] -= 1
        self._transport.write(answer)


async def serve(options: argparse.Namespace) -> None:
    found = answers(options.partitions, options.pages, options.events)
    count = [0, 0, 0]
    server = await asyncio.get_running_loop().create_server(
        lambda: Answering(found, options.delay_ms / 1000, count), "127.0.0.1", options.port
    )
    print("ready", server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(serve(parser.parse_args()))
