"""A stream over time: what is certified is published, and nothing grows but what was read."""

import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from growing_api import GrowingApi
from stream_site import SCOPE, StreamSite

from gapless.errors import StoreError
from gapless.progress import Bound
from gapless.store import open_store, schema

SECONDS = float(os.environ.get("GAPLESS_STREAM_SECONDS", "120"))
"""Half of it with kills, half of it one process whose memory is watched; ten minutes are 600."""
MB = 1024


def test_what_is_certified_while_a_stream_goes_on_is_published(tmp_path: Path) -> None:
    api = GrowingApi()
    for name in "abcd":
        api.add(name, *range(10))
        api.certify(name, 9)
    with StreamSite(tmp_path, api, stream={"poll": "500ms", "longest": "10s", "look": "10s"}) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        for position in range(10, 16):
            for name in "abcd":
                api.add(name, position)
                api.certify(name, position)
            site.until_frontier(Bound.through(position))
        assert site.stop(process) == 0
        site.oracle.finish()


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize(("style", "tail"), [("more", "token"), ("null", "last_page")])
def test_a_stream_over_time_is_true_and_flat(tmp_path: Path, style: str, tail: str) -> None:
    seed = int(os.environ.get("GAPLESS_SEED", "31"))
    api = GrowingApi(style, page=20)
    world = _World(api, seed)
    with StreamSite(tmp_path, api, tail=tail) as site, world.turning(), _watched(site):
        _killed_over_and_over(site, random.Random(seed + 1), SECONDS / 4)
        _watched_for_growth(site, SECONDS / 4)
        world.calm()
        process = site.start()
        site.until_frontier(Bound.through(min(one.certified for one in api.partitions.values())), 120)
        assert site.stop(process) == 0, site.said()
        site.oracle.finish()
        with closing(open_store(site.store_url, readonly=True)) as store:
            receipts = sa.select(sa.func.count()).select_from(schema.receipt)
            assert store._database.read(lambda connection: connection.execute(receipts).scalar_one()) == 0
    print(f"{site.oracle.looks} looks, {world.described()}")


class _World:
    """Turns growth, quiet, trouble and newcomers on and off, by a seed."""

    def __init__(self, api: GrowingApi, seed: int) -> None:
        self._api = api
        self._draw = random.Random(seed)
        self._over = threading.Event()
        self._at = 10
        self._dead = self._down = 0
        for name in "abc":
            api.add(name, *range(10))
            api.certify(name, 9)
        api.dead = self._is_dead
        api.before.append(self._is_down)

    @contextmanager
    def turning(self) -> Iterator[None]:
        thread = threading.Thread(target=self._turn, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(30)

    def calm(self) -> None:
        self._over.set()
        self._api.dead = lambda offset: False
        self._api.before.clear()

    def described(self) -> str:
        events = sum(len(one.events) for one in self._api.partitions.values())
        return f"{events} events, {len(self._api.partitions)} partitions, {self._dead} dead tokens, {self._down} answers of 503"

    def _turn(self) -> None:
        while not self._over.is_set():
            # Growth for a while, then quiet, in which only the certificates move, or nothing.
            for _ in range(self._draw.randint(5, 40)):
                self._grow(self._draw.randint(0, 12))
                if self._over.wait(0.05):
                    return
            certifies = self._draw.random() < 0.5
            for _ in range(self._draw.randint(1, 20)):
                if certifies:
                    self._grow(0)
                if self._over.wait(0.1):
                    return
            if len(self._api.partitions) < 8 and self._draw.random() < 0.2:
                name = f"n{len(self._api.partitions)}"
                self._api.add(name, *range(self._at))
                self._api.certify(name, self._at - 1)

    def _grow(self, most: int) -> None:
        self._at += 1
        for name in list(self._api.partitions):
            self._api.add(name, *[self._at] * self._draw.randint(0, most))
            self._api.certify(name, self._at)

    def _is_dead(self, offset: int) -> bool:
        dead = self._draw.random() < 0.01
        self._dead += dead
        return dead

    def _is_down(self, target: str) -> int | None:
        down = self._draw.random() < 0.02
        self._down += down
        return 503 if down else None


@contextmanager
def _watched(site: StreamSite) -> Iterator[None]:
    """The oracle looks again and again; leaving it raises what a look has raised."""
    over = threading.Event()
    found: list[BaseException] = []

    def watch() -> None:
        try:
            while not over.wait(0.5):
                try:
                    site.oracle.look()
                except StoreError:
                    # Not there yet.
                    continue
        except BaseException as error:  # noqa: BLE001 - raised again where the watch is left
            found.append(error)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    if found:
        raise found[0]


def _killed_over_and_over(site: StreamSite, draw: random.Random, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        process = site.start()
        process.join(draw.uniform(1.0, 8.0))
        if draw.random() < 0.3:
            # By the signal itself where that came before anybody listened.
            assert site.stop(process) in (0, -signal.SIGTERM), site.said()
        else:
            process.kill()
            assert site.ended(process) == -signal.SIGKILL, site.said()


def _watched_for_growth(site: StreamSite, seconds: float) -> None:
    """One process: its memory, and the store's bytes a promotion, do not grow between the second quarter and the last."""
    process = site.start()
    sizes, records = [], []
    for _ in range(40):
        process.join(seconds / 40)
        assert process.exitcode is None, site.said()
        sizes.append(_resident(process.pid))
        records.append(_bytes_a_record(site))
    assert site.stop(process) == 0, site.said()
    early, late = statistics.median(sizes[10:20]), statistics.median(sizes[30:])
    print(
        f"{early / MB:.0f} MB, later {late / MB:.0f} MB; {records[10]:.0f} bytes a record, later {records[-1]:.0f}"
    )
    assert late < early * 1.1 + 8 * MB
    assert records[-1] < records[10] * 1.3


def _resident(pid: int | None) -> int:
    """In KB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def _bytes_a_record(site: StreamSite) -> float:
    with closing(open_store(site.store_url, readonly=True)) as opened:
        count = sum(1 for _ in opened.promotions(SCOPE))
    store = Path(site.store_url.removeprefix("sqlite:///"))
    return sum(file.stat().st_size for file in store.parent.glob(f"{store.name}*")) / max(1, count)
