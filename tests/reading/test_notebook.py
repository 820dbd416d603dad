"""What a notebook shows of results: self-contained, escaped, and saying the same as the document it is made of."""

from html.parser import HTMLParser

import pytest
from snapshots import NOW, held, member, scope, snapshot
from two_partitions import two_partitions

from gapless import Progress
from gapless.notebook import SHOWN, status_html
from gapless.plan import plan_run
from gapless.progress import Bound, DeliveryBlocker, DeliveryFrontier, IntegerDomain, TextDomain
from gapless.status_document import status_document
from gapless.store.records import Blocker
from gapless.store_ref import StoreRef
from gapless.updates import FrontierUpdate, PlanRequest
from gapless_pipelines.backfill import BackfillResult

HOSTILE = "<script>alert('x')</script>\"&\u202e\x1b[31m\n<img src=x onerror=alert(1)>"
TAGS = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}


class _Reader(HTMLParser):
    """Refuses whatever is more than text in tables; keeps the text, a cell or line each."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= {"style"}
        assert all("url" not in (value or "") for _, value in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        pytest.fail("a comment")


def texts(html: str) -> list[str]:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader.texts


def test_a_status_says_how_far_it_is_complete_who_holds_and_where_each_partition_stands() -> None:
    found = snapshot(scope(100, after=Bound.before(0)), held("p0003", 100), member("p0001", 120))
    read = texts(status_html(status_document(found)))
    assert read[0] == "orders"
    assert read[1].startswith(" complete through 100 (certified); no further: unsettled_event, ")
    assert "lineage 1, membership epoch 1, from 0, list frozen" in read
    assert read.index("p0003") < read.index("p0001")
    assert "through 120" in read


def test_without_a_frontier_it_says_what_is_withheld() -> None:
    document = status_document(snapshot(scope(None), member("a")))
    read = texts(status_html(document))
    assert document["withheld"] is not None
    assert read[1] == f" withheld: {document['withheld']['code']}, {document['withheld']['detail']}"


def test_names_that_would_be_markup_are_shown_as_text() -> None:
    blocker = Blocker("unsettled_event", hint=HOSTILE, since=NOW, event_id=HOSTILE, position=HOSTILE)
    found = snapshot(scope(None, domain=TextDomain(), scope=HOSTILE), held(HOSTILE, None, blocker=blocker))
    html = status_html(status_document(found))
    read = texts(html)
    assert "<script" not in html
    assert "<img" not in html
    written = HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b").replace("\n", "\\n")
    assert read[0] == written
    assert read.count(written) >= 4


def test_of_many_partitions_the_lowest_are_shown_and_the_others_counted() -> None:
    found = snapshot(scope(0), *(member(f"p{number:04}", number) for number in range(SHOWN + 30)))
    read = texts(status_html(status_document(found)))
    assert f"p{SHOWN - 1:04}" in read
    assert f"p{SHOWN:04}" not in read
    assert "and 30 more partitions" in read


def test_the_reader_of_a_store_shows_its_status(sqlite_url: str) -> None:
    source = two_partitions()
    with StoreRef(sqlite_url).open(create=True) as store:
        plan_run(source, store, PlanRequest(source.scope, "r", "test"))
    with Progress(sqlite_url) as progress:
        orders = progress.scope(source.scope)
        read = texts(orders._repr_html_())
        assert read[0] == source.scope
        assert "a" in read
        assert "not_started" in read


def test_a_published_frontier_shows_its_bound_or_its_blockers() -> None:
    bound = FrontierUpdate(
        "orders", IntegerDomain(), 1, 2, Bound.through(0), Bound.before(400), "asserted", None
    )
    assert texts(bound._repr_html_()) == [
        "orders",
        " complete before 400 (asserted)",
        "lineage 1, membership epoch 2, after 0",
    ]
    blocker = Blocker(
        "unsettled_event", hint="effect raised ValueError", since=NOW, event_id="e7", position=7
    )
    none = FrontierUpdate(
        "orders", IntegerDomain(), 1, 2, None, None, "certified", "unsettled_event", (("eu", blocker),)
    )
    read = texts(none._repr_html_())
    assert read[1] == " withheld: unsettled_event"
    assert read[-7:] == [
        *("eu", "unsettled_event", "e7", "7", "2013-06-01T12:00:00.250Z", "effect raised ValueError", "–"),
    ]


@pytest.mark.parametrize(
    ("blocker", "told"),
    [
        (None, []),
        (DeliveryBlocker("non_terminal", id=4, status="<pending>"), ["non_terminal", "4", "<pending>"]),
        (DeliveryBlocker("open_writer", pid=77, user="app"), ["open_writer", "77", "app"]),
    ],
)
def test_a_shard_shows_how_far_it_is_terminal_and_who_holds(
    blocker: DeliveryBlocker | None, told: list[str]
) -> None:
    read = texts(DeliveryFrontier(HOSTILE, 0, 3, blocker)._repr_html_())
    assert read[1:3] == [" every row through 3 is terminal", "handed on through 0"]
    assert [one for one in read if one in told] == told


def test_a_backfill_shows_how_it_ended() -> None:
    found = snapshot(scope(100), held("p0003", 100))
    result = BackfillResult("r", 3, found, 1, 2.5, pages=1200, events=34567, stop=None)
    read = texts(result._repr_html_())
    assert read[:2] == ["backfill", " not complete: run it again to go on from here"]
    assert read[2] == "34,567 events in 1,200 pages promoted in 2.5 s"
    assert read[3] == "orders"
