import copy
import pickle
from typing import Any

import pytest
from http_script import HttpScript, Reply, http_script

from gapless.errors import ConfigurationError, InvalidPage, TokenExpired
from gapless.paging.http import HttpSession, HttpSource
from gapless.paging.page import Page, Partition
from gapless.paging.source import Range
from gapless.progress import Assertion, Bound, Certificate, IntegerDomain
from gapless.testing import ManualClock

EU = Partition("eu", {})
PAGES = {
    "path": "/partitions/{partition.id}/events",
    "records": "events",
    "next": {"type": "cursor", "from": "next", "param": "cursor", "end": "null"},
}
BASE: dict[str, Any] = {
    "scope": "orders",
    "domain": {"type": "integer"},
    "base_url": "http://127.0.0.1:1",
    "client": {"retry": {"attempts": 1}},
    "partitions": {"list": ["eu", "us"]},
    "pages": PAGES,
    "event": {"id": "id", "position": "at"},
    "certificate": {"none": {}},
}
CERTIFIED = {"page": {"position": "complete.at", "inclusive": "complete.inclusive"}}


def source_of(**changes: Any) -> HttpSource:
    return HttpSource(**{**copy.deepcopy(BASE), **changes})


def pages(**changes: Any) -> dict[str, Any]:
    return {**PAGES, **changes}


def next_as(**changes: Any) -> dict[str, Any]:
    return pages(next={**PAGES["next"], **changes})  # type: ignore[dict-item]


def session_of(script: HttpScript, **changes: Any) -> HttpSession:
    return source_of(base_url=script.url, **changes).open(ManualClock())


def page_of(
    body: object, token: str | None = None, headers: dict[str, str] | None = None, **changes: Any
) -> Page:
    with http_script(Reply(body, headers=headers or {})) as script:
        session = session_of(script, **changes)
        try:
            return session.fetch(EU, token)
        finally:
            session.close()


def answer(*events: tuple[object, object], **more: object) -> dict[str, object]:
    return {"events": [{"id": event_id, "at": at} for event_id, at in events], "next": None, **more}


def asked_for(token: str | None, partition: Partition = EU, **changes: Any) -> str:
    with http_script(Reply(answer())) as script:
        session = session_of(script, **changes)
        session.fetch(partition, token)
        session.close()
    return script.asked[0].path


# --- pages -----------------------------------------------------------------------------------------------------------


def test_a_page_holds_ids_positions_and_rows_in_the_sources_order() -> None:
    page = page_of(answer(("a", 1), ("b", 1), ("c", 2), next="t1"))
    assert (page.ids, page.positions, page.end) == (["a", "b", "c"], [1, 1, 2], False)
    assert page.rows[2] == {"id": "c", "at": 2}
    assert page.start_token is None
    assert page.certificate is None


def test_integer_ids_become_their_decimal_text_and_stay_integers_in_the_row() -> None:
    page = page_of(answer((2**70, 1), (7, 2), ("x", 3)))
    assert page.ids == [str(2**70), "7", "x"]
    assert page.rows[0]["id"] == 2**70


@pytest.mark.parametrize(
    ("value", "there"),
    [
        (None, "null"),
        (True, "the boolean true"),
        (1.5, "the number 1.5"),
        ({}, "an object"),
        ("", "the text ''"),
    ],
)
def test_an_event_without_a_usable_id_is_named(value: object, there: str) -> None:
    with pytest.raises(InvalidPage, match=rf"event \[1\]: `id` is {there}") as error:
        page_of(answer(("a", 1), (value, 2)))
    assert error.value.where == "partition eu, page start: GET /partitions/eu/events"


@pytest.mark.parametrize("value", [None, True, 1.0, 2.5, "x", "", [], {}])
def test_an_event_without_a_usable_position_is_named(value: object) -> None:
    with pytest.raises(InvalidPage, match=r"event \[1\]: `at` is no position of the scope's domain"):
        page_of(answer(("a", 1), ("b", value)))


def test_integers_sent_as_text_are_positions_of_an_integer_domain() -> None:
    assert page_of(answer(("a", "1"), ("b", 2), ("c", str(2**80)))).positions == [1, 2, 2**80]


