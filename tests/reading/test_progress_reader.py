"""`gapless.Progress`, over a real store."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

import gapless
from gapless.errors import ConfigurationError, NotReached, PositionError, StoreError, UnknownScope
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, ChainState, TimestampDomain
from gapless.reading import Claim, DataFile, Reached
from gapless.store import Store, open_store
from gapless.store.records import Blocker, ChainRow, Promotion, ScopeIdentity
from gapless.testing import ManualClock

DOMAIN = TimestampDomain("s")
HOUR = 3600


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """Scope `orders` with partitions eu and us, both taken by run 1."""
    with closing(open_store(store_url, create=True)) as store:
        store.register_scope(ScopeIdentity("orders", DOMAIN, {"path": "/"}, Bound.before(0)))
        number = store.begin_run("orders", "run-1", "local")
        listed = [ListedPartition(Partition(name, {})) for name in ("eu", "us")]
        for row in store.observe("orders", Assignment(listed)).tasks:
            store.take(row.chain, number)
        yield store


@pytest.fixture
def orders(store: Store, store_url: str) -> Iterator[gapless.reading.ScopeProgress]:
    with gapless.Progress(store_url) as progress:
        yield progress.scope("orders")


def test_the_newest_run_is_lost_where_it_is_silent(
    store: Store, store_url: str, orders: gapless.reading.ScopeProgress
) -> None:
    def states() -> tuple[str, str]:
        assert orders.run is not None
        return orders.run.state, orders.status()["run"]["state"]

    assert states() == ("running", "running")
    long_ago = ManualClock(datetime.now(timezone.utc) - timedelta(seconds=61))
    with closing(open_store(store_url, clock=long_ago)) as silent:
        silent.begin_run("orders", "run-2", "DataflowRunner")
    assert states() == ("lost", "lost")
    store.heartbeat("run-2")
    assert states() == ("running", "running")
    store.end_run("run-2", "stopped")
    assert states() == ("stopped", "stopped")


def row_of(store: Store, partition: str) -> ChainRow:
    return next(row for row in store.snapshot("orders").chains if row.partition == partition)


def promote(store: Store, partition: str, hour: int, rows: int = 10) -> None:
    row = row_of(store, partition)
    path = f"/out/{partition}-{row.sequence}.parquet" if rows else None
    bound = Bound.through(hour * HOUR)
    plain = Promotion(
        row,
        1,
        row.page_token,
        f"t{row.sequence + 1}",
        bound,
        "certified",
        bound,
        False,
        rows,
        path,
        "d",
        rows,
    )
    assert store.promote(plain) is not None
    store.publish("orders", 1)


def test_nothing_is_claimed_before_everybody_has_a_bound(
    store: Store, orders: gapless.reading.ScopeProgress
) -> None:
    assert orders.frontier is None
    promote(store, "eu", 1)
    assert orders.frontier is None
    assert [(name, blocker.code) for name, blocker in orders.blockers()] == [("us", "not_started")]


def test_the_claim_is_the_lowest_bound_with_where_it_starts(
    store: Store, orders: gapless.reading.ScopeProgress
) -> None:
    promote(store, "eu", 2)
    promote(store, "us", 1)
    claim = orders.frontier
    assert claim is not None
    assert claim == Claim(
        bound=Bound.through(HOUR),
        position="1970-01-01T01:00:00Z",
        inclusive=True,
        after=Bound.before(0),
        basis="certified",
        list_certified=False,
        membership_epoch=1,
        lineage=1,
        published_at=claim.published_at,
    )
    assert claim.published_at is not None


def test_files_are_those_of_the_manifest(store: Store, orders: gapless.reading.ScopeProgress) -> None:
    promote(store, "us", 1)
    promote(store, "eu", 1)
    promote(store, "eu", 2, rows=0)
    promote(store, "eu", 3)
    assert orders.files() == [
        DataFile("/out/eu-0.parquet", "eu", 0, 10, Bound.through(HOUR)),
        DataFile("/out/eu-2.parquet", "eu", 2, 10, Bound.through(3 * HOUR)),
        DataFile("/out/us-0.parquet", "us", 0, 10, Bound.through(HOUR)),
    ]
    assert [file.path for file in orders.files(through="1970-01-01T01:00:00Z")] == [
        "/out/eu-0.parquet",
        "/out/us-0.parquet",
    ]


def test_files_through_what_is_not_complete_are_refused(
    store: Store, orders: gapless.reading.ScopeProgress
) -> None:
    promote(store, "eu", 1)
    promote(store, "us", 1)
    with pytest.raises(NotReached, match="not complete through 1970-01-01T01:00:01Z"):
        orders.files(through="1970-01-01T01:00:01Z")


class Acting(ManualClock):
    """Does something at each sleep."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        super().__init__()
        self._actions = list(actions)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self._actions:
            self._actions.pop(0)()


def test_waiting_ends_where_it_is_reached_blocked_or_out_of_time(store: Store, store_url: str) -> None:
    promote(store, "eu", 1)
    promote(store, "us", 1)
    clock = Acting(lambda: promote(store, "eu", 3), lambda: promote(store, "us", 2))
    with gapless.Progress(store_url, clock) as progress:
        orders = progress.scope("orders")
        assert orders.wait_through("1970-01-01T02:00:00Z", timeout=60)
        assert len(clock.slept) == 2

        not_yet = orders.wait_through("1970-01-01T03:00:00Z", timeout=1.5)
        assert not not_yet
        assert (not_yet.reached, not_yet.blocker) == (Reached.NOT_YET, None)
        assert clock.slept[2:] == [1.0, 0.5]

        assert store.hold(row_of(store, "us"), ChainState.HELD, Blocker("unsettled_event", "no", "e1", 7300))
        blocked = orders.wait_through("1970-01-01T03:00:00Z")
        assert not blocked
        assert blocked.reached is Reached.BLOCKED
        assert blocked.holding is not None
        assert (blocked.holding.row.partition, blocked.holding.blocker.event_id) == ("us", "e1")
        assert len(clock.slept) == 4


def test_other_text_than_a_position_is_refused(orders: gapless.reading.ScopeProgress) -> None:
    for text in ("1970-01-01", "7", ""):
        with pytest.raises(PositionError):
            orders.wait_through(text)
        with pytest.raises(PositionError):
            orders.files(through=text)


def test_an_unknown_scope_names_the_known_ones(store: Store, store_url: str) -> None:
    with gapless.Progress(store_url) as progress:
        assert progress.scopes() == ["orders"]
        with pytest.raises(UnknownScope, match="scopes of this store: orders"):
            progress.scope("order")


def test_it_cannot_write(store: Store, store_url: str) -> None:
    with gapless.Progress(store_url) as progress:
        with pytest.raises(StoreError):
            progress.store.begin_run("orders", "another", "local")
    assert replace(store.scope("orders")).epoch == 1


def test_a_password_in_the_url_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="holds a password"):
        gapless.Progress("postgresql://me:secret@db/x")
