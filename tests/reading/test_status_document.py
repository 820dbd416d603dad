import json
from datetime import datetime, timedelta, timezone

import pytest
from snapshots import NOW, candidate, held, member, scope, snapshot

from gapless import __version__
from gapless.progress import Bound, ChainState, IntegerDomain, ListDomain, TextDomain, TimestampDomain
from gapless.status_document import WORST, instant, status_document
from gapless.store.records import Blocker, SupersededLineage
from gapless_pipelines.job.output_documents import StatusDocument


def test_the_document_holds_every_key_in_its_order() -> None:
    found = snapshot(
        scope(100, after=Bound.before(0), observation=2, epoch=2),
        held("p0003", 100, sequence=50, events=50000, listed=2),
        member("p0001", 120, sequence=60, events=60000, listed=2),
    )
    document = status_document(found)
    assert json.dumps(document) == json.dumps(
        {
            "format": 1,
            "gapless": __version__,
            "as_of": "2013-06-01T12:00:00.250Z",
            "scope": "orders",
            "domain": {"type": "integer"},
            "lineage": 1,
            "membership_epoch": 2,
            "routing_generation": "r1",
            "list": "frozen",
            "frontier": {
                "position": "100",
                "inclusive": True,
                "after": "0",
                "after_inclusive": False,
                "basis": "certified",
                "violated": False,
                "published_at": "2013-06-01T11:59:18.000Z",
                "age_s": 42,
            },
            "withheld": {
                "code": "unsettled_event",
                "detail": "partition p0003: effect raised ValueError: no",
            },
            "run": {
                "id": "run-id",
                "number": 3,
                "engine": "local",
                "state": "running",
                "started_at": "2013-06-01T11:00:00.000Z",
                "heartbeat_at": "2013-06-01T12:00:00.250Z",
            },
            "counts": {
                "members": 2,
                "active": 1,
                "ended": 0,
                "held": 1,
                "not_started": 0,
                "pages": 400,
                "events": 4000,
                "dead_letters": 2,
                "violations": 0,
                "schema_drift": 1,
            },
            "blockers": [
                {
                    "partition": "p0003",
                    "code": "unsettled_event",
                    "event_id": "e110",
                    "position": "110",
                    "since": "2013-06-01T00:00:00.000Z",
                    "bound": {"position": "100", "inclusive": True},
                    "hint": "effect raised ValueError: no",
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
                    "bound": {"position": "100", "inclusive": True},
                },
                {
                    "partition": "p0001",
                    "state": "open",
                    "fencing_token": 3,
                    "sequence": 60,
                    "events": 60000,
                    "bound": {"position": "120", "inclusive": True},
                },
            ],
            "superseded": [],
        }
    )


def test_a_frontier_under_a_violation_is_marked() -> None:
    assert status_document(snapshot(100, member("a", 100), violations=1))["frontier"]["violated"] is True


def test_what_a_rebuild_has_ended_stays_readable() -> None:
    ended = SupersededLineage(
        1, 3, Bound.before(0), Bound.through(100), "asserted", True, True, "ids were wrong", "kim", NOW
    )
    empty = SupersededLineage(2, 4, None, None, "certified", False, False, "again", None, NOW)
    document = status_document(snapshot(None, superseded=[ended, empty]))
    assert document["superseded"] == [
        {
            "lineage": 1,
            "membership_epoch": 3,
            "list": "certified",
            "frontier": {
                "position": "100",
                "inclusive": True,
                "after": "0",
                "after_inclusive": False,
                "basis": "asserted",
                "violated": True,
            },
            "reason": "ids were wrong",
            "operator": "kim",
            "superseded_at": "2013-06-01T12:00:00.250Z",
        },
        {
            "lineage": 2,
            "membership_epoch": 4,
            "list": "frozen",
            "frontier": None,
            "reason": "again",
            "operator": None,
            "superseded_at": "2013-06-01T12:00:00.250Z",
        },
    ]
    StatusDocument.model_validate_json(json.dumps(document))


