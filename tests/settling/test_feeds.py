"""Fetching ahead: what a feed gives, how far it runs ahead, and what is made of one that was left."""

import threading

import pytest

from gapless.errors import SourceUnavailable
from gapless.paging.page import Page, Partition
from gapless.paging.readahead import MAX_PAGES_AHEAD, FeedPool, PageFeed
from gapless.progress import Bound, ChainState
from gapless.settling.retrying import RetryPolicy
from gapless.settling.worker import Slice
from gapless.testing import ScriptedPage, ScriptedSource

A = Partition("a", {})
ROOM = 10_000
SOON = 20.0


def chain_of(pages: int, events: int = 1) -> ScriptedSource:
    tokens = [None, *(f"t{n}" for n in range(1, pages)), None]
    return ScriptedSource(
        {
            "a": {
                tokens[n]: ScriptedPage(
                    [(f"a{n}-{k}", n) for k in range(events)], tokens[n + 1], Bound.through(n)
                )
                for n in range(pages)
            }
        }
    )


class Gated:
    """A session whose fetches wait until they are let through, one by one."""

    def __init__(self, source: ScriptedSource) -> None:
        self._session = source.open()
        self.gate = threading.Semaphore(0)
        self.asked = threading.Semaphore(0)
        self.closed = False

    def fetch(self, partition: Partition, token: str | None) -> Page:
        self.asked.release()
        assert self.gate.acquire(timeout=SOON)
        return self._session.fetch(partition, token)

    def close(self) -> None:
        self.closed = True


def test_a_feed_gives_the_pages_in_order():
    feed = PageFeed(chain_of(3).open(), A, None, ROOM)
    pages = [feed.next(SOON) for _ in range(3)]
    assert [page.start_token for page in pages] == [None, "t1", "t2"]
    feed.join(SOON)
    assert feed.finished


def test_a_page_that_does_not_come_in_time_is_none_and_comes_later():
    gated = Gated(chain_of(2))
    feed = PageFeed(gated, A, None, ROOM)
    assert feed.next(0.0) is None
    gated.gate.release(2)
    assert feed.next(SOON).ids == ["a0-0"]
    assert feed.token == "t1"


def test_an_error_surfaces_behind_the_pages_before_it_and_stays():
    source = ScriptedSource(
        {"a": {None: ScriptedPage([("a1", 1)], "t1"), "t1": SourceUnavailable("HTTP 503")}}
    )
    feed = PageFeed(source.open(), A, None, ROOM)
    assert feed.next(SOON).ids == ["a1"]
    for _ in range(2):
        with pytest.raises(SourceUnavailable):
            feed.next(SOON)
    assert not feed.stands_at("t1")


def test_a_feed_runs_ahead_no_further_than_its_room():
    """The first page, whose size nobody knows; then only what fits, judged by the pages that wait."""
    source = chain_of(9, events=10)
    gated = Gated(source)
    gated.gate.release(9)
    feed = PageFeed(gated, A, None, room=30)
    for _ in range(3):
        assert gated.asked.acquire(timeout=SOON)
    assert not gated.asked.acquire(timeout=0.05)
    feed.next(SOON)
    assert gated.asked.acquire(timeout=SOON)
    feed.set_room(50)
    assert gated.asked.acquire(timeout=SOON)
    feed.stop()
    feed.join(SOON)
    assert len(source.fetches) in (5, 6)


def test_without_room_only_a_page_that_is_waited_for_is_fetched():
    """While a full run is promoted, nothing is fetched that a crash would have to read again."""
    gated = Gated(chain_of(3, events=10))
    gated.gate.release(3)
    feed = PageFeed(gated, A, None, room=0)
    assert not gated.asked.acquire(timeout=0.05)
    assert feed.next(SOON).start_token is None
    assert gated.asked.acquire(timeout=SOON)
    assert not gated.asked.acquire(timeout=0.05)
    assert feed.next(SOON).start_token == "t1"
    feed.stop()


def test_a_feed_runs_ahead_no_further_than_so_many_pages_however_small():
    gated = Gated(chain_of(MAX_PAGES_AHEAD + 9, events=0))
    gated.gate.release(MAX_PAGES_AHEAD + 9)
    feed = PageFeed(gated, A, None, ROOM)
    for _ in range(MAX_PAGES_AHEAD):
        assert gated.asked.acquire(timeout=SOON)
    assert not gated.asked.acquire(timeout=0.05)
    feed.stop()