def test_a_naive_time_is_refused_where_a_timestamp_is_declared() -> None:
    domain = {"type": "timestamp", "precision": "us", "read": "rfc3339"}
    assert page_of(answer(("a", "2024-01-01T00:00:00+01:00")), domain=domain).positions == [1704063600000000]
    with pytest.raises(InvalidPage, match=r"event \[0\]: `at` is no position"):
        page_of(answer(("a", "2024-01-01T00:00:00")), domain=domain)


def test_a_list_domain_takes_one_path_or_one_for_each_part() -> None:
    domain = {"type": "list", "items": [{"type": "integer"}, {"type": "text"}]}
    composed = page_of(
        answer((5, 1), (6, 2)),
        domain={"type": "list", "items": [{"type": "integer"}] * 2},
        event={"id": "id", "position": ["at", "id"]},
    )
    assert composed.positions == [(1, 5), (2, 6)]
    assert page_of(answer(("a", [1, "a"])), domain=domain).positions == [(1, "a")]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"event": [], "next": None},
            "`events` is absent; the keys there: event, next; did you mean `event`?",
        ),
        ({"events": None, "next": None}, "`events` is null, not an array of events"),
        ({"events": {}, "next": None}, "`events` is an object with no keys, not an array of events"),
        (
            {"events": [{"id": 1, "at": 1}, "x"], "next": None},
            r"`events\[1\]` is the text 'x', not an object",
        ),
        ({"events": [{"id": 1, "at": 1}, {"at": 1}], "next": None}, r"event \[1\]: `id` is absent"),
        ({"events": [{"id": 1, "att": 1}], "next": None}, r"event \[0\]: `at` is absent.*did you mean `att`"),
        ({"events": [], "nxt": None}, "`next` is absent; the keys there: events, nxt; did you mean `nxt`?"),
        ([], "`events` is absent; there is an array of 0"),
        ("x", "`events` is absent; there is the text 'x'"),
    ],
)
def test_an_answer_of_another_shape_is_an_error_and_never_an_end(body: object, said: str) -> None:
    with pytest.raises(InvalidPage, match=said):
        page_of(body)


def test_events_below_the_range_are_left_out_and_none_above_it() -> None:
    page = page_of(answer(("a", 1), ("b", 5), ("c", 4), ("d", 99)), range={"start": 4, "stop": 10})
    assert (page.ids, page.positions) == (["b", "c", "d"], [5, 4, 99])
    assert [row["id"] for row in page.rows] == ["b", "c", "d"]


def test_the_generation_a_page_states_comes_with_it() -> None:
    with_path = pages(routing_generation="gen")
    assert page_of(answer(gen="r7"), pages=with_path).generation == "r7"
    assert page_of(answer(gen=7), pages=with_path).generation == "7"
    assert page_of(answer()).generation is None
    for nothing in (None, "", True):
        with pytest.raises(InvalidPage, match="`gen` is"):
            page_of(answer(gen=nothing), pages=with_path)


# --- cursors and tokens ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cursor", ["abc", "ä/+&=", 7, 2**70, True, 1.25, ["a", 1], {"k": {"v": None}}, "null", '"quoted"']
)
def test_a_cursor_of_any_json_type_is_sent_back_as_it_came(cursor: object) -> None:
    with http_script(Reply(answer(next=cursor)), Reply(answer())) as script:
        session = session_of(script)
        first = session.fetch(EU, None)
        assert first.next_token is not None
        assert session.fetch(EU, first.next_token).start_token == first.next_token
        session.close()
    from urllib.parse import parse_qs, urlsplit

    import msgspec

    (sent,) = parse_qs(urlsplit(script.asked[1].path).query)["cursor"]
    assert sent == cursor or msgspec.json.decode(sent) == cursor


