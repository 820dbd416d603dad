"""Leaves out the cases whose operations do not exist yet, and says so, by operation."""

from collections import defaultdict

import pytest
from adapter import OPERATIONS

_left_out: dict[str, list[str]] = defaultdict(list)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept, deselected = [], []
    for item in items:
        missing = _missing_operations(item)
        (deselected if missing else kept).append(item)
        for operation in missing:
            _left_out[operation].append(item.callspec.params["case"]["id"])  # type: ignore[attr-defined]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for operation, cases in sorted(_left_out.items()):
        terminalreporter.write_line(
            f"conformance: no operation {operation!r} yet: {', '.join(cases)} not run"
        )


def _missing_operations(item: pytest.Item) -> list[str]:
    case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
    if not isinstance(case, dict) or "steps" not in case:
        return []
    return sorted({step["op"] for step in case["steps"]} - OPERATIONS.keys())
