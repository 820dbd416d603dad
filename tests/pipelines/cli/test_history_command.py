"""`gapless history`, and `history()` of the reader."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from audited_scope import AuditedScope, eventful

from gapless import Progress
from gapless.progress import Bound

Gapless = Callable[..., Any]


@pytest.fixture
def empty(folder: Path) -> Iterator[AuditedScope]:
    with closing(AuditedScope("sqlite:///progress.db", folder / "out")) as scope:
        yield scope


@pytest.fixture
def scope(empty: AuditedScope) -> AuditedScope:
    """A scope with an eventful history, in the store that the job file names."""
    return eventful(empty)


def test_frontiers_epochs_and_bounds_are_told_as_they_moved(
    gapless: Gapless, scope: AuditedScope, job: Path
) -> None:
    ran = gapless("history", "--json")
    assert (ran.exit_status, ran.err) == (0, "")
    document = ran.document
    assert list(document) == [
        "format",
        "scope",
        "as_of",
        "lineage",
        "membership_epoch",
        "frontiers",
        "epochs",
        "partitions",
        "bounds",
        "decisions",
        "restarts",
    ]
    (frontier,) = document["frontiers"]
    assert (frontier["lineage"], frontier["superseded"], frontier["moves"]) == (1, False, 4)
    assert [(p["position"], p["membership_epoch"]) for p in frontier["points"]] == [
        ("10", 1),
        ("30", 2),
        ("40", 3),
        ("45", 4),
    ]
    first, entering, leaving, moving = document["epochs"]
    assert (first["by"], first["members"], first["frontier"]) == ("first list", 2, None)
    assert entering["entered"] == [{"partition": "c", "bound": {"position": "20", "inclusive": True}}]
    assert leaving["left"] == [
        {"partition": "b", "seal": {"position": "30", "inclusive": True}, "by": "source"}
    ]
    assert moving["routing"] == {
        "from": "r1",
        "to": "r2",
        "by": "moves",
        "reason": "never behind what is certified",
    }
    assert [(b["partition"], b["promotions"], b["bound"]["position"]) for b in document["bounds"]] == [
        ("c", 4, "45"),
        ("a", 5, "50"),
    ]
    assert [point["position"] for point in document["bounds"][1]["points"]] == ["10", "20", "30", "40", "50"]
    assert [(one["action"], one["operator"], one["reason"]) for one in document["decisions"]] == [
        ("skip", "kim", "known bad")
    ]
    assert document["restarts"] == 1


def test_lines_for_a_reader_have_a_sparkline_each(gapless: Gapless, scope: AuditedScope, job: Path) -> None:
    lines = gapless("history").lines
    assert lines[0] == "orders: lineage 1, membership epoch 4"
    assert lines[1] == "frontier of lineage 1: through 45, certified, in 4 moves"
    bars = lines[2].split()[0]
    assert (len(bars), bars[0], bars[-1]) == (40, "▁", "█")
    assert list(bars) == sorted(bars)
    assert "membership epoch 2: at the frontier through 10; entered: c" in lines[4]
    assert "routing r1 to r2 by moves" in lines[6]
    assert lines[7].endswith("skip of b by kim: known bad")
    assert lines[8] == "1 restart after a page token had died"
    assert lines[9] == "  c: active, through 45, in 4 promotions"


def test_a_rebuild_begins_another_line(gapless: Gapless, scope: AuditedScope, job: Path) -> None:
    scope.store.rebuild("orders", "the source was restored", "kim")
    document = gapless("history", "--json").document
    assert [(one["lineage"], one["superseded"]) for one in document["frontiers"]] == [(1, True)]
    assert (document["lineage"], document["bounds"]) == (2, [])
    assert document["decisions"][-1]["action"] == "rebuild"
    assert "frontier of lineage 1 (superseded): through 45, certified, in 4 moves" in gapless("history").lines


def test_a_scope_that_has_not_moved(gapless: Gapless, empty: AuditedScope, job: Path) -> None:
    assert gapless("history").lines == [
        "orders: lineage 1, membership epoch 0",
        "frontier: nothing was ever published",
    ]


def test_of_many_moves_some_are_told_and_all_are_counted(empty: AuditedScope) -> None:
    empty.observe("a")
    for position in range(1, 501):
        empty.promote("a", position, rows=0)
        empty.publish()
    with Progress("sqlite:///progress.db") as progress:
        told = progress.scope("orders").history()
    (frontier,) = told.frontiers
    (bound,) = told.bounds
    for count, points in ((frontier.moves, frontier.points), (bound.promotions, bound.points)):
        assert count == 500
        assert 60 <= len(points) <= 120
        assert (points[0].bound, points[-1].bound) == (Bound.through(1), Bound.through(500))
        assert [point.at for point in points] == sorted(point.at for point in points)


def test_of_many_partitions_the_lowest_are_told(gapless: Gapless, empty: AuditedScope, job: Path) -> None:
    empty.observe(*(f"p{number:03d}" for number in range(120)))
    for number in (0, 1, 2):
        empty.promote(f"p{number:03d}", 10, rows=0)
    document = gapless("history", "--json").document
    assert (document["partitions"], len(document["bounds"])) == (120, 100)
    assert all(bound["bound"] is None for bound in document["bounds"])
    assert len(gapless("history", "--partitions", "--json").document["bounds"]) == 120
    assert gapless("history").lines[-1] == "  the lowest 10 of 120; --partitions tells of all"


def test_an_epoch_that_cannot_be_read_is_an_error_that_names_the_audit(
    gapless: Gapless, scope: AuditedScope, job: Path
) -> None:
    scope.sql("UPDATE gapless_epoch SET proof = 'no JSON' WHERE epoch = 2")
    ran = gapless("history")
    assert ran.exit_status == 2
    assert ran.lines == [
        "gapless: what led to membership epoch 2 cannot be read",
        "  where: scope orders",
        "  to do: `gapless audit` says what else does not hold",
    ]
