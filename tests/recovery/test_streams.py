"""Streams in processes of their own: growth, quiet, dead tokens, newcomers, signals, kills at every step, and other runs."""

import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from backfill_process import FILE_STEPS, SETTLING_STEPS, At
from growing_api import GrowingApi
from stream_site import SCOPE, StreamSite

from gapless.progress import Bound, ChainState
from gapless.store import open_store

KILLED = -signal.SIGKILL
STYLES = [("more", "token"), ("always", "token"), ("null", "last_page"), ("null", "since")]


def grown(api: GrowingApi, *names: str, through: int = 9) -> None:
    for name in names:
        api.add(name, *range(through + 1))
        api.certify(name, through)


def grow(api: GrowingApi, positions: range) -> None:
    for position in positions:
        for name in list(api.partitions):
            api.add(name, position, position)
            api.certify(name, position)


@contextmanager
def growing(api: GrowingApi, first: int, every: float = 0.05) -> Iterator[None]:
    """It grows by itself while this is open."""
    over = threading.Event()

    def work() -> None:
        position = first
        while not over.wait(every):
            grow(api, range(position, position + 1))
            position += 1

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


@pytest.mark.parametrize(("style", "tail"), STYLES)
def test_a_stream_follows_what_grows_and_stops_when_it_is_asked_to(
    tmp_path: Path, style: str, tail: str
) -> None:
    api = GrowingApi(style, page=4)
    grown(api, "a", "b")
    with StreamSite(tmp_path, api, tail=tail) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        site.oracle.look()
        for through in (12, 20):
            grow(api, range(through - 2, through + 1))
            site.until_frontier(Bound.through(through))
            site.oracle.look()
        api.certify("a", 50)
        api.certify("b", 40)
        site.until_frontier(Bound.through(40))
        assert site.stop(process) == 0, site.said()
        site.oracle.finish()
        with closing(open_store(site.store_url, readonly=True)) as store:
            snapshot = store.snapshot(SCOPE)
        assert snapshot.run is not None
        assert snapshot.run.state == "stopped"
        assert {row.state for row in snapshot.chains} == {ChainState.OPEN}


def test_a_quiet_stream_asks_seldom_and_promotes_nothing(tmp_path: Path) -> None:
    api = GrowingApi()
    grown(api, "a", "b")
    with StreamSite(tmp_path, api, stream={"poll": "200ms", "longest": "1s", "look": "1m"}) as site:
        process = site.start()
        before = site.until_frontier(Bound.through(9))
        threading.Event().wait(3.0)
        asked = len(api.asked)
        threading.Event().wait(3.0)
        # Once a second, each of two; twice where several polls fell together.
        assert 2 <= len(api.asked) - asked <= 14
        after = site.until(lambda one: True, "a snapshot")
        assert {r.chain: r.sequence for r in after.chains} == {r.chain: r.sequence for r in before.chains}
        assert site.stop(process) == 0


@pytest.mark.parametrize("step", [*SETTLING_STEPS, *FILE_STEPS])
def test_a_stream_that_is_killed_at_any_step_loses_nothing(tmp_path: Path, step: str) -> None:
    api = GrowingApi(page=4)
    grown(api, "a", "b")
    with StreamSite(tmp_path, api) as site:
        with growing(api, 10):
            assert site.ended(site.start(at=At(step, 3))) == KILLED, site.said()
        process = site.start()
        last = max(api.partitions["a"].certified, 9)
        grow(api, range(last + 1, last + 3))
        site.until_frontier(Bound.through(last + 2))
        assert site.stop(process) == 0, site.said()
        site.oracle.finish()


def test_two_signals_stop_it_at_once_and_the_next_one_goes_on(tmp_path: Path) -> None:
    api = GrowingApi()
    grown(api, "a")
    held = threading.Event()
    with StreamSite(tmp_path, api) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        asked = threading.Event()

        def hang(target: str) -> None:
            asked.set()
            held.wait(60)

        api.before.append(hang)
        assert asked.wait(30)
        site.stop_twice(process)
        held.set()
        api.before.clear()
        grow(api, range(10, 12))
        process = site.start()
        site.until_frontier(Bound.through(11))
        assert site.stop(process, signal.SIGINT) == 0
        site.oracle.finish()


def test_a_dead_token_restarts_at_the_bound(tmp_path: Path) -> None:
    api = GrowingApi("more", page=4)
    grown(api, "a")
    with StreamSite(tmp_path, api) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        expired = []
        api.dead = lambda offset: not expired and (expired.append(offset) or True)  # type: ignore[func-returns-value]
        grow(api, range(10, 15))
        site.until_frontier(Bound.through(14))
        assert expired
        assert site.stop(process) == 0
        site.oracle.finish()