@pytest.mark.parametrize(
    ("end", "cursor", "is_end"),
    [
        ("null", None, True),
        ("null", "t", False),
        ("empty", None, True),
        ("empty", "", True),
        ("empty", {}, True),
        ("empty", "t", False),
        ("empty", 0, False),
        ("same", "t", False),
        ("same", "asked", True),
        ({"has_more": "more"}, "t", False),
    ],
)
def test_a_chain_ends_only_where_the_declared_end_says_so(end: object, cursor: object, is_end: bool) -> None:
    page = page_of(answer(next=cursor, more=True), token='{"cursor":"asked"}', pages=next_as(end=end))
    assert page.end is is_end
    assert (page.next_token is None) is is_end


@pytest.mark.parametrize(
    ("end", "cursor", "there"),
    [
        ("null", "", "the text ''"),
        ("null", {}, "an object with no keys"),
        ("same", None, "null"),
        ({"has_more": "more"}, None, "null"),
        ({"has_more": "more"}, "", "the text ''"),
    ],
)
def test_an_empty_cursor_that_is_no_declared_end_is_an_error(end: object, cursor: object, there: str) -> None:
    with pytest.raises(InvalidPage, match=f"`next` is {there}, which is no cursor, and no end"):
        page_of(answer(next=cursor, more=True), pages=next_as(end=end))


def test_where_there_is_no_more_the_cursor_does_not_matter() -> None:
    more = next_as(end={"has_more": "page.more"})
    assert page_of({"events": [], "page": {"more": False}}, pages=more).end
    for value in (None, "false", 0):
        with pytest.raises(InvalidPage, match="true or false"):
            page_of(answer(page={"more": value}), pages=more)
    with pytest.raises(InvalidPage, match=r"`page\.more` is absent"):
        page_of(answer(page={"mor": False}), pages=more)


def test_the_same_cursor_of_another_type_is_not_the_same() -> None:
    assert not page_of(answer(next=1), token='{"cursor":true}', pages=next_as(end="same")).end
    assert page_of(answer(next=1), token='{"cursor":1}', pages=next_as(end="same")).end


def test_a_cursor_in_a_header_is_read_and_its_absence_is_no_end() -> None:
    header = pages(next={"type": "cursor", "header": "X-Next", "param": "cursor", "end": "empty"})
    assert page_of(answer(), headers={"x-next": "t9"}, pages=header).next_token == '{"cursor":"t9"}'
    assert page_of(answer(), headers={"X-Next": ""}, pages=header).end
    with pytest.raises(InvalidPage, match="the header X-Next is absent"):
        page_of(answer(), pages=header)


def test_the_first_request_sends_what_is_declared_and_else_no_cursor() -> None:
    assert asked_for(None) == "/partitions/eu/events"
    assert asked_for(None, pages=next_as(first="*")) == "/partitions/eu/events?cursor=%2A"
    assert asked_for('{"cursor":"t1"}', pages=next_as(first="*")) == "/partitions/eu/events?cursor=t1"
    assert page_of(answer(next="*"), pages=next_as(first="*", end="same")).end


def test_a_token_of_another_kind_of_source_is_refused_without_being_shown() -> None:
    for token in ("s3cr3t", "{}", '{"curs":1}', '{"since":3}', "[1]"):
        with pytest.raises(
            InvalidPage, match=r"none that an HTTP source has written|restarts from no text"
        ) as error:
            page_of(answer(), token=token)
        assert "s3cr3t" not in str(error.value)


def test_no_error_shows_a_cursor() -> None:
    with http_script(Reply({"error": "cursor c-s3cr3t is bad"}, status=400)) as script:
        session = session_of(script)
        with pytest.raises(InvalidPage) as error:
            session.fetch(EU, '{"cursor":"c-s3cr3t"}')
        session.close()
    assert "s3cr3t" not in str(error.value)
    assert "partition eu, page " in error.value.where


# --- certificates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("complete", "expected"),
    [
        ({"at": 7, "inclusive": True}, Certificate(Bound.through(7), "page")),
        ({"at": "7", "inclusive": False}, Certificate(Bound.before(7), "page")),
        ({"at": None, "inclusive": None}, None),
        (None, None),
    ],
)
def test_a_certificate_is_read_with_its_endpoint_and_null_states_nothing(
    complete: object, expected: object
) -> None:
    assert page_of(answer(complete=complete), certificate=CERTIFIED).certificate == expected


