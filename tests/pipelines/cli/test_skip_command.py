from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Gapless = Callable[..., Any]


@pytest.fixture
def held(orders: Any, job: Path) -> Any:
    orders.begin("a", "b")
    orders.promote("a", 100)
    orders.hold("a")
    return orders


def test_a_held_event_becomes_a_dead_letter_with_reason_and_operator(gapless: Gapless, held: Any) -> None:
    ran = gapless("skip", "a", "e110", "--reason", "known bad", "--operator", "kim", "--json")
    assert ran.exit_status == 0, ran.err
    letter = ran.document["dead_letter"]
    assert (letter["event_id"], letter["position"], letter["reason"]) == ("e110", "110", "known bad")
    assert letter["operator"] == "kim"
    (stored,) = held.store.dead_letters("orders")
    assert (stored.event_id, stored.operator) == ("e110", "kim")
    assert held.store.receipts(held.rows["a"].chain) == {"e110": "dead_lettered"}
    assert gapless("status", "--json").document["counts"]["dead_letters"] == 1


def test_skipping_twice_is_once(gapless: Gapless, held: Any) -> None:
    assert gapless("skip", "a", "e110", "--reason", "known bad").exit_status == 0
    assert gapless("skip", "a", "e110", "--reason", "again").exit_status == 0
    assert [letter.reason for letter in held.store.dead_letters("orders")] == ["known bad"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["x", "e110", "--reason", "known bad"], "has no partition 'x'"),
        (["a", "e111", "--reason", "known bad"], "is not held on event 'e111' but on e110"),
        (["b", "e110", "--reason", "known bad"], "it is not held"),
        (["a", "e110", "--reason", ""], "needs a reason"),
        (["a", "e110", "--reason", "  "], "needs a reason"),
        (["a", "e110", "--reason", "..."], "needs a reason"),
        (["a", "e110"], "--reason"),
        (["a"], "EVENT"),
    ],
)
def test_what_cannot_be_skipped_is_refused_and_changes_nothing(
    arguments: list[str], what: str, gapless: Gapless, held: Any
) -> None:
    ran = gapless("skip", *arguments)
    assert ran.exit_status == 2
    assert len(ran.lines) == 3
    assert what in ran.lines[0]
    assert list(held.store.dead_letters("orders")) == []


def test_without_a_name_the_user_is_the_operator(
    gapless: Gapless, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "robin")
    assert gapless("skip", "a", "e110", "--reason", "known bad").exit_status == 0
    assert next(held.store.dead_letters("orders")).operator == "robin"


def test_a_user_without_a_name_is_a_number(
    gapless: Gapless, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> str:
        raise OSError("No username set in the environment")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert gapless("skip", "a", "e110", "--reason", "known bad").exit_status == 0
    assert next(held.store.dead_letters("orders")).operator.startswith("uid ")


def test_it_tells_what_comes_next(gapless: Gapless, held: Any) -> None:
    lines = gapless("skip", "a", "e110", "--reason", "known bad", "--operator", "kim").lines
    assert lines == [
        "orders: event e110 of partition a is a dead letter now, by kim: known bad",
        "the next run goes on past it: `gapless backfill`",
    ]


def test_store_and_scope_name_what_is_meant_too(gapless: Gapless, held: Any) -> None:
    ran = gapless("skip", "a", "e110", "--reason", "known bad", "--store", "sqlite:///progress.db")
    assert ran.exit_status == 0, ran.err
    ran = gapless("skip", "a", "e110", "--reason", "known bad", "--job", "orders.yaml")
    assert ran.exit_status == 0, ran.err
