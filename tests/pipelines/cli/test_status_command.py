from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gapless.progress import Bound, ChainState
from gapless.store.records import Blocker
from gapless_pipelines.job.output_documents import StatusDocument

Gapless = Callable[..., Any]


def test_it_says_how_far_everything_is_complete(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b", after=Bound.before(0))
    orders.promote("a", 120)
    orders.promote("b", 90)
    orders.publish()
    ran = gapless("status")
    assert ran.exit_status == 0
    assert ran.out == ""
    assert ran.lines[0].startswith("orders: complete through 90, certified, from 0 (published ")
    assert ran.lines[1] == "  2 partitions: 2 active; epoch 1, list frozen"
    assert ran.lines[2] == "  2 pages, 20 events, 0 dead letters, 0 violations"
    assert ran.lines[3].startswith("  run 1 on local: lost, started "), "a killed one cannot say that it is"
    assert ran.lines[4:] == [
        "  b: active, through 90, 1 page, 10 events",
        "  a: active, through 120, 1 page, 10 events",
    ]


def test_nothing_but_json_is_on_standard_output(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 120)
    ran = gapless("status", "--json")
    assert ran.err == ""
    StatusDocument.model_validate(ran.document)
    assert ran.document["frontier"] is None
    assert ran.document["withheld"]["code"] == "not_started"
    assert [row["partition"] for row in ran.document["partitions"]] == ["b", "a"]


def test_a_held_partition_is_shown_with_its_event(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 120)
    orders.promote("b", 100)
    orders.hold("b")
    orders.publish()
    lines = gapless("status").lines
    assert "withheld: unsettled_event: partition b: ValueError: no" in lines
    assert "held: b (through 100): unsettled_event, event e110 at 110: ValueError: no" in lines


@pytest.mark.parametrize(
    ("prepare", "status"),
    [
        (lambda orders: orders.promote("a", 1), 0),
        (lambda orders: orders.hold("a"), 3),
        (lambda orders: None, 3),
        (lambda orders: (orders.promote("a", 1), orders.violate("a"), orders.hold("a")), 5),
    ],
    ids=["open", "held", "nothing claimed", "violation before held"],
)
def test_exit_code_maps_what_is_shown(
    prepare: Callable[[Any], object], status: int, gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a")
    prepare(orders)
    orders.publish()
    assert gapless("status").exit_status == 0
    assert gapless("status", "--exit-code").exit_status == status
    assert gapless("explain", "--exit-code", "--json").exit_status == status


def test_only_the_lowest_partitions_are_shown_unless_all_are_asked_for(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    names = [f"p{number:03}" for number in range(105)]
    orders.begin(*names)
    ran = gapless("status")
    assert sum(line.startswith("  p") for line in ran.lines) == 10
    assert ran.lines[-1] == "  the lowest 10 of 105; --partitions shows all"
    assert "  and 95 more: `gapless explain`" in ran.lines
    assert len(gapless("status", "--json").document["partitions"]) == 100
    assert len(gapless("status", "--json", "--partitions").document["partitions"]) == 105
    assert sum(line.startswith("  p") for line in gapless("status", "--partitions").lines) == 105


def test_text_of_a_source_cannot_move_the_cursor(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a\x1b[2J")
    orders.hold("a\x1b[2J", Blocker("unsettled_event", "line one\nline two \x07", "e\r1", 1))
    for command in ("status", "explain"):
        ran = gapless(command)
        assert all(line.isprintable() for line in ran.lines)
        assert "a\\x1b[2J" in ran.err


def test_who_is_still_to_be_read_is_waited_for_and_not_held(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 10, drift=3)
    lines = gapless("status").lines
    assert "  1 page, 10 events, 0 dead letters, 0 violations, schema drift in 3 events" in lines
    assert (
        "waiting: b (without a bound): not_started: taken by a run; no page of it has been promoted yet"
        in lines
    )


def test_a_gap_is_a_state_of_its_own(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", 10)
    orders.hold("a", Blocker("range_trimmed", "the source has dropped what follows"), ChainState.GAP)
    document = gapless("status", "--json").document
    assert document["partitions"][0]["state"] == "gap"
    assert document["counts"]["held"] == 1
