"""Message logs on Beam: every shard handed on, each range once, whatever the engine does with its bundles."""

from pathlib import Path

import apache_beam as beam
import pytest
import sqlalchemy as sa
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from message_tables import add, create_table, open_log
from range_effects import RememberedRanges, judge

from gapless import SummariseCovered
from gapless.delivery import CoveredRange, Held, MessageLog
from gapless.errors import ConfigurationError
from gapless.progress import Bound
from gapless.progress_merge import FrontierHint

SHARDS = tuple(f"s{number:02}" for number in range(12))


@pytest.fixture
def log(store_url):
    """Twelve shards of 10 delivered rows and one open row each, in turn; opened by URL."""
    kind = "sqlite" if store_url.startswith("sqlite") else "postgresql"
    url = store_url.replace("postgresql://", "postgresql+psycopg://")
    engine = sa.create_engine(url)
    create_table(engine)
    for status in ["delivered"] * 10 + ["pending"]:
        for shard in SHARDS:
            add(engine, shard, [status])
    opened = open_log(url, kind)
    opened.install()
    yield opened
    opened.close()
    engine.dispose()


def test_every_shard_is_handed_on_and_the_table_is_complete_below_its_first_open_row(log, options, tmp_path):
    effect = RememberedRanges(tmp_path / "effect.db")
    with beam.Pipeline(FnApiRunner(), options=options) as p:
        done = p | SummariseCovered(log, effect, rows=1)

        def covered(ranges: list[CoveredRange]) -> None:
            assert sorted(one.shard for one in ranges) == list(SHARDS)
            assert {one.rows for one in ranges} == {10}

        def frontier(hints: list[FrontierHint]) -> None:
            (hint,) = hints
            assert (hint.bound, hint.missing, hint.scope) == (Bound.through(120), 0, "conversations")

        assert_that(done.covered, covered, label="covered")
        assert_that(done.frontier, frontier, label="frontier")
        assert_that(done.held, equal_to([]), label="held")
        assert_that(done.progress | beam.Map(lambda one: one.bound), _twelve_bounds, label="progress")
    judge(effect.ranges(), _rows(), {shard: log.coverage(shard) for shard in SHARDS})


def _twelve_bounds(bounds: list[Bound]) -> None:
    assert sorted(bound.position for bound in bounds) == list(range(120, 132))


def _rows() -> dict[object, list[int]]:
    return {shard: list(range(number + 1, 121, 12)) for number, shard in enumerate(SHARDS)}


def test_a_bundle_that_runs_twice_hands_nothing_on_twice(log, tmp_path):
    effect = RememberedRanges(tmp_path / "effect.db")
    with beam.Pipeline(FnApiRunner(bundle_repeat=1)) as p:
        p | SummariseCovered(log, effect, rows=1)
    judge(effect.ranges(), _rows(), {shard: log.coverage(shard) for shard in SHARDS})
    assert log.audit(count=True) == []


class _BrokenOn:
    """An effect that fails on one shard."""

    def __init__(self, shard: str, inner: RememberedRanges) -> None:
        self.shard = shard
        self.inner = inner

    def __call__(self, shard: str, after: int, through: int, rows: int) -> None:
        if shard == self.shard:
            raise ValueError("no model today")
        self.inner(shard, after, through, rows)


def test_a_failing_effect_holds_its_own_shard_alone(log, tmp_path):
    effect = RememberedRanges(tmp_path / "effect.db")
    with beam.Pipeline(FnApiRunner()) as p:
        done = p | SummariseCovered(log, _BrokenOn("s03", effect), rows=1)

        def held(elements: list[Held]) -> None:
            assert [(one.due.shard, one.error) for one in elements] == [("s03", "ValueError: no model today")]

        assert_that(done.held, held)
    assert {shard for shard, *_ in effect.ranges()} == set(SHARDS) - {"s03"}
    with beam.Pipeline(FnApiRunner()) as p:
        p | SummariseCovered(log, effect, rows=1)
    judge(effect.ranges(), _rows(), {shard: log.coverage(shard) for shard in SHARDS})


def test_named_shards_alone_are_handed_on(log, tmp_path):
    effect = RememberedRanges(tmp_path / "effect.db")
    with beam.Pipeline(FnApiRunner()) as p:
        done = p | SummariseCovered(log.reference(), effect, rows=1, shards=["s01", "s02"])
        assert_that(done.covered | beam.Map(lambda one: one.shard), equal_to(["s01", "s02"]))
    assert {shard for shard, *_ in effect.ranges()} == {"s01", "s02"}


def test_an_empty_log_claims_nothing(sqlite_url, tmp_path: Path):
    engine = sa.create_engine(sqlite_url)
    create_table(engine)
    log = open_log(sqlite_url, "sqlite")
    log.install()
    with beam.Pipeline(FnApiRunner()) as p:
        done = p | SummariseCovered(log, RememberedRanges(tmp_path / "effect.db"))
        assert_that(done.frontier, equal_to([]))
    log.close()
    engine.dispose()


def test_a_log_that_cannot_travel_is_refused_when_the_pipeline_is_built(sqlite_url):
    engine = sa.create_engine(sqlite_url)
    create_table(engine)
    with pytest.raises(ConfigurationError, match="does not travel"):
        SummariseCovered(
            MessageLog(
                engine, table="conversations", shard="channel_key", terminal=("d",), ids="autoincrement"
            ),
            print,
        )
    engine.dispose()
