from typing import Any

from snapshots import scope

from gapless.progress import Bound, ChainState, IntegerDomain
from gapless.updates import PartitionProgress
from gapless_pipelines.cli.run_progress import RunProgress, frontier_text, partition_cells, view_line


def stands(partition: str, bound: int | Bound | None = None, **changes: Any) -> PartitionProgress:
    values: dict[str, Any] = {
        "scope": "orders",
        "domain": IntegerDomain(),
        "chain": ord(partition),
        "partition": partition,
        "lineage": 1,
        "epoch": 1,
        "members": 2,
        "member": True,
        "state": ChainState.OPEN,
        "fencing_token": 1,
        "sequence": 0,
        "events": 0,
        "bound": Bound.through(bound) if isinstance(bound, int) else bound,
        "basis": "certified",
    }
    return PartitionProgress(**(values | changes))


def test_only_what_this_run_has_read_is_counted() -> None:
    progress = RunProgress([stands("a", 50, sequence=5, events=500), stands("b")], now=100.0)
    progress.update(stands("a", 60, sequence=7, events=700))
    progress.update(stands("b", 10, sequence=1, events=100))
    view = progress.view(102.0, "no frontier yet")
    assert (view.pages, view.events, view.rate, view.seconds) == (3, 300, 150.0, 2.0)


def test_the_rate_is_that_of_the_last_seconds() -> None:
    progress = RunProgress([stands("a")], now=0.0)
    for second in range(1, 31):
        progress.update(stands("a", events=1000 * second if second <= 20 else 20_000 + 10 * (second - 20)))
        view = progress.view(float(second), "")
    assert view.rate == 10.0


def test_a_view_at_the_very_beginning_has_no_rate() -> None:
    assert RunProgress([stands("a")], now=5.0).view(5.0, "").rate == 0.0


def test_partitions_are_done_where_they_have_ended_or_are_proved_through_the_stop() -> None:
    chains = [
        stands("a", 99),
        stands("b", Bound.before(100)),
        stands("c", 40, state=ChainState.ENDED),
        stands("d", 40, state=ChainState.HELD, blocker="unsettled_event"),
        stands("e", 40, state=ChainState.GAP),
        stands("f"),
    ]
    view = RunProgress(chains, now=0.0, stop=Bound.before(100)).view(1.0, "")
    assert (view.partitions, view.done, view.held) == (6, 2, 2)
    assert [chain.partition for chain in view.lowest] == ["f", "d", "e", "a"]


def test_a_partition_that_appears_later_is_counted_with_all_it_has() -> None:
    progress = RunProgress([stands("a")], now=0.0)
    progress.update(stands("b", sequence=1, events=10))
    assert progress.view(1.0, "").partitions == 2


def test_a_view_is_one_line() -> None:
    progress = RunProgress([stands("a"), stands("b", 40, state=ChainState.HELD)], now=0.0)
    progress.update(stands("a", 60, sequence=1, events=1500))
    view = progress.view(3.0, "complete through 40, certified")
    assert view_line(view) == (
        "3 s: 0 of 2 partitions done, 1 held, 1,500 events, 500/s; complete through 40, certified"
    )


def test_each_partition_is_a_row_of_text() -> None:
    rows = list(
        partition_cells(
            [
                stands("a", 60, sequence=7, events=7000),
                stands("b", state=ChainState.HELD, blocker="schema_drift"),
                stands("c", 5, state=ChainState.GAP, blocker="range_trimmed"),
            ]
        )
    )
    assert rows == [
        ("a", "reading", "through 60", "7", "7,000"),
        ("b", "held: schema_drift", "without a bound", "0", "0"),
        ("c", "gap: range_trimmed", "through 5", "0", "0"),
    ]


def test_the_frontier_is_told_with_its_basis() -> None:
    assert frontier_text(scope(None)) == "no frontier yet"
    assert frontier_text(scope(40, basis="asserted")) == "complete through 40, asserted"
