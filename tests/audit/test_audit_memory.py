"""An audit, and a history, hold no more of a long scope than of a short one."""

import importlib.util
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from gapless.reading import Progress, ScopeProgress
from gapless.store import open_store

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "audit_memory.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit_memory", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.CHAINS = 100
    return module


def audited(scope: ScopeProgress) -> None:
    report = scope.audit()
    assert report.clean, report.contradictions


def told(scope: ScopeProgress) -> None:
    assert scope.history().frontiers


@pytest.mark.parametrize("command", [audited, told])
def test_memory_is_flat_over_records(
    benchmark: ModuleType, tmp_path: Path, command: Callable[[ScopeProgress], None]
) -> None:
    peaks = []
    for records in (1_000, 1_000, 20_000):
        url = f"sqlite:///{tmp_path}/{len(peaks)}.db"
        with open_store(url, create=True) as store:
            benchmark.fill(store, records)
        with Progress(url) as progress:
            scope = progress.scope("bench")
            tracemalloc.start()
            command(scope)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    # The first one pays for what is imported and compiled once. Rows are fetched a thousand at a time.
    assert peaks[2] < peaks[1] + 3_000_000, peaks
