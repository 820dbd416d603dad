import copy
from typing import Any

import pytest
from pydantic import ValidationError

from gapless.paging.config_model import findings
from gapless.paging.http_config import BearerAuth, HttpSourceConfig

WHOLE: dict[str, Any] = {
    "type": "http",
    "base_url": "https://api.example.org/v2/",
    "auth": {"type": "bearer", "token": {"env": "ORDERS_TOKEN"}},
    "headers": {"Accept": "application/json"},
    "client": {
        "timeout": {"connect": "10s", "read": "1m"},
        "retry": {"attempts": 6, "backoff": "500ms", "max": "60s", "on": [429, 503]},
        "connections": 8,
    },
    "partitions": {
        "http": {"path": "/partitions", "items": "partitions", "id": "@", "routing_generation": "gen"}
    },
    "pages": {
        "path": "/partitions/{partition.id}/events",
        "method": "GET",
        "params": {"limit": 500, "kind": ["a", "b"], "from": "{start}"},
        "records": "events",
        "next": {"type": "cursor", "from": "next_cursor", "param": "cursor", "end": "null"},
        "expired": {"status": [410], "restart": {"param": "since"}},
        "tail": "token",
        "routing_generation": "generation",
    },
    "event": {"id": "id", "position": "position"},
    "certificate": {"page": {"position": "complete.position", "inclusive": "complete.inclusive"}},
}
GONE = object()


def changed(path: str, value: object) -> dict[str, Any]:
    data = copy.deepcopy(WHOLE)
    *parents, last = path.split(".")
    place = data
    for name in parents:
        place = place.setdefault(name, {})
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return data


def complaints(data: dict[str, Any]) -> list[str]:
    try:
        HttpSourceConfig.model_validate(data)
    except ValidationError as error:
        return [str(finding) for finding in findings(error, HttpSourceConfig, data)]
    return []


def test_every_key_that_is_built_is_read() -> None:
    config = HttpSourceConfig.model_validate(WHOLE)
    assert config.base_url == "https://api.example.org/v2"
    assert isinstance(config.auth, BearerAuth)
    assert config.client.timeout.read == 60.0
    assert config.client.retry.backoff == 0.5
    assert config.pages.expired is not None
    assert config.pages.expired.restart is not None
    assert config.partition_fields() == {"id"}


def test_what_is_left_out_has_its_documented_default() -> None:
    data = changed("client", GONE)
    del data["auth"], data["headers"]
    config = HttpSourceConfig.model_validate(data)
    assert config.auth.type == "none"
    assert (config.client.timeout.connect, config.client.timeout.read) == (10.0, 60.0)
    assert config.client.retry.on == [429, 500, 502, 503, 504]
    assert (config.client.retry.attempts, config.client.retry.backoff, config.client.retry.max) == (
        6,
        1.0,
        60.0,
    )


