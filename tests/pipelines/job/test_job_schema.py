"""The printed schemas and the example: they say what is really read and printed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gapless.errors import ConfigurationError
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import BLOCKER_CODES, Bound, ChainState, IntegerDomain, ListDomain, TextDomain
from gapless.status_document import status_document
from gapless.store import open_store
from gapless.store.records import Blocker, Promotion, ScopeIdentity
from gapless_pipelines.job import load_job
from gapless_pipelines.job.document import parse_document
from gapless_pipelines.job.output_documents import DatasetDocument, StatusDocument
from gapless_pipelines.job.schema import EXAMPLES, OUTPUTS, example, job_schema, output_schema

BOUND = {"position": "100", "inclusive": True}
STATUS: dict[str, Any] = {
    "format": 1,
    "gapless": "0.1.0",
    "as_of": "2026-07-23T21:59:38.250Z",
    "scope": "orders",
    "domain": {"type": "integer"},
    "lineage": 1,
    "membership_epoch": 2,
    "routing_generation": "r1",
    "list": "frozen",
    "frontier": {
        **BOUND,
        "after": "0",
        "after_inclusive": False,
        "basis": "certified",
        "violated": False,
        "published_at": "2026-07-23T21:59:00.000Z",
        "age_s": 38,
    },
    "withheld": {"code": "unsettled_event", "detail": "partition p0003: effect raised ValueError"},
    "run": {
        "id": "a1",
        "number": 3,
        "engine": "local",
        "state": "running",
        "started_at": "2026-07-23T21:58:00.000Z",
        "heartbeat_at": "2026-07-23T21:59:30.000Z",
    },
    "counts": {
        "members": 8,
        "active": 7,
        "ended": 0,
        "held": 1,
        "not_started": 0,
        "pages": 400,
        "events": 400000,
        "dead_letters": 0,
        "violations": 0,
        "schema_drift": 0,
    },
    "blockers": [
        {
            "partition": "p0003",
            "code": "unsettled_event",
            "event_id": "e110",
            "position": "110",
            "since": "2026-07-23T21:58:30.000Z",
            "bound": BOUND,
            "hint": "effect raised ValueError",
            "release": {"retry_at": None, "command": "gapless skip p0003 e110 --reason ..."},
        }
    ],
    "partitions": [
        {
            "partition": "p0003",
            "state": "held",
            "fencing_token": 3,
            "sequence": 50,
            "events": 50000,
            "bound": BOUND,
        }
    ],
    "superseded": [],
}


def keys_of(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The properties that a part of a schema names, references followed."""
    found = dict(node.get("properties", {}))
    if "$ref" in node:
        found |= keys_of(schema, schema["$defs"][node["$ref"].rsplit("/", 1)[-1]])
    for branch in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        found |= keys_of(schema, branch)
    return found


def unknown_keys(
    schema: dict[str, Any], node: dict[str, Any], value: object, path: str = ""
) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    known = keys_of(schema, node)
    for key, inner in value.items():
        if not known:
            return
        if key not in known:
            yield f"{path}.{key}"
        else:
            yield from unknown_keys(schema, known[key], inner, f"{path}.{key}")


def test_the_schema_of_a_job_file_knows_every_key_that_loads(good: str) -> None:
    value = parse_document(good, "job.yaml", {"ORDERS_URL": "http://127.0.0.1"}).value

    assert list(unknown_keys(job_schema(), job_schema(), value)) == []
    assert set(job_schema()["properties"]) == {*value, "split"}


def test_the_schema_refuses_unknown_keys_and_names_what_is_required() -> None:
    schema = job_schema()

    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"version", "scope", "domain", "source", "effect", "store"}


def test_every_top_level_key_is_explained() -> None:
    assert [name for name, node in job_schema()["properties"].items() if not node.get("description")] == []


def test_defaults_stand_in_the_schema_as_a_file_writes_them() -> None:
    retry = job_schema()["$defs"]["EffectRetryConfig"]["properties"]

    assert (retry["backoff"]["default"], retry["max"]["default"]) == ("1s", "1m")
    assert retry["attempts"] == {
        "anyOf": [
            {"minimum": 1, "type": "integer"},
            {"type": "string", "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"},
        ],
        "default": 5,
    }