@pytest.mark.parametrize(
    ("complete", "said"),
    [
        ({"at": 7}, "`complete.inclusive` is absent"),
        ({"inclusive": True}, "`complete.at` is absent"),
        ({"at": 7, "inclusive": None}, "`complete.inclusive` is null, where true or false is needed"),
        ({"at": 7, "inclusive": 1}, "`complete.inclusive` is the number 1"),
        ({"at": 7.0, "inclusive": True}, "`complete.at` is no position"),
        ({"at": True, "inclusive": True}, "`complete.at` is no position"),
    ],
)
def test_a_half_certificate_is_an_error(complete: object, said: str) -> None:
    with pytest.raises(InvalidPage, match=said):
        page_of(answer(complete=complete), certificate=CERTIFIED)


def test_an_endpoint_may_be_fixed_in_the_job_file() -> None:
    fixed = {"page": {"position": "through", "inclusive": True}}
    assert page_of(answer(through=3), certificate=fixed).certificate == Certificate(Bound.through(3), "page")


CLOSED = {
    "certificate": {"assert": {"closed_range": True, "reason": "2013 is over"}},
    "range": {"start": 0, "stop": 10},
}


@pytest.mark.parametrize(
    ("body", "asserted"),
    [
        (answer(("a", 3)), True),
        (answer(("a", 3), next="t"), False),
        (answer(("a", 3), ("b", 10), next="t"), True),
        (answer(("a", 3), ("b", 9), next="t"), False),
        (answer(), True),
    ],
)
def test_a_closed_range_is_asserted_at_the_chains_end_or_past_its_stop(body: object, asserted: bool) -> None:
    expected = Assertion(Bound.before(10), "2013 is over") if asserted else None
    assert page_of(body, **CLOSED).certificate == expected


def test_the_basis_is_what_the_certificate_form_can_give() -> None:
    assert source_of().basis() == "none"
    assert source_of(certificate=CERTIFIED).basis() == "certified"
    assert source_of(**CLOSED).basis() == "asserted"


# --- expired tokens --------------------------------------------------------------------------------------------------

RESTART = pages(expired={"status": [410, 404], "restart": {"param": "since"}})


def test_a_declared_status_means_a_dead_token_but_not_for_a_chains_first_page() -> None:
    with http_script(Reply(status=404)) as script:
        session = session_of(script, pages=RESTART)
        with pytest.raises(TokenExpired):
            session.fetch(EU, '{"cursor":"t"}')
        with pytest.raises(InvalidPage, match="HTTP 404"):
            session.fetch(EU, None)
        session.close()


@pytest.mark.parametrize(
    ("bound", "since"), [(Bound.through(100), "100"), (Bound.before(100), "99"), (Bound.through(-1), "-1")]
)
def test_a_restart_asks_from_a_position_that_misses_nothing_above_the_bound(bound: Bound, since: str) -> None:
    token = source_of(pages=RESTART).restart_token(bound)
    assert asked_for(token, pages=RESTART) == f"/partitions/eu/events?since={since}"


def test_without_a_declared_restart_or_a_position_before_the_bound_there_is_no_restart() -> None:
    assert source_of().restart_token(Bound.through(1)) is None
    text = source_of(pages=RESTART, domain={"type": "text"})
    assert text.restart_token(Bound.before("m")) is None
    assert text.restart_token(Bound.through("m")) is not None


def test_a_restart_names_its_position_as_the_source_writes_it() -> None:
    domain = {"type": "timestamp", "precision": "us", "read": "unix_ms"}
    token = source_of(pages=RESTART, domain=domain).restart_token(Bound.through(1500))
    assert asked_for(token, pages=RESTART, domain=domain) == "/partitions/eu/events?since=1.5"


