"""Whose end is awaited, against histories of transactions that end, begin and are prepared in any order."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.delivery.barrier_rule import Awaited, Holder


def session(number: int) -> Holder:
    return Holder(f"{number}/1", 1000 + number)


def prepared(number: int) -> Holder:
    return Holder(f"-1/{number}", None)


class Server:
    """Transactions by number, as holders show them: a session's name, and another one once it is prepared."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.open: dict[int, Holder] = {}
        self.begun = 0

    def step(self) -> None:
        what = self.random.random()
        if what < 0.4 or not self.open:
            self.begun += 1
            self.open[self.begun] = session(self.begun)
            return
        number = self.random.choice(list(self.open))
        if what < 0.65 and not self.open[number].prepared:
            self.open[number] = prepared(number)
        else:
            del self.open[number]

    def holders(self) -> set[Holder]:
        return set(self.open.values())


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_nobody_is_awaited_any_more_only_when_all_of_the_first_have_ended(
    seed: int, steps: list[int]
) -> None:
    server = Server(seed)
    for _ in range(6):
        server.step()
    first = set(server.open)
    awaited = Awaited.at_first(server.holders())
    for between in steps:
        for _ in range(between):
            server.step()
        awaited = awaited.later(server.holders())
        if awaited.over:
            assert not first & set(server.open)
            return


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_waiting_ends_with_the_first_ones_where_nobody_prepares(seed: int) -> None:
    server = Server(seed)
    server.random.random = iter([0.1] * 5).__next__
    for _ in range(5):
        server.step()
    awaited = Awaited.at_first(server.holders())
    newcomers = {session(100 + number) for number in range(50)}
    assert not awaited.later(server.holders() | newcomers).over
    assert awaited.later(newcomers).over


def test_following_no_prepared_transactions_would_end_the_waiting_too_early() -> None:
    writer, renamed = session(1), prepared(740)
    assert not {writer} & {renamed}
    assert Awaited.at_first({writer}).later({renamed}).holders == {renamed}


def test_a_transaction_prepared_before_the_waiting_began_is_awaited_under_its_name() -> None:
    old = prepared(700)
    assert Awaited.at_first({old, session(1)}).later({old}).holders == {old}


def test_a_transaction_prepared_while_nobody_vanished_is_not_awaited() -> None:
    writer, other = session(1), prepared(741)
    awaited = Awaited.at_first({writer}).later({writer, other})
    assert awaited.holders == {writer}
    assert awaited.later({other}).over


def test_a_prepared_transaction_that_ended_is_followed_by_no_other() -> None:
    old, newer = prepared(700), prepared(701)
    assert Awaited.at_first({old}).later({newer}).over


def test_the_waiting_ends_however_many_are_prepared_meanwhile() -> None:
    awaited = Awaited.at_first({session(1)}).later({prepared(0)})
    for number in range(1, 100):
        awaited = awaited.later({prepared(number)})
        if awaited.over:
            return
    raise AssertionError("still waiting")


@pytest.mark.parametrize("seen", [[], [session(1)], [prepared(1), session(2)]])
def test_the_waiting_is_over_at_once_where_nobody_holds(seen: list[Holder]) -> None:
    assert Awaited.at_first(seen).over == (not seen)
