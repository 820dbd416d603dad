"""The conformance cases: ways in which connectors have lost data or claimed too much, against the real classes.

`more_cases.json` adds what `cases.json` leaves out of the kinds of result. GAPLESS_CASES names another file of their form."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from adapter import Scenario


def _cases() -> list[dict[str, Any]]:
    given = os.environ.get("GAPLESS_CASES")
    here = Path(__file__).parent
    files = [Path(given)] if given else [here / "cases.json", here / "more_cases.json"]
    return [case for file in files for case in json.loads(file.read_text("utf-8"))]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["id"])
def test_case(case: dict[str, Any], sqlite_url: str) -> None:
    scenario = Scenario(sqlite_url)
    for number, step in enumerate(case["steps"]):
        found = scenario.run(step)
        if "expect" in step:
            assert found == step["expect"], (
                f"{case['id']} {case['title']}: step {number}, {step['op']}: {case['right_behaviour']}"
            )
    scenario.close()
