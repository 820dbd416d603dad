from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import BLOCKER_CODES, Bound, ChainState
from gapless.store.records import Blocker, MembershipPolicy

Gapless = Callable[..., Any]


def test_it_names_partition_event_reason_and_release(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 120)
    orders.promote("b", 100)
    retry = datetime(2024, 1, 1, 0, 5, tzinfo=timezone.utc)
    orders.hold("b", Blocker("unsettled_event", "ValueError: no", "e110", 110, retry_at=retry))
    orders.publish()
    lines = gapless("explain").lines
    assert lines[1:5] == [
        "withheld: unsettled_event: partition b: ValueError: no",
        "b, through 100: unsettled_event",
        "  event: e110 at 110",
        "  why: ValueError: no",
    ]
    assert lines[5].startswith("  since: 2024-01-01T00:00:00.000Z (")
    assert lines[6:] == [
        f"  released by: {BLOCKER_CODES['unsettled_event'][1]}",
        "  tried again at: 2024-01-01T00:05:00.000Z",
        "  command: gapless skip b e110 --reason ...",
    ]


def test_the_command_it_names_works_as_it_stands(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("-a b")
    orders.hold("-a b", Blocker("unsettled_event", "no", "it's -e", 1))
    (line,) = [line for line in gapless("explain").lines if line.startswith("  command: ")]
    import shlex

    words = shlex.split(line.removeprefix("  command: gapless "))
    words[words.index("...")] = "known bad"
    ran = gapless(*words)
    assert ran.exit_status == 0, ran.err


def test_json_holds_frontier_withheld_and_blockers(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.hold("a")
    document = gapless("explain", "--json").document
    assert list(document) == ["format", "gapless", "as_of", "scope", "frontier", "withheld", "blockers"]
    assert document["blockers"][0]["release"]["command"] == "gapless skip a e110 --reason ..."


def test_a_partition_held_higher_up_is_told_apart(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 50)
    orders.promote("b", 100)
    orders.hold("b")
    orders.publish()
    lines = gapless("explain").lines
    assert lines[1] == "nothing holds the frontier itself; higher up:"
    assert lines[2] == "b, through 100: unsettled_event"


def test_of_a_run_that_may_be_dead_it_does_not_say_that_it_reads(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a")
    orders.promote("a", 50)
    orders.publish()
    orders.clock.advance((datetime.now(timezone.utc) - orders.clock.now()).total_seconds() - 7200)
    orders.store.heartbeat("run-of-orders")
    (line,) = gapless("explain").lines[1:]
    assert line.startswith("nothing holds it: 1 partition to be read further by run 1, silent for 2 h")
    assert line.endswith(": if it is gone, `gapless backfill` goes on")


def test_where_nothing_holds_it_says_who_reads(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", 50)
    orders.publish()
    orders.clock.advance((datetime.now(timezone.utc) - orders.clock.now()).total_seconds())
    orders.store.heartbeat("run-of-orders")
    assert gapless("explain").lines[1:] == ["nothing holds it: 1 partition being read"]
    orders.store.end_run("run-of-orders", "failed")
    assert gapless("explain").lines[1:] == [
        "nothing holds it: 1 partition can be read further, and no run does: `gapless backfill`"
    ]
    orders.promote("a", 60, end=True, token_out=None)
    orders.publish()
    assert gapless("explain").lines[1:] == ["nothing holds it: every partition is read to its end"]


def test_a_member_list_that_is_not_proved_names_its_release(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", list_bound=Bound.through(60))
    orders.promote("a", 100)
    orders.publish()
    lines = gapless("explain").lines
    assert lines[0].startswith("orders: complete through 60, certified")
    assert lines[1:] == [
        "withheld: member_list_unproven: the list of partitions is certified through 60 only",
        f"  released by: {BLOCKER_CODES['member_list_unproven'][1]}",
    ]


def test_routing_that_is_unproven_is_told_apart_from_the_partitions_that_stand_still(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a")
    orders.promote("a", 100)
    orders.publish()
    orders.store.observe(
        "orders",
        Assignment([ListedPartition(Partition("a", {}))], "r2"),
        policy=MembershipPolicy(reading_again=False),
    )
    lines = gapless("explain").lines
    assert lines[1:5] == [
        "withheld: handoff_unproven: routing generation 'r2' follows '' without a proof of what moved",
        f"  released by: {BLOCKER_CODES['handoff_unproven'][1]}",
        "a, through 100: membership_changed",
        "  why: the source now routes under generation 'r2'; this chain is of '', and is read no further",
    ]
    assert lines[-1] == "  command: gapless epoch show"
    ran = gapless("wait", "--through", "150", "--timeout", "1s", "--json")
    assert (ran.exit_status, ran.document["blocker"]["code"]) == (3, "handoff_unproven")


def test_many_blockers_are_shown_in_part_unless_all_are_asked_for(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin(*(f"p{number:02}" for number in range(25)))
    shown = gapless("explain").lines
    assert sum(line.endswith(": not_started") for line in shown) == 20
    assert shown[-1] == "and 5 partitions more that hold: --all shows them"
    everything = gapless("explain", "--all").lines
    assert sum(line.endswith(": not_started") for line in everything) == 25


def test_a_gap_is_explained_by_its_code(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.hold("a", Blocker("token_expired", "410 from the source"), ChainState.GAP)
    assert "a, without a bound: token_expired" in gapless("explain").lines
