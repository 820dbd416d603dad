"""The tail of an HTTP chain: where a stream asks again, what it leaves out, and what it takes over from a bounded read."""

import pickle
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from growing_api import GrowingApi, source_block
from page_chains import kinds

from gapless.errors import ConfigurationError, InvalidPage
from gapless.paging.chain import CheckedPage, PageChain
from gapless.paging.http import HttpSource
from gapless.paging.page import Partition
from gapless.paging.page_token import PageToken
from gapless.paging.source import following, follows
from gapless.progress import Bound, highest

EU = Partition("eu", {})
WAYS = [("more", "token"), ("always", "token"), ("null", "last_page"), ("null", "since")]


def source_of(api: GrowingApi, tail: str | None = None, **changes: Any) -> HttpSource:
    return HttpSource(scope="orders", domain={"type": "integer"}, **{**source_block(api, tail), **changes})


class Reader:
    """Reads one chain as streams and bounded reads do, by what is durable alone: token, bound, how far it was read."""

    def __init__(self, source: HttpSource) -> None:
        self.source = source
        self.token: str | None = None
        self.bound: Bound | None = None
        self.read_to: Bound | None = None
        self.delivered: list[str] = []
        self.violations: list[str] = []
        self.ended = False

    @contextmanager
    def opened(self, *, stream: bool) -> Iterator["Opened"]:
        """A process that reads on. What it remembers ends with it."""
        view = self.source.following() if stream else self.source
        with closing(view.open()) as session:
            chain = PageChain(EU, view.domain, self.token, self.bound, read_to=self.read_to, certifies=True)
            yield Opened(self, session, chain)

    def stream(self, polls: int = 1) -> None:
        with self.opened(stream=True) as opened:
            for _ in range(polls):
                opened.poll()

    def read(self) -> None:
        """To the end, as a backfill does."""
        with self.opened(stream=False) as opened:
            opened.poll()


class Opened:
    def __init__(self, reader: Reader, session: Any, chain: PageChain) -> None:
        self._reader, self._session, self._chain = reader, session, chain

    def poll(self) -> CheckedPage:
        """Page by page until there is nothing further."""
        while True:
            checked = self._chain.accept(self._session.fetch(EU, self._chain.next_token))
            self._promote(checked)
            if checked.page.caught_up or checked.page.end:
                return checked

    def _promote(self, checked: CheckedPage) -> None:
        if checked.idle:
            return
        page, reader = checked.page, self._reader
        reader.delivered += page.ids
        reader.violations += kinds(checked)
        if page.certificate is not None:
            reader.bound = highest(reader.bound, page.certificate.bound)
        if page.positions:
            reader.read_to = highest(reader.read_to, Bound.through(max(page.positions)))
        reader.ended = page.end
        reader.token = page.resume if page.end else page.next_token
        assert reader.token is not None


def test_the_views_of_one_scope_are_one_scope() -> None:
    with GrowingApi() as api:
        source = source_of(api)
        assert (follows(source), follows(following(source))) == (False, True)
        assert following(source).identity() == source.identity()
        assert (following(source).scope, following(source).domain) == (source.scope, source.domain)


@pytest.mark.parametrize(("style", "tail"), WAYS)
def test_a_stream_gives_every_event_once_as_they_become_final(style: str, tail: str) -> None:
    with GrowingApi(style) as api:
        api.add("eu", 1, 2, 3, 4, 5)
        api.certify("eu", 4)
        reader = Reader(source_of(api, tail))
        with reader.opened(stream=True) as opened:
            opened.poll()
            assert reader.delivered == api.expected()["eu"]
            assert reader.bound == Bound.through(4)
            assert opened.poll().idle
            api.add("eu", 5, 6, 7, 8, 9, 10)
            api.certify("eu", 9)
            opened.poll()
            assert reader.delivered == api.expected()["eu"]
            assert reader.bound == Bound.through(9)
            assert opened.poll().idle
        assert reader.violations == []


@pytest.mark.parametrize(("style", "tail"), WAYS)
def test_a_quiet_partition_moves_by_certificate(style: str, tail: str) -> None:
    with GrowingApi(style) as api:
        api.add("eu", 1, 2)
        api.certify("eu", 2)
        reader = Reader(source_of(api, tail))
        with reader.opened(stream=True) as opened:
            opened.poll()
            for now in (3, 7):
                api.certify("eu", now)
                assert not opened.poll().idle
                assert reader.bound == Bound.through(now)
            assert opened.poll().idle
        assert len(reader.delivered) == 2


