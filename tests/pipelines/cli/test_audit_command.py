"""`gapless audit`."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from audited_scope import AuditedScope, eventful

Gapless = Callable[..., Any]


@pytest.fixture
def scope(folder: Path) -> Iterator[AuditedScope]:
    """A scope with an eventful history, in the store that the job file names."""
    with closing(AuditedScope("sqlite:///progress.db", folder / "out")) as scope:
        yield eventful(scope)


def test_a_clean_store_is_said_to_be_clean(gapless: Gapless, scope: AuditedScope, job: Path) -> None:
    ran = gapless("audit")
    assert ran.exit_status == 0
    assert ran.lines[0] == "orders: no contradiction"
    assert ran.lines[1].startswith(
        "  looked at 3 chains, 12 promotion records, 4 membership epochs, 4 frontier moves, 4 lists, 2 dead letters,"
        " 0 receipts, 12 files of"
    )


def test_the_document(gapless: Gapless, scope: AuditedScope, job: Path) -> None:
    ran = gapless("audit", "--json")
    assert (ran.exit_status, ran.err) == (0, "")
    document = ran.document
    assert document.pop("checked").keys() >= {"chains", "promotions", "files", "bytes"}
    assert document == {
        "format": 1,
        "scope": "orders",
        "as_of": document["as_of"],
        "lineage": 1,
        "membership_epoch": 4,
        "frontier": {"position": "45", "inclusive": True},
        "clean": True,
        "contradictions": [],
    }


def test_each_contradiction_says_what_and_where_and_the_exit_status_is_5(
    gapless: Gapless, scope: AuditedScope, job: Path
) -> None:
    scope.sql("UPDATE gapless_chain SET bound = :key WHERE partition = 'c'", key=scope.key(90))
    ran = gapless("audit")
    assert ran.exit_status == 5
    assert ran.lines[:2] == [
        f"bound_not_proved: partition c, chain {scope.chain('c')}, lineage 1: its bound is through 90; its promotions"
        " prove through 45",
        "orders: 1 contradiction",
    ]
    ran = gapless("audit", "--json")
    assert ran.exit_status == 5
    assert (ran.document["clean"], ran.document["contradictions"]) == (
        False,
        [
            {
                "code": "bound_not_proved",
                "lineage": 1,
                "membership_epoch": None,
                "partition": "c",
                "chain": scope.chain("c"),
                "sequence": None,
                "path": None,
                "detail": "its bound is through 90; its promotions prove through 45",
            }
        ],
    )


def test_a_frontier_that_reads_as_none_is_told_all_the_same(
    gapless: Gapless, scope: AuditedScope, job: Path
) -> None:
    scope.sql("UPDATE gapless_scope SET frontier = :key", key=b"nonsense")
    ran = gapless("audit", "--json")
    assert ran.exit_status == 5
    assert ran.document["frontier"] is None
    assert {one["code"] for one in ran.document["contradictions"]} >= {"record_damaged", "frontier_differs"}


def test_a_store_that_is_not_there_is_a_usage_error(gapless: Gapless, job: Path) -> None:
    assert gapless("audit").exit_status == 2


def test_python_gives_the_same(scope: AuditedScope) -> None:
    import gapless

    scope.sql("UPDATE gapless_scope SET frontier = :key", key=scope.key(50))
    told: list[str] = []
    with gapless.Progress("sqlite:///progress.db") as progress:
        report = progress.scope("orders").audit(found=lambda one: told.append(one.code))
    assert not report.clean
    assert told == ["frontier_differs"]