def test_what_is_not_known_is_null() -> None:
    document = status_document(snapshot(None, run=None))
    assert document["frontier"] is None
    assert document["run"] is None
    assert document["withheld"]["code"] == "not_started"
    assert document["partitions"] == document["blockers"] == []


def test_a_claim_from_the_beginning_is_after_nothing() -> None:
    frontier = status_document(snapshot(100, member("a", 100)))["frontier"]
    assert (frontier["after"], frontier["after_inclusive"]) == (None, None)


def test_an_age_is_never_negative() -> None:
    ahead = scope(100, published_at=NOW + timedelta(seconds=5))
    assert status_document(snapshot(ahead, member("a", 100)))["frontier"]["age_s"] == 0


def test_a_retry_is_shown_with_its_time() -> None:
    at = datetime(2013, 6, 1, 12, 1, tzinfo=timezone.utc)
    found = snapshot(None, held("a", None, blocker=Blocker("source_unavailable", "503", retry_at=at)))
    (blocker,) = status_document(found)["blockers"]
    assert blocker["release"] == {"retry_at": "2013-06-01T12:01:00.000Z", "command": "gapless backfill JOB"}


def test_members_are_counted_once_each_by_state() -> None:
    found = snapshot(
        None,
        member("a", 1),
        member("b", 2, state=ChainState.ENDED),
        member("c", 2, state=ChainState.SEALED),
        held("d", 3),
        member("e", 3, state=ChainState.GAP),
        member("f", fencing_token=0),
        candidate("g"),
    )
    counts = status_document(found)["counts"]
    assert {name: counts[name] for name in ("members", "active", "ended", "held", "not_started")} == {
        "members": 6,
        "active": 1,
        "ended": 2,
        "held": 2,
        "not_started": 1,
    }


def test_a_member_no_run_has_taken_is_listed() -> None:
    (row,) = status_document(snapshot(None, member("a", fencing_token=0)))["partitions"]
    assert row == {
        "partition": "a",
        "state": "not_started",
        "fencing_token": 0,
        "sequence": 0,
        "events": 0,
        "bound": None,
    }


def test_only_the_worst_are_listed_unless_all_are_asked_for() -> None:
    many = snapshot(0, *(member(f"p{number:04}", number) for number in range(WORST + 5)))
    shown = [row["partition"] for row in status_document(many)["partitions"]]
    assert shown == [f"p{number:04}" for number in range(WORST)]
    assert len(status_document(many, all_partitions=True)["partitions"]) == WORST + 5


@pytest.mark.parametrize(
    ("domain", "position", "text"),
    [
        (IntegerDomain(), 2**70, "1180591620717411303424"),
        (TextDomain(), "b", "b"),
        (TimestampDomain("ms"), 1, "1970-01-01T00:00:00.001Z"),
        (ListDomain((IntegerDomain(), TextDomain())), (7, "b"), '["7","b"]'),
    ],
)
def test_positions_are_canonical_text(domain: IntegerDomain, position: object, text: str) -> None:
    bound = Bound(position, False)  # type: ignore[arg-type]
    document = status_document(snapshot(scope(bound, domain=domain), member("a", bound)))
    assert document["frontier"]["position"] == text
    assert document["partitions"][0]["bound"] == {"position": text, "inclusive": False}


def test_instants_of_other_zones_are_told_in_utc() -> None:
    there = datetime(2013, 6, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert instant(there) == "2013-06-01T12:00:00.000Z"


@pytest.mark.parametrize(
    "found",
    [
        snapshot(None, run=None),
        snapshot(None, member("a", fencing_token=0), member("b")),
        snapshot(
            scope(100, after=Bound.through(3)),
            held("a", 100),
            member("b", state=ChainState.GAP),
            candidate("c"),
        ),
        snapshot(100, member("a", 100, state=ChainState.ENDED)),
    ],
)
def test_the_document_is_what_its_schema_says(found: object) -> None:
    StatusDocument.model_validate_json(json.dumps(status_document(found)))  # type: ignore[arg-type]