@pytest.mark.parametrize(("style", "tail"), WAYS)
def test_a_partition_that_holds_nothing_yet_is_followed_from_its_start(style: str, tail: str) -> None:
    with GrowingApi(style) as api:
        api.add("eu")
        reader = Reader(source_of(api, tail))
        reader.stream(polls=3)
        api.certify("eu", 0)
        reader.stream(polls=2)
        assert reader.bound == Bound.through(0)
        api.add("eu", 1, 2, 3, 4)
        api.certify("eu", 4)
        reader.stream()
        assert reader.delivered == api.expected()["eu"]


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize(("style", "tail"), WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_streams_and_bounded_reads_that_follow_each_other_lose_and_repeat_nothing(
    seed: int, style: str, tail: str, inclusive: bool
) -> None:
    """Ties, pages of any size, certificates with either endpoint, events that appear in any order above them, restarts of the
    process. A bounded read applies its last page whole: while one is about, what is shown is in order."""
    draw = random.Random(seed)
    with GrowingApi(style, page=draw.choice((1, 2, 3, 5)), inclusive=inclusive) as api:
        reader = Reader(source_of(api, tail))
        api.add("eu")
        # Events may still appear from here on.
        final = 0
        for _ in range(25):
            if draw.random() < 0.7:
                api.add("eu", *(final + draw.randint(0, 4) for _ in range(draw.randint(0, 4))))
            exclusive = draw.random() < 0.3
            through = final + draw.randint(0, 4)
            stream = draw.random() < 0.7
            if not stream:
                through = max([through, *(at for at, _ in api.partitions["eu"].events)])
            api.certify("eu", through, exclusive=exclusive)
            final = through if exclusive else through + 1
            if stream:
                reader.stream(polls=draw.randint(1, 2))
            else:
                reader.read()
                assert reader.ended or api.style == "always"
            assert len(reader.delivered) == len(set(reader.delivered)), "an event came twice"
            assert set(api.expected()["eu"]) <= set(reader.delivered)
        api.certify("eu", final + 10)
        reader.stream(polls=2)
        assert sorted(reader.delivered) == sorted(api.expected()["eu"])
        assert reader.violations == []
        assert reader.bound == Bound.through(final + 10)


def test_a_bounded_read_that_ends_beyond_its_certificate_keeps_which_events_it_has_applied() -> None:
    with GrowingApi(page=5) as api:
        ids = api.add("eu", 1, 2, 2)
        api.certify("eu", 2, exclusive=True)
        reader = Reader(source_of(api))
        reader.read()
        assert reader.delivered == ids
        assert PageToken.decode(str(reader.token)).beyond == tuple(ids[1:])
        more = api.add("eu", 2, 3)
        api.certify("eu", 3)
        reader.stream()
        assert sorted(reader.delivered) == sorted(ids + more)


@pytest.mark.parametrize("tail", ["last_page", "since"])
def test_what_comes_in_front_of_events_that_a_bounded_read_took_above_its_certificate_is_in_order(
    tail: str,
) -> None:
    with GrowingApi(page=5) as api:
        ids = api.add("eu", 1, 6, 7)
        api.certify("eu", 4)
        reader = Reader(source_of(api, tail))
        reader.read()
        ids += api.add("eu", 5)
        api.certify("eu", 6)
        reader.read()
        assert reader.delivered == ids, "by the next bounded read"
        ids += api.add("eu", 7)
        api.certify("eu", 7)
        reader.stream()
        ids += api.add("eu", 8, 9, 9, 10)
        api.certify("eu", 10)
        reader.stream(polls=2)
        assert sorted(reader.delivered) == sorted(ids)
        assert reader.violations == []


@pytest.mark.parametrize("tail", ["last_page", "since"])
@pytest.mark.parametrize("seed", range(40))
def test_above_a_certificate_events_may_appear_anywhere_also_on_pages_that_lead_on(
    tail: str, seed: int
) -> None:
    rng = random.Random(f"{tail} {seed}")
    with GrowingApi(page=rng.choice([3, 5]), inclusive=rng.random() < 0.5, hasty=True) as api:
        reader, through = Reader(source_of(api, tail)), 0
        for _ in range(3):
            with reader.opened(stream=True) as opened:
                for _ in range(4):
                    api.add("eu", *(through + rng.randint(1, 9) for _ in range(rng.randint(0, 4))))
                    through += rng.randint(0, 3)
                    api.certify("eu", through)
                    opened.poll()
                    bound, events = reader.bound, api.partitions["eu"].events
                    claimed = {one for at, one in events if bound is not None and bound.covers(at)}
                    assert claimed <= set(reader.delivered)
        api.certify("eu", through + 10)
        reader.stream(polls=30)
        assert sorted(reader.delivered) == sorted(api.expected()["eu"])
        assert reader.violations == []


def test_a_late_event_on_a_page_that_is_asked_again_is_a_violation_and_is_delivered() -> None:
    with GrowingApi(page=9) as api:
        api.add("eu", 1, 5)
        api.certify("eu", 5)
        reader = Reader(source_of(api))
        with reader.opened(stream=True) as opened:
            opened.poll()
            (late,) = api.add("eu", 3)
            opened.poll()
            assert reader.violations == ["event_behind_bound"]
            assert opened.poll().idle, "it is told once"
        assert reader.delivered[-1] == late
        reader.stream(polls=2)
        assert len(reader.delivered) == 3, "whoever comes later takes it for applied"


def test_a_late_event_among_those_that_follow_a_bound_is_a_violation_and_is_delivered() -> None:
    with GrowingApi(page=9) as api:
        api.add("eu", 1, 5)
        api.certify("eu", 5)
        reader = Reader(source_of(api, "since"))
        with reader.opened(stream=True) as opened:
            opened.poll()
            opened.poll()
            api.certify("eu", 8)
            (late,) = api.add("eu", 7)
            opened.poll()
            # It was certified with the very poll that gave it: no promise is broken.
            assert reader.violations == []
            api.certify("eu", 9)
            opened.poll()
        assert reader.delivered[-1] == late


@pytest.mark.parametrize("tail", ["last_page", "since"])
def test_a_late_event_is_noticed_whichever_session_of_a_stream_meets_it_and_again_where_it_was_not_promoted(
    tail: str,
) -> None:
    with GrowingApi(page=9, inclusive=True) as api:
        api.add("eu", 1, 5)
        api.certify("eu", 5)
        view = source_of(api, tail).following()
        with closing(view.open()) as one, closing(view.open()) as other:
            token = one.fetch(EU, one.fetch(EU, None).next_token).next_token
            late = api.add("eu", 5, 5)
            met = other.fetch(EU, token)
            assert met.ids == late
            assert one.fetch(EU, token).ids == late, "the page was not promoted: it is fetched again"
            assert other.fetch(EU, met.next_token).ids == [], "once it is promoted it is told no more"
        with closing(pickle.loads(pickle.dumps(view)).open()) as elsewhere:
            assert elsewhere.fetch(EU, token).ids == [], "another process takes it for one that was given"


def test_a_dead_cursor_of_the_last_page_restarts_at_the_bound() -> None:
    with GrowingApi(page=2) as api:
        api.add("eu", 1, 2, 3)
        api.certify("eu", 3)
        reader = Reader(source_of(api))
        reader.stream()
        assert reader.bound is not None
        reader.token = reader.source.restart_token(reader.bound)
        api.add("eu", 4, 5, 6)
        api.certify("eu", 6)
        reader.stream(polls=2)
        assert reader.delivered == api.expected()["eu"]


def test_a_stream_by_tokens_needs_one_on_the_last_page() -> None:
    """has_more is false, and the cursor null."""
    with GrowingApi() as api:
        api.add("eu", 1)
        api.certify("eu", 1)
        block = source_block(api, "token")
        block["pages"]["next"]["end"] = {"has_more": "more"}
        source = HttpSource(scope="orders", domain={"type": "integer"}, **block)
        with closing(source.open()) as session:
            assert session.fetch(EU, None).end, "a bounded read needs none"
        with closing(source.following().open()) as session:
            with pytest.raises(InvalidPage, match="no token to ask again with") as refused:
                session.fetch(EU, None)
            assert "last_page or since" in str(refused.value.remedy)


def test_where_a_chain_has_a_cursor_until_it_ends_its_end_is_one_for_good() -> None:
    with GrowingApi() as api:
        api.add("eu", 1)
        api.certify("eu", 1)
        source = source_of(api, "token")
        assert source.ends_for_good
        for view in (source, source.following()):
            with closing(view.open()) as session:
                page = session.fetch(EU, None)
                assert (page.end, page.resume) == (True, None)
        assert not source_of(api, "last_page").ends_for_good


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tail": None}, "set pages.tail: token, last_page or since"),
        ({"tail": "last_page", "certificate": {"none": {}}}, "set certificate.page"),
        ({"tail": "since", "certificate": {"none": {}}}, "set certificate.page"),
        ({"tail": "since", "expired": {"status": [410]}}, "set pages.expired.restart"),
    ],
)
def test_what_cannot_be_followed_is_refused(changes: dict[str, Any], said: str) -> None:
    with GrowingApi() as api:
        block = source_block(api)
        block["certificate"] = changes.pop("certificate", block["certificate"])
        block["pages"] |= changes
        source = HttpSource(scope="orders", domain={"type": "integer"}, **block)
        with pytest.raises(ConfigurationError) as refused:
            source.following()
        assert said in str(refused.value.remedy)


def test_tokens_say_what_they_leave_out() -> None:
    """Pinned: they are kept in stores."""
    token = PageToken("c", "7", ("9", False), ("a", "b"), 2)
    text = '{"cursor":"c","since":"7","after":["9",false],"beyond":["a","b"],"late":2}'
    assert token.encode() == text
    assert PageToken.decode(text) == token
    assert PageToken().encode() == '{"after":null}'
    assert PageToken.decode('{"after":null}') == PageToken()
    for damaged in ('{"after":"9"}', '{"after":[9,true]}', '{"beyond":"a"}', '{"late":"x"}', '{"other":1}'):
        with pytest.raises(ValueError, match="page token"):
            PageToken.decode(damaged)