@pytest.mark.parametrize(
    ("path", "value", "place", "named"),
    [
        ("auth", {"type": "basic", "user": "u"}, "auth.type", "type: basic"),
        ("auth", {"type": "api_key", "in": "header"}, "auth.type", "type: api_key"),
        ("auth", {"type": "oauth2_client_credentials"}, "auth.type", "type: oauth2_client_credentials"),
        ("auth.token", {"gcp_secret": "x"}, "auth.token.gcp_secret", "gcp_secret"),
        ("client.rate", {"requests": 10, "per": "1s"}, "client.rate", "rate"),
        ("client.tls", {"ca": "/x.pem"}, "client.tls", "tls"),
        ("partitions", {"sql": {}}, "partitions.sql", "sql"),
        ("pages.method", "POST", "pages.method", "method: POST"),
        ("pages.json", {"a": 1}, "pages.json", "json"),
        ("pages.errors", [{"path": "error", "is": "present"}], "pages.errors", "errors"),
        ("pages.next", {"type": "next_url", "from": "next"}, "pages.next.type", "type: next_url"),
        ("pages.next", {"type": "link_header"}, "pages.next.type", "type: link_header"),
        ("pages.next", {"type": "page_number"}, "pages.next.type", "type: page_number"),
        ("pages.next", {"type": "offset"}, "pages.next.type", "type: offset"),
        ("pages.next.json", "cursor", "pages.next.json", "json"),
        ("certificate", {"header": {"position": "X"}}, "certificate.header", "header"),
        ("certificate", {"before": {"path": "/w"}}, "certificate.before", "before"),
        (
            "certificate",
            {"assert": {"settled_after": "15m", "reason": "r"}},
            "certificate.assert.settled_after",
            "settled_after",
        ),
    ],
)
def test_what_is_known_and_not_built_yet_is_refused_as_such(
    path: str, value: object, place: str, named: str
) -> None:
    assert complaints(changed(path, value)) == [f"{place}: `{named}` is not built yet in this version"]


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("auth.tokn", {"env": "A"}, "auth.tokn: unknown key; did you mean `token`? allowed: token, type"),
        (
            "client.timeout.conect",
            "1s",
            "client.timeout.conect: unknown key; did you mean `connect`? allowed: connect, read",
        ),
        ("auth", {"type": "berer"}, "auth: unknown kind; allowed as 'type': 'none', 'bearer'"),
        ("auth", "bearer", "auth: a text cannot stand here; allowed: a mapping"),
        (
            "client.timeout.read",
            "3651d",
            "client.timeout.read: a duration of more than ten years; at most 3650d",
        ),
        (
            "client.retry.max",
            "9" * 400 + "d",
            "client.retry.max: a duration of more than ten years; at most 3650d",
        ),
        ("client.timeout.read", 60, "client.timeout.read: not a duration; allowed: a number with its unit"),
        ("client.timeout.read", "0s", "client.timeout.read: a duration has to be longer than nothing"),
        (
            "client.retry.attempts",
            "6",
            "client.retry.attempts: a text cannot stand here; allowed: an integer",
        ),
        (
            "client.retry.attempts",
            True,
            "client.retry.attempts: a boolean cannot stand here; allowed: an integer",
        ),
        (
            "pages.next.end",
            None,
            'pages.next.end: no way to tell the end; allowed: "null" (in quotes), empty, same',
        ),
        ("pages.next.end", GONE, "pages.next.end: missing; it has to be given"),
        ("pages.next.end", {"has_more": "a..b"}, "pages.next.end.has_more: 'a..b' is no path"),
        (
            "pages.next.header",
            "X-Next",
            "pages.next: the cursor has no one place; allowed: exactly one of from, header",
        ),
        (
            "pages.path",
            "/p/{id}",
            "pages.path: {id} is unknown; allowed in braces: partition.<field>, start, stop",
        ),
        ("pages.path", "p", "pages.path: no path of a URL"),
        ("pages.path", "/p?x=1", "pages.path: no path of a URL"),
        ("pages.params", {"x": "{nope}"}, "pages: {nope} is unknown"),
        ("pages.params", {"cursor": "x"}, "pages: `params.cursor` is the paging's own"),
        ("pages.params", {"since": "x"}, "pages: `params.since` is the paging's own"),
        ("pages.params", {"x": None}, "pages.params.x: nothing (null) cannot stand here"),
        ("pages.records", "a[*]", "pages.records: 'a[*]' is no path (from '[*]' on); allowed: dotted names"),
        ("pages.expired.status", [], "pages.expired.status:"),
        (
            "partitions",
            {},
            "partitions: names no one way to the partitions; allowed: exactly one of list, http",
        ),
        ("partitions", {"list": []}, "partitions.list:"),
        ("partitions", {"list": ["a", "a"]}, "partitions: `list` names 'a' twice"),
        ("partitions", {"list": [1, "1"]}, "partitions: `list` names '1' twice"),
        ("partitions", {"list": ["a", None]}, "partitions.list.1: nothing (null) cannot stand here"),
        ("partitions.http.path", "/x/{partition.id}", "partitions.http.path: no partition is known here"),
        ("certificate", {}, "certificate: says no one thing; allowed: exactly one of page, none, assert"),
        (
            "certificate.none",
            {},
            "certificate: says no one thing; allowed: exactly one of page, none, assert",
        ),
        ("certificate", {"assert": {"closed_range": True}}, "certificate.assert.reason: missing"),
        (
            "certificate",
            {"assert": {"reason": "r"}},
            "certificate.assert: asserts nothing; allowed: closed_range: true",
        ),
        ("base_url", "ftp://x", "base_url: no base URL"),
        ("base_url", "https://x/?a=1", "base_url: no base URL"),
        ("base_url", "https://", "base_url: no base URL"),
        ("base_url", GONE, "base_url: missing; it has to be given"),
        ("event.position", 3, "event.position: an integer cannot stand here; allowed: a text or a list"),
    ],
)
def test_each_mistake_is_told_at_its_place_with_what_is_allowed(
    path: str, value: object, complaint: str
) -> None:
    (only,) = complaints(changed(path, value))
    assert only.startswith(complaint)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("auth.token", "s3cr3t-literal"),
        ("headers", {"Authorization": "Bearer s3cr3t-literal"}),
        ("headers", {"X-Api-Key": "s3cr3t-literal"}),
        ("headers", {"Cookie": "session=s3cr3t-literal"}),
        ("pages.params", {"api_key": "s3cr3t-literal"}),
        ("base_url", "https://user:s3cr3t-literal@api.example.org"),
        ("auth.token", {"env": "$s3cr3t-literal"}),
    ],
)
def test_a_literal_secret_is_refused_and_not_repeated(path: str, value: object) -> None:
    data = changed(path, value)
    with pytest.raises(ValidationError) as error:
        HttpSourceConfig.model_validate(data)
    said = str(error.value) + "".join(map(str, findings(error.value, HttpSourceConfig, data)))
    assert "s3cr3t" not in said


def test_a_listed_partition_lacking_a_field_of_the_template_is_named() -> None:
    data = changed("pages.path", "/{partition.region}/{partition.id}")
    data["partitions"] = {"list": [{"id": "eu", "region": 1}, "us"]}
    (only,) = complaints(data)
    assert only.endswith("a template needs partition.region, the listed partition 'us' has only: id")


@pytest.mark.parametrize(
    "partitions",
    [{"list": ["eu", "us"]}, {"list": [{"id": "eu"}, {"id": "us"}]}, WHOLE["partitions"]],
    ids=["names", "objects", "endpoint"],
)
def test_partitions_that_would_all_get_the_same_pages_are_refused(partitions: object) -> None:
    data = changed("pages.path", "/events")
    data["partitions"] = partitions
    (only,) = complaints(data)
    assert only.endswith(
        "no template names the partition, so that each would be asked for the same pages; "
        "allowed: {partition.id}, or another field of it, in pages.path or pages.params"
    )


def test_a_parameter_may_name_the_partition_and_a_single_one_needs_no_name() -> None:
    by_parameter = changed("pages.path", "/events")
    by_parameter["pages"]["params"]["region"] = "{partition.id}"
    single = changed("pages.path", "/events")
    single["partitions"] = {"list": ["all"]}
    assert complaints(by_parameter) == complaints(single) == []


def test_the_schema_holds_no_key_that_is_not_built() -> None:
    schema = HttpSourceConfig.model_json_schema()
    assert schema["$defs"]["ClientConfig"]["properties"]["rate"]["not"] == {}
    assert schema["$defs"]["CursorPaging"]["properties"]["from"]