def test_pages_after_a_restart_say_what_may_come_again() -> None:
    token = source_of(pages=RESTART).restart_token(Bound.through(100))
    first = page_of(answer(next="t1"), token=token, pages=RESTART)
    assert first.overlap == Bound.through(100)
    second = page_of(answer(next="t2"), token=first.next_token, pages=RESTART)
    assert second.overlap == Bound.through(100)
    assert asked_for(first.next_token, pages=RESTART) == "/partitions/eu/events?cursor=t1"
    assert page_of(answer(next="t1")).overlap is None


# --- templates and parameters ----------------------------------------------------------------------------------------


def test_templates_put_fields_and_the_ranges_ends_into_path_and_parameters() -> None:
    path = asked_for(
        None,
        Partition("a/b", {"region": "eu west"}),
        range={"start": 5, "stop": 9},
        pages=pages(
            path="/{partition.region}/{partition.id}/{start}",
            params={"until": "{stop}", "limit": 500, "kind": ["x", "y&z"], "all": True},
        ),
        partitions={"list": [{"id": "a/b", "region": "eu west"}]},
    )
    assert path == "/eu%20west/a%2Fb/5?until=9&limit=500&kind=x&kind=y%26z&all=true"


def test_a_template_of_an_open_end_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"uses \{start\}, but range.start is open"):
        source_of(pages=pages(params={"from": "{start}"}))


# --- partitions ------------------------------------------------------------------------------------------------------

HTTP_LIST = {"path": "/partitions", "items": "list", "id": "id"}


def assignment_of(body: object, **changes: Any) -> Any:
    with http_script(Reply(body)) as script:
        session = session_of(script, **{"partitions": {"http": HTTP_LIST}, **changes})
        try:
            return session.assignment()
        finally:
            session.close()


def test_partitions_are_listed_in_the_job_file_as_names_or_objects() -> None:
    session = source_of(partitions={"list": ["eu", 7, {"id": "us", "region": 1}]}).open()
    listed = [one.partition for one in session.assignment().partitions]
    assert listed == [Partition("eu", {}), Partition("7", {}), Partition("us", {"region": 1})]
    assert session.generation() == ""
    session.close()


def test_partitions_are_listed_by_an_endpoint_as_names_or_objects() -> None:
    names = assignment_of({"list": ["eu", 7]}, partitions={"http": {**HTTP_LIST, "id": "@"}})
    assert [one.partition for one in names.partitions] == [Partition("eu", {}), Partition("7", {})]
    objects = assignment_of({"list": [{"id": "eu", "region": 1}]})
    assert [one.partition for one in objects.partitions] == [Partition("eu", {"region": 1})]
    assert names.generation == ""
    assert names.list_bound is None


def test_a_list_states_its_generation_its_bound_seals_and_lineage() -> None:
    config = {
        **HTTP_LIST,
        "routing_generation": "gen",
        "list_complete": {"position": "upto", "inclusive": True},
        "sealed": {"position": "sealed.at", "inclusive": "sealed.inclusive"},
        "successors": "next",
        "parents": "parents",
    }
    found = assignment_of(
        {
            "gen": "r2",
            "upto": 50,
            "list": [
                {"id": "a", "sealed": {"at": 9, "inclusive": True}, "next": ["b", 3], "parents": []},
                {"id": "b", "sealed": None, "next": None, "k": 1},
            ],
        },
        partitions={"http": config},
    )
    assert (found.generation, found.list_bound) == ("r2", Bound.through(50))
    first, second = found.partitions
    assert (first.seal, first.successors, first.parents) == (Bound.through(9), ("b", "3"), ())
    assert (second.seal, second.successors, second.parents) == (None, None, None)
    assert second.partition.fields == {"k": 1}


def test_the_generation_alone_is_read_without_the_rest_of_the_list() -> None:
    with http_script(Reply({"list": "whatever", "gen": 3})) as script:
        session = session_of(script, partitions={"http": {**HTTP_LIST, "routing_generation": "gen"}})
        assert session.generation() == "3"
        session.close()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"list": []}, "`list` is empty: there is no partition to read"),
        ({"list": {"id": "a"}}, "`list` is an object with id, not an array of partitions"),
        ({"lists": []}, "`list` is absent; the keys there: lists; did you mean `lists`?"),
        ({"list": [{"id": "a"}, {"id": None}]}, "`id` is null; a partition's id is a text or an integer"),
        ({"list": [{"id": "a"}, {"name": "b"}]}, "`id` is absent"),
        ({"list": [{"id": ""}]}, "`id` is the text ''"),
        ({"list": [{"id": 1}, {"id": "1"}]}, "partition '1' is listed twice"),
        ({"list": [{"id": ".."}]}, "segment"),
    ],
)
def test_a_list_that_names_no_partitions_is_an_error(body: object, said: str) -> None:
    with pytest.raises(InvalidPage, match=said):
        assignment_of(body)


