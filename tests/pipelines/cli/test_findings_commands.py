"""`dead-letters` and `violations`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Gapless = Callable[..., Any]


class TestDeadLetters:
    def test_are_listed_with_their_reasons(self, gapless: Gapless, orders: Any, job: Path) -> None:
        orders.begin("a", "b")
        orders.give_up("a", 10, "e10")
        orders.give_up("b", 20, "e20")
        ran = gapless("dead-letters", "list", "--json")
        assert ran.err == ""
        assert list(ran.document) == ["format", "scope", "dead_letters"]
        assert ran.document["dead_letters"][0] == {
            "partition": "a",
            "event_id": "e10",
            "position": "10",
            "sequence": 0,
            "reason": "ValueError: no",
            "operator": None,
            "path": "/dead/1.parquet",
            "recorded_at": "2024-01-01T00:00:00.000Z",
        }
        assert gapless("dead-letters", "list").lines == [
            "orders: 2 dead letters",
            "  a, event e10 at 10: ValueError: no",
            "  b, event e20 at 20: ValueError: no",
        ]

    def test_are_shown_with_everything_that_was_sent(self, gapless: Gapless, orders: Any, job: Path) -> None:
        orders.begin("a")
        orders.give_up("a", 10, "e10")
        letter = gapless("dead-letters", "show", "a", "e10", "--json").document["dead_letter"]
        assert (letter["payload"], letter["position"]) == ('{"n": 1}', "10")
        assert gapless("dead-letters", "show", "a", "e10").lines == [
            "a, event e10 at 10",
            "  why: ValueError: no",
            "  recorded at: 2024-01-01T00:00:00.000Z",
            "  file: /dead/1.parquet",
            '  event: {"n": 1}',
        ]

    def test_a_skipped_one_has_an_operator_and_no_data_yet(
        self, gapless: Gapless, orders: Any, job: Path
    ) -> None:
        orders.begin("a")
        orders.hold("a")
        gapless("skip", "a", "e110", "--reason", "known bad", "--operator", "kim")
        lines = gapless("dead-letters", "show", "a", "e110").lines
        assert lines[1] == "  why: known bad (skipped by kim)"
        assert lines[-1] == "  event: its data was not read again since it was skipped"

    def test_one_that_is_none_is_refused(self, gapless: Gapless, orders: Any, job: Path) -> None:
        orders.begin("a")
        ran = gapless("dead-letters", "show", "a", "e10")
        assert ran.exit_status == 2
        assert ran.lines[0] == "gapless: event 'e10' of partition 'a' is no dead letter"


class TestViolations:
    def test_are_shown_with_the_evidence(self, gapless: Gapless, orders: Any, job: Path) -> None:
        orders.begin("a")
        orders.violate("a")
        ran = gapless("violations", "--json")
        assert ran.exit_status == 0
        assert ran.document == {
            "format": 1,
            "scope": "orders",
            "violations": [
                {
                    "lineage": 1,
                    "partition": "a",
                    "kind": "event_behind_bound",
                    "sequence": 3,
                    "event_id": "e5",
                    "position": "5",
                    "bound": {"position": "10", "inclusive": True},
                    "detail": "event 'e5' at 5 came late",
                    "recorded_at": "2024-01-01T00:00:00.000Z",
                }
            ],
        }
        assert gapless("violations").lines == [
            "orders: 1 violation",
            "  a, page 3: an event behind what was certified",
            "    event: e5 at 5",
            "    certified: through 10",
            "    found: event 'e5' at 5 came late, 2024-01-01T00:00:00.000Z",
        ]

    def test_exit_code_is_5_where_there_are_any(self, gapless: Gapless, orders: Any, job: Path) -> None:
        orders.begin("a")
        assert gapless("violations", "--exit-code").exit_status == 0
        orders.violate("a")
        assert gapless("violations", "--exit-code").exit_status == 5
        assert gapless("violations").exit_status == 0