def test_a_newcomer_enters_while_the_stream_goes_on_and_one_that_vanishes_holds(tmp_path: Path) -> None:
    api = GrowingApi()
    grown(api, "a", "b")
    with StreamSite(tmp_path, api) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        grown(api, "c", through=11)
        site.until(lambda one: one.scope.epoch == 2, "the newcomer")
        grow(api, range(12, 15))
        site.until_frontier(Bound.through(14))
        site.oracle.look()
        api.hidden.add("b")
        snapshot = site.until(
            lambda one: any(row.listed < one.scope.observation for row in one.chains), "the leaver"
        )
        assert snapshot.scope.frontier is not None
        assert site.stop(process) == 0
        site.oracle.finish()


def test_a_source_that_is_down_for_long_is_read_on_when_it_is_back(tmp_path: Path) -> None:
    api = GrowingApi()
    grown(api, "a", "b")
    down = threading.Event()
    with StreamSite(tmp_path, api) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        api.before.append(lambda target: 503 if down.is_set() and "/a/" in target else None)
        down.set()
        for through in (12, 15):
            grow(api, range(through - 2, through + 1))
            site.until(
                lambda one, to=through: any(
                    row.bound == Bound.through(to) for row in one.chains if row.partition == "b"
                ),
                "the other partition",
            )
        down.clear()
        site.until_frontier(Bound.through(15))
        assert site.stop(process) == 0
        site.oracle.finish()


def test_a_partition_that_does_not_answer_holds_nobody_up(tmp_path: Path) -> None:
    api = GrowingApi()
    grown(api, "a", "b", "c")
    answers = threading.Event()
    answers.set()
    with StreamSite(tmp_path, api) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        api.before.append(lambda target: None if "/a/" not in target or answers.wait(50) else 503)
        answers.clear()
        for through in (12, 15, 18):
            grow(api, range(through - 2, through + 1))
            site.until(
                lambda one, to=through: sum(row.bound == Bound.through(to) for row in one.chains) == 2,
                "the other partitions",
                20,
            )
        answers.set()
        site.until_frontier(Bound.through(18))
        assert site.stop(process) == 0
        site.oracle.finish()


def test_a_newer_stream_takes_over_and_the_older_one_ends(tmp_path: Path) -> None:
    api = GrowingApi()
    grown(api, "a", "b")
    with StreamSite(tmp_path, api) as site:
        older = site.start()
        site.until_frontier(Bound.through(9))
        newer = site.start()
        assert site.ended(older) == 4, site.said()
        grow(api, range(10, 15))
        site.until_frontier(Bound.through(14))
        assert site.stop(newer) == 0
        site.oracle.finish()


@pytest.mark.parametrize(("style", "tail"), [("more", "token"), ("null", "last_page"), ("null", "since")])
def test_a_backfill_takes_over_from_a_stream_and_a_stream_from_it(
    tmp_path: Path, style: str, tail: str
) -> None:
    api = GrowingApi(style, page=4)
    grown(api, "a", "b")
    with StreamSite(tmp_path, api, tail=tail) as site:
        assert site.backfill() == 0, site.said()
        grow(api, range(10, 13))
        stream = site.start()
        site.until_frontier(Bound.through(12))
        grow(api, range(13, 16))
        assert site.backfill() == 0, site.said()
        assert site.ended(stream) == 4, site.said()
        site.oracle.look()
        grow(api, range(16, 19))
        stream = site.start()
        site.until_frontier(Bound.through(18))
        assert site.stop(stream) == 0
        site.oracle.finish()


def test_a_late_event_is_told_and_ends_with_5(tmp_path: Path) -> None:
    api = GrowingApi(page=50)
    grown(api, "a")
    with StreamSite(tmp_path, api) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        grow(api, range(10, 12))
        site.until_frontier(Bound.through(11))
        api.add("a", 5)
        site.until(lambda one: one.violations == 1, "the violation")
        assert site.stop(process) == 5


def test_a_stream_ends_by_itself_where_its_range_is_proved(tmp_path: Path) -> None:
    api = GrowingApi()
    grown(api, "a", "b")
    with StreamSite(tmp_path, api, range={"start": 0, "stop": 20}) as site:
        process = site.start()
        site.until_frontier(Bound.through(9))
        grow(api, range(10, 25))
        assert site.ended(process) == 0, site.said()
        with closing(open_store(site.store_url, readonly=True)) as store:
            snapshot = store.snapshot(SCOPE)
        assert snapshot.scope.frontier is not None
        assert snapshot.scope.frontier >= Bound.before(20)
        assert snapshot.run is not None
        assert snapshot.run.state == "finished"


@pytest.mark.postgres
def test_a_stream_on_postgresql(tmp_path: Path, new_postgres_url: object) -> None:
    api = GrowingApi(page=4)
    grown(api, "a", "b")
    with StreamSite(tmp_path, api, new_postgres_url()) as site:  # type: ignore[operator]
        with growing(api, 10):
            assert site.ended(site.start(at=At("committed", 6))) == KILLED
        process = site.start()
        last = max(api.partitions["a"].certified, 9)
        site.until_frontier(Bound.through(last))
        assert site.stop(process) == 0, site.said()
        site.oracle.finish()