def test_a_listed_partition_without_a_field_of_the_template_is_named() -> None:
    with pytest.raises(InvalidPage, match=r"\{partition.region\} has nothing to put there") as error:
        assignment_of({"list": [{"id": "a", "regoin": 1}]}, pages=pages(path="/{partition.region}"))
    assert error.value.where == "partition a"


# --- the description -------------------------------------------------------------------------------------------------


def test_a_source_survives_pickling_and_keeps_its_secret_out_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_TOKEN", "tok-s3cr3t")
    source = source_of(auth={"type": "bearer", "token": {"env": "ORDERS_TOKEN"}})
    session = source.open()
    pickled = pickle.dumps(source)
    session.close()
    assert b"s3cr3t" not in pickled
    assert "s3cr3t" not in repr(source)
    again = pickle.loads(pickled)
    assert (again.scope, again.domain, again.range) == ("orders", IntegerDomain(), Range())
    assert again.identity() == source.identity()


def test_a_secret_is_resolved_when_the_session_opens_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORDERS_TOKEN", raising=False)
    source = source_of(auth={"type": "bearer", "token": {"env": "ORDERS_TOKEN"}})
    with pytest.raises(ConfigurationError, match="ORDERS_TOKEN"):
        source.open()


NEUTRAL = [
    {"base_url": "https://elsewhere.example"},
    {"headers": {"X": "y"}},
    {"client": {"timeout": {"read": "5s"}}},
    {"partitions": {"list": ["eu"]}},
    {"pages": pages(params={"limit": 5, "pageSize": 7, "per_page": 1})},
    {"pages": RESTART},
    {"range": {"stop": 50}},
]
TELLING = [
    {"pages": pages(path="/other/{partition.id}")},
    {"pages": pages(params={"status": "paid"})},
    {"pages": pages(records="data")},
    {"event": {"id": "uuid", "position": "at"}},
    {"event": {"id": "id", "position": "time"}},
    {"domain": {"type": "text"}},
    {"certificate": CERTIFIED},
    {"range": {"start": 5}},
]


@pytest.mark.parametrize("changes", NEUTRAL)
def test_what_does_not_change_the_events_leaves_the_identity_alone(changes: dict[str, Any]) -> None:
    assert source_of(**changes).identity() == source_of().identity()


@pytest.mark.parametrize("changes", TELLING)
def test_what_changes_the_events_or_their_proof_makes_another_scope(changes: dict[str, Any]) -> None:
    assert source_of(**changes).identity() != source_of().identity()


def test_the_wording_of_a_reason_is_no_part_of_the_identity() -> None:
    other = {**CLOSED, "certificate": {"assert": {"closed_range": True, "reason": "another word"}}}
    assert source_of(**other).identity() == source_of(**CLOSED).identity()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pagess": {}}, "pagess: unknown key; did you mean `pages`?"),
        ({"range": {"stat": 1}}, "stat: unknown key; did you mean `start`?"),
        ({"range": {"start": 1.5}}, "range.start: "),
        ({"range": {"start": 5, "stop": 5}}, "range: it is empty"),
        (
            {"certificate": CLOSED["certificate"]},
            "certificate.assert.closed_range asserts nothing without an end",
        ),
        (
            {"event": {"id": "id", "position": ["a", "b"]}},
            "event.position: 2 paths, but the domain is no list",
        ),
        ({"domain": {"type": "integre"}}, "integre"),
    ],
)
def test_a_description_that_cannot_be_meant_so_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        source_of(**changes)
    assert said in str(error.value)