def test_a_parked_feed_is_taken_up_where_it_stands_and_nowhere_else():
    source = chain_of(4)
    pool = FeedPool(source.open)
    feed = pool.take("a", A, None, ROOM)
    feed.next(SOON)
    pool.park("a", feed)
    assert pool.take("a", A, "t1", ROOM) is feed
    pool.park("a", feed)
    other = pool.take("a", A, "t2", ROOM)
    assert other is not feed
    assert other.next(SOON).start_token == "t2"
    pool.close()


def test_a_feed_that_came_to_the_end_is_never_taken_up_for_the_beginning():
    """The token of both is None: a feed that is through would give nothing for ever."""
    source = chain_of(1)
    pool = FeedPool(source.open)
    feed = pool.take("a", A, None, ROOM)
    assert feed.next(SOON).end
    pool.park("a", feed)
    again = pool.take("a", A, None, ROOM)
    assert again.next(SOON).ids == ["a0-0"]
    pool.close()


def test_pushed_out_feeds_are_stopped_and_their_sessions_used_again():
    source = chain_of(3)
    opened = []

    def open_session():
        opened.append(source.open())
        return opened[-1]

    pool = FeedPool(open_session, parked=1)
    first, second = pool.take("a", A, None, ROOM), pool.take("b", A, None, ROOM)
    pool.park("a", first)
    pool.park("b", second)
    first.join(SOON)
    pool.take("c", A, None, ROOM)
    assert len(opened) == 2
    pool.close()


def test_closing_the_pool_closes_every_session_also_those_given_back_later():
    source = chain_of(3)
    pool = FeedPool(source.open)
    lent = pool.session()
    feed = pool.take("a", A, None, ROOM)
    feed.next(SOON)
    pool.park("a", feed)
    pool.close()
    assert feed.session.closed
    pool.give_back(lent)
    assert lent.closed


# --- as the reading of a chain uses them ---


@pytest.mark.parametrize("local", [False, True])
def test_a_chain_of_one_page_that_could_not_be_promoted_is_read_again(bench, local):
    """Its feed stands at the end, and the chain still at its beginning."""
    fails = iter([OSError(28, "no space left")])

    def no_room(when):
        for error in fails:
            raise error

    bench.effect.on_finish = no_room
    run = bench.run(chain_of(1), local=local, retry=RetryPolicy(attempts=3))
    run.settle("a", Slice(patience=SOON))
    if local:
        run.settle("a", Slice(patience=SOON))
    assert bench.chain("a").state is ChainState.ENDED
    assert bench.data() == {"a": ["a0-0"]}


def test_a_slice_ends_the_call_and_the_next_one_goes_on_with_the_same_feed(bench):
    source = chain_of(5)
    run = bench.run(source)
    for _ in range(5):
        run.settle("a", Slice(pages=1))
    assert bench.data() == {"a": [f"a{n}-0" for n in range(5)]}
    assert len(source.fetches) == 5, "no page is asked for twice"


def test_patience_with_a_slow_page_promotes_what_is_there_and_leaves_the_chain_to_a_later_call(bench):
    source = chain_of(3)
    gated = Gated(source)
    gated.gate.release(1)
    run = bench.run(source)
    run.worker.feeds = FeedPool(lambda: gated)
    run.settle("a", Slice(patience=0.2))
    assert bench.data() == {"a": ["a0-0"]}
    gated.gate.release(2)
    run.settle("a", Slice(patience=SOON))
    assert bench.chain("a").state is ChainState.ENDED
    assert len(source.fetches) == 3


def test_a_run_is_promoted_at_its_age_also_while_the_next_page_does_not_come(bench):
    """Without slices, as on other engines: what was applied does not wait for a page that takes its time."""
    source = chain_of(2)
    gated = Gated(source)
    gated.gate.release(1)
    run = bench.run(source, max_run_seconds=0.1)
    run.worker.feeds = FeedPool(lambda: gated)
    chain = run.stepping("a")
    next(chain)
    promoted = next(chain)
    assert promoted.sequence == 1
    assert bench.frontier() == Bound.through(0)
    gated.gate.release(1)
    assert [told.sequence for told in chain] == [2]
    assert bench.data() == {"a": ["a0-0", "a1-0"]}