def test_the_schema_is_json() -> None:
    for schema in (job_schema(), *map(output_schema, OUTPUTS)):
        assert json.loads(json.dumps(schema)) == schema
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_example_loads_as_it_is(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(example(kind), encoding="utf-8")

    assert load_job(path, {"ORDERS_URL": "https://api.example.com/v1"}).source().basis() == "certified"


ALTERNATIVE = re.compile(r"^( *)# (\w+): (?=[\[{])", re.MULTILINE)
RIVALS = {"assert": {"page"}, "none": {"page"}, "list": {"http"}}
"""Keys of which only one may stand; every other key stands for itself."""
ALONG_WITH = {"domain": ("start: 0", "start: null"), "assert": ("stop: null", "stop: 10")}
"""What has to change with an alternative."""


def test_each_commented_alternative_loads_in_place_of_what_stands_there(tmp_path: Path) -> None:
    text = example("http")
    alternatives = list(ALTERNATIVE.finditer(text))
    assert len(alternatives) >= 10

    for alternative in alternatives:
        indent, key = alternative.groups()
        active = re.compile(rf"^{indent}(?:{'|'.join(RIVALS.get(key, {key}))}): .*\n", re.MULTILINE)
        above, below = (
            active.sub("", part) for part in (text[: alternative.start()], text[alternative.end() :])
        )
        path = tmp_path / "job.yaml"
        changed = f"{above}{indent}{key}: {below}".replace(*ALONG_WITH.get(key, ("", "")))
        path.write_text(changed, encoding="utf-8")

        job = load_job(path, {"ORDERS_URL": "https://api.example.com/v1"})
        assert job.source_keys["type"] == "http"


def test_there_is_no_example_of_an_unknown_kind() -> None:
    with pytest.raises(ConfigurationError, match="there is no example 'soap'") as caught:
        example("soap")

    assert caught.value.remedy == "allowed: http"


# --- what --json prints ----------------------------------------------------------------------------------------------


def test_a_status_document_is_what_its_schema_says() -> None:
    assert StatusDocument.model_validate(STATUS).model_dump() == STATUS


def test_what_the_store_leads_to_is_what_the_schema_says(tmp_path: Path) -> None:
    domain = ListDomain((IntegerDomain(), TextDomain()))
    listed = [ListedPartition(Partition(name, {})) for name in ("a", "b")]
    with open_store(f"sqlite:///{tmp_path}/progress.db", create=True) as store:
        store.register_scope(ScopeIdentity("orders", domain, {}, Bound.before((0, ""))))
        store.begin_run("orders", "r1", "local")
        observed = store.observe("orders", Assignment(listed, "g1"))
        for task in observed.tasks:
            row = store.take(task.chain, 1)
            assert row is not None
            bound = Bound.through((5, "x"))
            ended = row.partition == "b"
            store.promote(
                Promotion(row, 1, None, "t1", bound, "certified", bound, ended, 3, "/out/f.parquet", "d", 3)
            )
        store.publish("orders", observed.epoch)
        held = store.chain(observed.tasks[0].chain)
        assert store.hold(held, ChainState.HELD, Blocker("unsettled_event", "boom", "e1", (6, "x")))
        document = status_document(store.snapshot("orders"))

    read = StatusDocument.model_validate(document)

    assert read.model_dump() == document
    assert read.frontier is not None
    assert read.frontier.position == '["5","x"]'
    assert {partition.state for partition in read.partitions} == {"held", "ended"}
    assert [blocker.code for blocker in read.blockers] == ["unsettled_event"]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"frontier": BOUND},
        {"withheld": {"code": "bad_mood", "detail": "x"}},
        {"counts": {}},
        {"partitions": [{"partition": "a"}]},
        {"as_of": "2026-07-23 21:59"},
        {"list": "complete"},
    ],
)
def test_what_is_no_status_document_does_not_pass(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StatusDocument.model_validate({**STATUS, **change})


def test_a_status_document_may_have_further_keys_and_neither_frontier_nor_run() -> None:
    document = {**STATUS, "frontier": None, "withheld": None, "run": None, "later": 1}

    assert StatusDocument.model_validate(document).frontier is None


def test_the_schema_of_a_status_lists_the_closed_codes() -> None:
    codes = output_schema("status")["$defs"]["BlockerDocument"]["properties"]["code"]["enum"]

    assert codes == sorted(BLOCKER_CODES)


def test_a_dataset_document_is_what_its_schema_says() -> None:
    file = {"path": "/out/a.parquet", "partition": "eu", "sequence": 0, "rows": 5000, "bound": BOUND}
    document = {
        "format": 1,
        "scope": "orders",
        "lineage": 1,
        "files": [file, {**file, "bound": None}],
        "rows": 10000,
    }

    assert DatasetDocument.model_validate(document).model_dump() == document
    with pytest.raises(ValidationError):
        DatasetDocument.model_validate({**document, "files": [{"path": "x"}]})
