"""The HTTP source: restarts, templates, the list of partitions, and what makes its identity."""

import pickle
from typing import Any

import pytest
from http_orders import CERTIFIED, CLOSED, EU, answer, asked_for, page_of, pages, session_of, source_of
from http_script import Reply, http_script

from gapless.errors import ConfigurationError, InvalidPage, TokenExpired
from gapless.paging.page import Partition
from gapless.paging.source import Range
from gapless.progress import Bound, IntegerDomain, KeyRange

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


# --- ranges of keys ---------------------------------------------------------------------------------------------------

RANGES = {"low": "from", "high": "to"}


def test_a_partition_says_which_keys_it_serves() -> None:
    body = {"list": [{"id": "a", "from": None, "to": "m"}, {"id": "b", "from": "m", "to": None}]}
    found = [
        one.key_range
        for one in assignment_of(body, partitions={"http": {**HTTP_LIST, "key_range": RANGES}}).partitions
    ]
    assert found == [KeyRange(None, "m"), KeyRange("m", None)]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"from": 5, "to": 5}, "holds no key"),
        ({"from": 5, "to": "m"}, "holds no key"),
        ({"from": 1.5, "to": None}, "an end of a range of keys is"),
        ({"from": 5}, "`to` is absent"),
    ],
)
def test_a_range_of_keys_that_is_none_is_named(keys: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidPage, match=said):
        assignment_of(
            {"list": [{"id": "a", **keys}]}, partitions={"http": {**HTTP_LIST, "key_range": RANGES}}
        )
