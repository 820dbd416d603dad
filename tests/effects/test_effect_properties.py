"""Whatever rows a source sends: what the files hold is what it sent, event by event, to the last field."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gapless.effects.run_writer as run_writer
from gapless.effects import RunStart
from gapless.paging.page import Page

TEXT = st.text(max_size=4) | st.sampled_from(["\ud800", "2020-01-01", "null", "1", "\0", "\udc00x"])
NUMBERS = (
    st.integers(-3, 3)
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 1.0, -0.0, 1e300, 5e-324])
    | st.floats(allow_nan=False, allow_infinity=False)
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(["a", "b", "c", "d", "_rest", "_position", "_event_id", "", "x.y", "é", "\ud800"])
# Rows of one page mostly look alike, so that every way of inferring and every fast path is met as well.
SHAPES = st.dictionaries(
    st.sampled_from("abcd"),
    st.sampled_from(
        [st.none(), st.booleans(), st.integers(-3, 3), st.floats(0, 1), st.text(max_size=3), NUMBERS, VALUES]
    ),
    max_size=4,
)
ROWS = SHAPES.flatmap(st.fixed_dictionaries) | st.dictionaries(KEYS, VALUES, max_size=4)
PAGES = st.lists(ROWS, max_size=5) | SHAPES.flatmap(
    lambda shape: st.lists(st.fixed_dictionaries(shape), max_size=5)
)
RUNS = st.lists(st.lists(PAGES, max_size=4), min_size=1, max_size=3)


def strictly(row: dict[str, Any]) -> dict[str, str]:
    """A row by the exact forms of its values: 1 and True differ, and so do -0.0 and 0.0.

    A whole float and the integer equal to it are one number of JSON, and only at the top do columns make one of the other."""
    return {key: repr(_as_number(value)) for key, value in row.items() if value is not None}


def _as_number(value: Any) -> Any:
    exact = type(value) is int and abs(value) <= 2**53
    return float(value) if exact else value


# The fixture is a factory: each example has a folder and a store of its own.
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    runs=RUNS,
    group=st.sampled_from([1, 3, 100]),
    workers=st.integers(1, 2),
    drift=st.sampled_from(["rest", "hold"]),
)
def test_reading_all_files_back_gives_the_rows_that_were_sent(
    make_bench: Callable[[Path], Any],
    runs: list[list[list[dict[str, Any]]]],
    group: int,
    workers: int,
    drift: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_writer, "ROW_GROUP_ROWS", group)
        bench = make_bench(Path(folder))
        sessions = [bench.open(on_drift=drift) for _ in range(workers)]
        sent = []
        for number, pages in enumerate(runs):
            writer = sessions[number % workers].begin(RunStart(1, "p0", number, 1))
            for sequence, rows in enumerate(pages):
                page = _page(rows)
                held = {failure.event_id for failure in writer.add(page, sequence)}
                assert drift == "hold" or not held
                if held:
                    assert writer.add(page, sequence, skip=held) == ()
                sent += [row for event, row in zip(page.ids, rows, strict=True) if event not in held]
            assert writer.rows == sum(len(rows) for rows in pages) or drift == "hold"
            bench.outputs.append(writer.finish())
        bench.close()
        if bench.store.frozen() is None:
            assert sent == []
            return
        records = bench.records()
        assert [strictly(row) for row in bench.rows()] == [strictly(row) for row in sent]
        assert sum(output.drifted for output in bench.outputs) == sum(r["_rest"] is not None for r in records)
        assert sum(output.rows for output in bench.outputs) == len(sent)
        assert len(bench.files()) == sum(output.path is not None for output in bench.outputs)


def _page(rows: list[dict[str, Any]]) -> Page:
    return Page(
        None, "more", False, [f"e{index}" for index in range(len(rows))], list(range(len(rows))), rows
    )
