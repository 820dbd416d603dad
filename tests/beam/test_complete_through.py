"""The composite on Beam's local runner, with one worker and with eight: exact by durable rows, whatever the bundles do."""

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that
from scripted_universe import source_of

from gapless import Completed, CompleteThrough, ParquetDeadLetters, ParquetEffect, RetryPolicy
from gapless.effects.protocol import EventFailure
from gapless.errors import ConfigurationError, SourceUnavailable
from gapless.progress import Bound, ChainState
from gapless.updates import FrontierUpdate, PartitionProgress


def run(scene, options, check=None, *, runner=None, source=None, effect=None, **settings) -> None:
    with beam.Pipeline(runner or FnApiRunner(), options=options) as pipeline:
        done = pipeline | CompleteThrough(
            source or scene.source, effect or scene.effect, scene.url, **settings
        )
        assert isinstance(done, Completed)
        if check is not None:
            check(done)


def test_every_partition_is_read_and_the_frontier_published(scene, options):
    def check(done: Completed) -> None:
        def frontier(updates: list[FrontierUpdate]) -> None:
            (update,) = updates
            assert (update.bound, update.membership_epoch, update.basis) == (
                Bound.through(300),
                1,
                "certified",
            )
            assert (update.withheld, update.blockers) == (None, ())

        def progress(elements: list[PartitionProgress]) -> None:
            last = {one.partition: one for one in sorted(elements, key=lambda one: one.sequence)}
            assert {(one.state, one.sequence, one.bound) for one in last.values()} == {
                (ChainState.ENDED, 6, Bound.through(300))
            }
            assert sorted(last) == sorted(f"p{n}" for n in range(10))

        def none(elements: list[object]) -> None:
            assert elements == []

        assert_that(done.frontier, frontier, label="frontier")
        assert_that(done.progress, progress, label="progress")
        assert_that(done.dead_letters, none, label="dead letters")

    run(scene, options, check)
    scene.judge_the_end()


def test_running_again_reads_nothing_and_tells_the_same(scene, options):
    run(scene, options)
    fetched = scene.source.fetches

    def check(done: Completed) -> None:
        def frontier(updates: list[FrontierUpdate]) -> None:
            assert [update.bound for update in updates] == [Bound.through(300)]

        assert_that(done.frontier, frontier)

    run(scene, options, check)
    assert scene.source.fetches == fetched
    scene.judge_the_end()


def test_bundles_that_are_run_three_times_make_everything_once(scene, options):
    run(scene, options, runner=FnApiRunner(bundle_repeat=2))
    scene.judge_the_end()
    assert {chain.fencing_token for chain in scene.snapshot().chains} == {1}


def test_a_drain_reads_nothing_more_and_the_next_run_goes_on(scene):
    options = PipelineOptions(["--streaming"])
    run(scene, options, runner=FnApiRunner(is_drain=True))
    assert all(chain.sequence == 0 for chain in scene.snapshot().chains)
    run(scene, None)
    scene.judge_the_end()


def test_one_partition_that_fails_takes_no_others_progress_with_it(scene, options):
    """They share bundles: what is wrong with one is its durable state, and no error of the bundle."""
    source = source_of(scene.universe)
    source._partitions["p3"]["t10"] = SourceUnavailable("HTTP 503")
    source._partitions["p7"][None] = SourceUnavailable("HTTP 503")

    def check(done: Completed) -> None:
        def frontier(updates: list[FrontierUpdate]) -> None:
            (update,) = updates
            assert (update.bound, update.withheld) == (None, "source_unavailable")
            assert [partition for partition, _ in update.blockers] == ["p7", "p3"]

        def progress(elements: list[PartitionProgress]) -> None:
            assert {one.partition for one in elements if one.state is ChainState.HELD} == {"p3", "p7"}

        assert_that(done.frontier, frontier, label="frontier")
        assert_that(done.progress, progress, label="progress")

    run(scene, options, check, source=source)
    states = {chain.partition: chain.state for chain in scene.snapshot().chains}
    assert {name for name, state in states.items() if state is ChainState.HELD} == {"p3", "p7"}
    assert sum(state is ChainState.ENDED for state in states.values()) == 8
    run(scene, options)
    scene.judge_the_end()


class FailsOn:
    """An effect around another one, in which some events always fail."""

    def __init__(self, effect: ParquetEffect, *events: str) -> None:
        self._effect = effect
        self._events = frozenset(events)
        self.target_rows = effect.target_rows
        self.replaceable = effect.replaceable

    def open(self, scope, domain, schema):
        return _FailingSession(self._effect.open(scope, domain, schema), self._events)


class _FailingSession:
    def __init__(self, session, events) -> None:
        self._session = session
        self._events = events

    def begin(self, start):
        return _FailingWriter(self._session.begin(start), self._events)

    def close(self) -> None:
        self._session.close()


class _FailingWriter:
    def __init__(self, writer, events) -> None:
        self._writer = writer
        self._events = events

    @property
    def rows(self) -> int:
        return self._writer.rows

    def add(self, page, sequence, skip=frozenset()):
        failures = [
            EventFailure(n, event, page.positions[n], "ValueError: never")
            for n, event in enumerate(page.ids)
            if event in self._events and event not in skip
        ]
        return failures or self._writer.add(page, sequence, skip)

    def finish(self):
        return self._writer.finish()

    def abandon(self) -> None:
        self._writer.abandon()


def test_dead_letters_come_out_as_they_became_durable(scene, options):
    letters = ParquetDeadLetters(str(scene.folder / "dead"))
    effect = FailsOn(scene.effect, "p2-7", "p5-0", "p5-29")

    def check(done: Completed) -> None:
        def dead(elements) -> None:
            assert sorted(letter.event_id for letter in elements) == ["p2-7", "p5-0", "p5-29"]
            assert all(letter.path is not None for letter in elements)

        assert_that(done.dead_letters, dead)

    run(scene, options, check, effect=effect, dead_letters=letters, retry=RetryPolicy(attempts=1))
    scene.judge_the_end()
    assert scene.snapshot().totals.dead_letters == 3


class Dies(BaseException):
    """What no `except Exception` stops."""


def test_a_worker_that_dies_fails_the_job_and_the_next_one_makes_it_whole(scene, options):
    with pytest.raises(BaseException, match="died at durable"):
        run(scene, options, on_step=_die_at_durable)
    assert all(listed.fencing_token == 1 for listed in scene.oracle.look().manifest)
    run(scene, options)
    scene.judge_the_end()


def _die_at_durable(step: str) -> None:
    if step == "durable":
        raise Dies("died at durable")


def test_a_store_that_is_not_there_fails_the_job_and_says_so(scene, options):
    scene.url = f"sqlite:///{scene.folder}/no/such/folder.db"
    with pytest.raises(RuntimeError, match="does not exist"):
        run(scene, options)
    assert scene.source.fetches == ()


def test_two_pipelines_with_one_run_id_are_twins_and_with_two_are_rivals(scene, options):
    run(scene, options, run_id="one")
    run(scene, options, run_id="one")
    with scene.open() as store:
        assert store.begin_run("scripted", "one", "beam") == 1
        assert store.begin_run("scripted", "another", "beam") == 2


def test_a_password_in_the_url_is_refused_before_anything_is_built(scene):
    with pytest.raises(ConfigurationError, match="password"):
        CompleteThrough(scene.source, scene.effect, "postgresql://me:secret@host/db")
