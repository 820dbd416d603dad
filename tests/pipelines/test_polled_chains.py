"""Which chains a stream polls, and when."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from gapless.polling import Polling
from gapless.progress import ChainState
from gapless.settling.worker import Tally
from gapless.store.records import Blocker, ChainRow
from gapless_pipelines.polled_chains import PolledChains

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
POLLING = Polling(every=1.0, longest=4.0)


def row(chain: int, sequence: int = 0, **changes: object) -> ChainRow:
    plain = ChainRow(
        chain=chain,
        scope="s",
        lineage=1,
        partition=f"p{chain}",
        fields={},
        generation="",
        epoch_in=1,
        epoch_out=None,
        listed=1,
        state=ChainState.OPEN,
        fencing_token=1,
        sequence=sequence,
        page_token=None,
        bound=None,
        read_to=None,
        basis="certified",
        events=0,
        dead_letters=0,
        drift=0,
        blocker=None,
        seal=None,
        successors=None,
        parents=None,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def due(chains: PolledChains, rows: list[ChainRow], now: float) -> set[int]:
    return set(chains.due(rows, now, NOON + timedelta(seconds=now)))


def quiet(*chains: int) -> Tally:
    return Tally(caught_up=set(chains))


def test_everybody_is_due_at_first() -> None:
    assert due(PolledChains(POLLING), [row(1), row(2)], 0.0) == {1, 2}


def test_a_chain_that_has_nothing_new_is_asked_less_and_less_often() -> None:
    chains, rows = PolledChains(POLLING), [row(1)]
    now, asked = 0.0, []
    for _ in range(5):
        while not due(chains, rows, now):
            now += chains.seconds_left(rows, now, NOON + timedelta(seconds=now))
        asked.append(now)
        chains.polled({1}, rows, quiet(1), now)
    assert asked == [0.0, 1.0, 3.0, 7.0, 11.0]


def test_one_that_brought_something_is_asked_soon_again() -> None:
    chains = PolledChains(POLLING)
    due(chains, [row(1)], 0.0)
    for n in range(3):
        chains.polled({1}, [row(1)], quiet(1), float(n))
    chains.polled({1}, [row(1, sequence=2)], quiet(1), 10.0)
    assert chains.seconds_left([row(1, sequence=2)], 10.0, NOON) == 1.0


def test_one_that_is_behind_is_due_at_once() -> None:
    chains, rows = PolledChains(POLLING), [row(1), row(2)]
    due(chains, rows, 0.0)
    chains.polled({1, 2}, rows, quiet(2), 0.0)
    assert due(chains, rows, 0.1) == {1}
    assert chains.waiting == 1


def test_polls_that_are_due_at_nearly_the_same_time_are_one_pass() -> None:
    chains, rows = PolledChains(POLLING), [row(1), row(2), row(3)]
    due(chains, rows, 0.0)
    chains.polled({1}, rows, quiet(1), 0.0)
    chains.polled({2}, rows, quiet(2), 0.2)
    chains.polled({3}, rows, quiet(3), 0.9)
    assert due(chains, rows, 0.99) == set()
    assert due(chains, rows, 1.0) == {1, 2}


def test_a_newcomer_is_due_at_once_and_one_that_can_be_read_no_more_is_forgotten() -> None:
    chains = PolledChains(POLLING)
    due(chains, [row(1)], 0.0)
    chains.polled({1}, [row(1)], quiet(1), 0.0)
    assert due(chains, [row(1), row(2)], 0.1) == {2}
    assert due(chains, [row(2)], 0.2) == {2}
    assert due(chains, [row(1)], 0.3) == {1}, "it is met anew"


def test_a_held_chain_is_tried_when_it_says_so_else_after_a_while() -> None:
    held = row(1, state=ChainState.HELD)
    chains = PolledChains(POLLING)
    due(chains, [held], 0.0)
    chains.polled({1}, [held], Tally(), 0.0)
    assert due(chains, [held], POLLING.held - 0.1) == set()
    assert due(chains, [held], POLLING.held) == {1}
    soon = replace(
        held, blocker=Blocker("source_unavailable", "HTTP 503", retry_at=NOON + timedelta(seconds=3))
    )
    assert due(chains, [soon], 2.0) == set()
    assert due(chains, [soon], 3.0) == {1}


def test_nobody_is_waited_for_longer_than_the_longest_delay() -> None:
    chains = PolledChains(POLLING)
    assert chains.seconds_left([], 0.0, NOON) == 4.0
    held = row(1, state=ChainState.HELD)
    due(chains, [held], 0.0)
    chains.polled({1}, [held], Tally(), 0.0)
    assert chains.seconds_left([held], 0.0, NOON) == 4.0
