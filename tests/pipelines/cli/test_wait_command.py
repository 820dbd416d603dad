from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from gapless.progress import Bound
from gapless.store.records import Blocker
from gapless.testing import ManualClock

Gapless = Callable[..., Any]


class Acting(ManualClock):
    """Does something at each sleep, in place of the run that would go on meanwhile."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        super().__init__()
        self._actions = list(actions)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self._actions:
            self._actions.pop(0)()


def test_what_is_complete_is_reached_at_once(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", 100)
    orders.publish()
    clock = ManualClock()
    ran = gapless("wait", "--through", "100", clock=clock)
    assert (ran.exit_status, clock.slept) == (0, [])
    assert ran.lines[0].startswith("orders: complete through 100")


def test_an_exclusive_bound_does_not_reach_its_own_position(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", None, bound=Bound.before(100))
    orders.publish()
    assert gapless("wait", "--through", "99", clock=ManualClock()).exit_status == 0
    assert gapless("wait", "--through", "100", "--timeout", "0s", clock=ManualClock()).exit_status == 6


def test_it_looks_again_until_it_is_reached(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", 50)
    orders.publish()
    clock = Acting(lambda: None, lambda: orders.promote("a", 150), orders.publish)
    assert gapless("wait", "--through", "100", "--timeout", "10m", clock=clock).exit_status == 0
    assert clock.slept == [1.0, 1.0, 1.0]


def test_when_the_time_is_up_it_is_not_yet(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 50)
    clock = ManualClock()
    ran = gapless("wait", "--through", "100", "--timeout", "2500ms", clock=clock)
    assert ran.exit_status == 6
    assert sum(clock.slept) == 2.5
    assert ran.lines[0] == "not yet through 100"
    assert (
        ran.lines[2]
        == "waiting for b (without a bound): not_started: taken by a run; no page of it has been promoted yet"
    )


def test_a_hold_without_a_retry_blocks_at_once_and_is_told(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 120)
    orders.promote("b", 100)
    orders.hold("b")
    orders.publish()
    clock = ManualClock()
    ran = gapless("wait", "--through", "110", clock=clock)
    assert (ran.exit_status, clock.slept) == (3, [])
    assert ran.lines[0] == "blocked: time alone does not bring it through 110"
    assert ran.lines[2] == "b, through 100: unsettled_event"
    assert ran.lines[-1] == "  command: gapless skip b e110 --reason ..."


def test_a_hold_above_the_position_blocks_nothing(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 50)
    orders.promote("b", 100)
    orders.hold("b")
    orders.publish()
    clock = Acting(lambda: (orders.promote("a", 100), orders.publish()))
    assert gapless("wait", "--through", "90", clock=clock).exit_status == 0


def test_a_retry_that_is_still_to_come_is_waited_for(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", 50)
    later = datetime(2024, 1, 1, 0, 5, tzinfo=timezone.utc)
    orders.hold("a", Blocker("source_unavailable", "503", retry_at=later))
    ran = gapless("wait", "--through", "100", "--timeout", "3s", clock=ManualClock())
    assert ran.exit_status == 6


def test_it_becomes_blocked_while_it_waits(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    clock = Acting(lambda: None, lambda: orders.hold("a"))
    assert gapless("wait", "--through", "100", clock=clock).exit_status == 3
    assert len(clock.slept) == 2


def test_a_partition_that_has_ended_below_the_position_blocks(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a")
    orders.promote("a", 80, end=True, token_out=None)
    orders.publish()
    ran = gapless("wait", "--through", "100", clock=ManualClock())
    assert ran.exit_status == 3
    assert "  why: the source ended the partition, certified through 80" in ran.lines


def test_a_member_list_certified_no_further_is_waited_for_while_a_run_looks_at_it(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a", list_bound=Bound.through(60))
    orders.promote("a", 100)
    orders.publish()
    ran = gapless("wait", "--through", "90", "--timeout", "2s", clock=ManualClock())
    assert ran.exit_status == 6
    assert ran.lines[-1].startswith("waiting for the list of partitions (through 60): member_list_unproven")


def test_a_member_list_certified_no_further_blocks_where_no_run_goes_on(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a", list_bound=Bound.through(60))
    orders.promote("a", 100)
    orders.publish()
    orders.store.end_run("run-of-orders", "finished")
    ran = gapless("wait", "--through", "90", "--json", clock=ManualClock())
    assert ran.exit_status == 3
    assert ran.document["blocker"] == {
        "partition": None,
        "code": "member_list_unproven",
        "event_id": None,
        "position": None,
        "since": None,
        "bound": {"position": "60", "inclusive": True},
        "hint": "the list of partitions is certified through 60 only",
        "release": {"retry_at": None, "command": None},
    }
    told = gapless("wait", "--through", "90", clock=ManualClock())
    assert "the list of partitions, through 60: member_list_unproven" in told.lines


@pytest.mark.parametrize(("through", "status", "state"), [("50", 0, "reached"), ("100", 3, "blocked")])
def test_json_says_the_same(
    through: str, status: int, state: str, gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a")
    orders.promote("a", 50)
    orders.hold("a")
    orders.publish()
    ran = gapless("wait", "--through", through, "--json", clock=ManualClock())
    assert ran.exit_status == status
    assert ran.err == ""
    assert ran.document["state"] == state
    assert ran.document["frontier"]["position"] == "50"
    assert (ran.document["blocker"] is None) == (status == 0)


@pytest.mark.parametrize("through", ["", "1.5", "soon", "1e3"])
def test_what_is_no_position_is_refused(through: str, gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    ran = gapless("wait", "--through", through)
    assert ran.exit_status == 2
    assert len(ran.lines) == 3


@pytest.mark.parametrize("timeout", ["10", "soon", "-1s", "1 m", ""])
def test_what_is_no_duration_is_refused(timeout: str, gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    ran = gapless("wait", "--through", "1", f"--timeout={timeout}")
    assert ran.exit_status == 2
    assert ran.lines[0] == f"gapless: --timeout {timeout!r} is no duration"


def test_a_position_has_to_be_given(gapless: Gapless, job: Path) -> None:
    ran = gapless("wait")
    assert ran.exit_status == 2
    assert "--through" in ran.lines[0]
