"""The conformance cases: ways in which connectors have lost data or claimed too much, against the real classes.

GAPLESS_CASES names another file of the same form."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from adapter import Scenario

CASES = Path(os.environ.get("GAPLESS_CASES") or Path(__file__).with_name("cases.json"))


@pytest.mark.parametrize("case", json.loads(CASES.read_text("utf-8")), ids=lambda case: case["id"])
def test_case(case: dict[str, Any], sqlite_url: str) -> None:
    scenario = Scenario(sqlite_url)
    for number, step in enumerate(case["steps"]):
        found = scenario.run(step)
        if "expect" in step:
            assert found == step["expect"], (
                f"{case['id']} {case['title']}: step {number}, {step['op']}: {case['right_behaviour']}"
            )
    scenario.close()
