"""From an answer to a page: events, cursors and certificates, and what is there instead."""

import pytest
from http_orders import (
    CERTIFIED,
    CLOSED,
    EU,
    answer,
    asked_for,
    next_as,
    page_of,
    pages,
    session_of,
    source_of,
)
from http_script import Reply, http_script

from gapless.errors import InvalidPage
from gapless.progress import Assertion, Bound, Certificate

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
