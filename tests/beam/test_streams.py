"""The DoFns of a stream through Beam's own wrappers, without a runner: what is deferred, what a split leaves, the watermark."""

from contextlib import closing
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.userstate import get_dofn_specs
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from streamed_script import growing, idle

from gapless import (
    CompleteThrough,
    ParquetEffect,
    PlanPartitions,
    ReadPages,
    SettleInPlace,
    SettlePages,
    StoreRef,
)
from gapless.errors import ConfigurationError, SourceUnavailable
from gapless.plan import plan_run
from gapless.plan_partitions import _Watch
from gapless.polling import Polling
from gapless.progress import Bound, ChainState, TimestampDomain
from gapless.read_pages import EmitPages, _EmitChain, _EmitStream
from gapless.settle_pages import _SettleChain, _SettleStream
from gapless.settling.shared_feeds import shared_feeds
from gapless.settling.stream_calls import slice_among
from gapless.store import open_store
from gapless.store.records import MembershipPolicy
from gapless.testing import ScriptedPage, ScriptedSource
from gapless.testing.splittable_driver import SplittableDriver
from gapless.updates import PlannedTasks, PlanRequest

POLLING = Polling(every=1.0, longest=8.0, look_every=30.0)
SECONDS = TimestampDomain("s")


def tasks_of(source, url, run_id="one"):
    with closing(open_store(url, create=True)) as store:
        return plan_run(source, store, PlanRequest(source.scope, run_id, "test")).tasks


def values(emitted):
    """What was emitted, without its time and tag."""
    for one in emitted:
        value = one.value if isinstance(one, TaggedOutput) else one
        yield value.value if isinstance(value, TimestampedValue) else value


@pytest.fixture
def drivers():
    made = []

    def make(dofn):
        made.append(SplittableDriver(dofn))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


def emitting(drivers, source, url):
    return drivers(_EmitStream(EmitPages(source, StoreRef(url)), POLLING, max_open_pages=256))


def ids(emitted):
    return [event for page in values(emitted) for event in page.ids]


# --- deferral and splits ---


def test_a_reader_defers_what_is_left_and_goes_on_from_there(drivers, sqlite_url):
    source = ScriptedSource(
        {"a": {**growing(2), "t2": [idle("t2"), *growing(1, first=2).values()], "t3": idle("t3")}}
    )
    (task,) = tasks_of(source, sqlite_url)
    reader = emitting(drivers, source, sqlite_url)
    first = reader.call(task)
    assert ids(first.emitted) == ["e0", "e1"]
    assert 0.5 < first.delay <= 1.0
    second = reader.call(task, first.residual)
    assert ids(second.emitted) == ["e2"]


def test_a_reader_in_another_process_goes_on_where_the_first_one_left(drivers, sqlite_url):
    source = ScriptedSource(
        {"a": {**growing(2), "t2": [idle("t2"), *growing(1, first=2).values()], "t3": idle("t3")}}
    )
    (task,) = tasks_of(source, sqlite_url)
    first = emitting(drivers, source, sqlite_url).call(task)
    assert ids(emitting(drivers, source, sqlite_url).call(task, first.residual).emitted) == ["e2"]


@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_a_split_at_any_page_loses_none_and_gives_none_twice(drivers, sqlite_url, after):
    source = ScriptedSource({"a": {**growing(4), "t4": idle("t4")}})
    (task,) = tasks_of(source, sqlite_url)
    reader = emitting(drivers, source, sqlite_url)
    first = reader.call(task, split_after=after)
    assert first.primary.done
    rest = reader.call(task, first.residual)
    assert ids(first.emitted + rest.emitted) == ["e0", "e1", "e2", "e3"]


def test_a_split_in_the_middle_is_refused_and_the_call_goes_on(drivers, sqlite_url):
    source = ScriptedSource({"a": {**growing(4), "t4": idle("t4")}})
    (task,) = tasks_of(source, sqlite_url)
    called = emitting(drivers, source, sqlite_url).call(task, split_after=2, fraction=0.5)
    assert called.primary is None
    assert ids(called.emitted) == ["e0", "e1", "e2", "e3"]


def test_a_reader_that_crashes_in_a_call_is_called_again_with_what_it_had(drivers, sqlite_url):
    source = ScriptedSource({"a": {**growing(4), "t4": idle("t4")}})
    (task,) = tasks_of(source, sqlite_url)
    reader = emitting(drivers, source, sqlite_url)
    reader.call(task, stop_after=3)
    assert ids(emitting(drivers, source, sqlite_url).call(task).emitted) == ["e0", "e1", "e2", "e3"]


def test_a_reader_that_a_newer_run_has_fenced_finishes(drivers, sqlite_url):
    source = ScriptedSource({"a": {**growing(1), "t1": idle("t1")}})
    (old,) = tasks_of(source, sqlite_url)
    reader = emitting(drivers, source, sqlite_url)
    first = reader.call(old)
    (new,) = tasks_of(source, sqlite_url, "two")
    emitting(drivers, source, sqlite_url).call(new)
    last = reader.call(old, first.residual)
    assert last.residual is None
    assert [page.progress.fencing_token for page in values(last.emitted)] == [2]


def test_in_place_a_reader_settles_a_slice_and_defers(drivers, sqlite_url, tmp_path):
    source = ScriptedSource({"a": {**growing(3), "t3": idle("t3")}})
    (task,) = tasks_of(source, sqlite_url)
    settle = SettleInPlace(source, ParquetEffect(str(tmp_path / "out")), StoreRef(sqlite_url))
    reader = drivers(_SettleStream(settle, POLLING))
    first = reader.call(task)
    assert 0.5 < first.delay <= 1.0
    with closing(open_store(sqlite_url)) as store:
        assert store.chain(task.chain).sequence == 3
    second = reader.call(task, first.residual)
    assert 1.5 < second.delay <= 2.0


def test_a_planner_hands_out_what_is_new_and_looks_again_later(drivers, sqlite_url):
    source = ScriptedSource({"a": growing(1), "b": growing(1)})
    watch = drivers(_Watch(source, StoreRef(sqlite_url), MembershipPolicy(), POLLING))
    request = PlanRequest("scripted", "one", "test")
    first = watch.call(request)
    handed_out = [one for one in values(first.emitted) if isinstance(one, PlannedTasks)]
    assert [task.partition for task in handed_out[0].tasks] == ["a", "b"]
    assert 29 < first.delay <= 30
    second = watch.call(request, first.residual)
    assert list(values(second.emitted)) == []


def test_many_chains_in_one_bundle_have_short_turns(drivers, sqlite_url):
    """They come one after the other, and nothing of the bundle is seen before its end."""
    reader = _EmitStream(EmitPages(ScriptedSource({}), StoreRef(sqlite_url)), POLLING, 256)
    first = [slice_among(reader.among()) for _ in range(1000)]
    assert first[0].seconds == 1.0
    assert first[-1].seconds == 0.05
    assert sum(one.seconds for one in first) < 60
    assert all(one.patience <= min(0.2, one.seconds) and one.goes_on for one in first)
    reader.start_bundle()
    assert slice_among(reader.among()).seconds == 0.05, "as many are to be expected again"
    reader.start_bundle()
    assert slice_among(reader.among()).seconds == 1.0


@pytest.mark.parametrize("way", ["emitted", "settled"])
def test_a_batch_never_defers_however_long_it_takes(drivers, sqlite_url, tmp_path, way):
    """The local runner with several workers loses what is deferred, and the job succeeds all the same."""
    script = {
        **growing(300),
        "t150": [SourceUnavailable("HTTP 503", retry_after=0.01), growing(1, first=150)["t150"]],
    }
    source = ScriptedSource({"a": {**script, "t300": ScriptedPage()}})
    (task,) = tasks_of(source, sqlite_url)
    settle = SettleInPlace(source, ParquetEffect(str(tmp_path / "out")), StoreRef(sqlite_url))
    reader = (
        _EmitChain(EmitPages(source, StoreRef(sqlite_url)), 1000)
        if way == "emitted"
        else _SettleChain(settle)
    )
    called = drivers(reader).call(task)
    assert (called.residual, called.delay) == (None, None)
    with closing(open_store(sqlite_url)) as store:
        told = list(values(called.emitted))
        read = sum(page.is_page for page in told) if way == "emitted" else store.chain(task.chain).sequence
    assert read == 301


def test_readers_of_one_run_share_what_they_fetch_ahead_until_the_last_has_gone(sqlite_url):
    source = ScriptedSource({"a": growing(1)})
    first, second, other = (shared_feeds(run, source) for run in ("shared", "shared", "another"))
    assert first is second
    assert other is not first
    first.give_up()
    session = second.feeds.session()
    second.feeds.give_back(session)
    assert not session.closed
    second.give_up()
    assert session.closed
    anew = shared_feeds("shared", source)
    assert anew is not first
    for one in (anew, other):
        one.give_up()


# --- the watermark ---


def timed(*pages):
    """A source of instants: pages of (events, certified through), each asked for in a call of its own."""
    script = {}
    for n, (positions, bound) in enumerate(pages):
        at, following = (None if n == 0 else f"t{n}"), f"t{n + 1}"
        events = [(f"e{n}-{position}", position) for position in positions]
        script[at] = ScriptedPage(events, following, bound, caught_up=True)
    script[f"t{len(pages)}"] = idle(f"t{len(pages)}")
    return ScriptedSource({"a": script}, domain=SECONDS)


PAGES = (
    ([10, 12], Bound.through(11)),
    ([14, 15], None),
    ([16], Bound.before(20)),
    ([20], Bound.through(30)),
)


def test_the_watermark_never_passes_the_certified_bound_and_no_page_is_behind_it(drivers, sqlite_url):
    source = timed(*PAGES)
    (task,) = tasks_of(source, sqlite_url)
    reader = emitting(drivers, source, sqlite_url)
    restriction = watermark = None
    standing = MIN_TIMESTAMP
    seen = []
    for _ in range(len(PAGES) + 1):
        called = reader.call(task, restriction, watermark_state=watermark)
        restriction, watermark = called.residual, called.watermark_state
        for one in called.emitted:
            assert one.timestamp >= standing
            if one.value.is_page:
                seen.append(one.timestamp)
        assert called.watermark >= standing
        standing = called.watermark
        seen.append(standing)
    times = [Timestamp(second) for second in (10, 11, 14, 11, 16, 20, 20, 30, 30)]
    assert seen == times


def test_what_is_read_again_is_not_late(drivers, sqlite_url):
    source = timed(*PAGES[:1])
    (task,) = tasks_of(source, sqlite_url)
    reader = emitting(drivers, source, sqlite_url)
    first = reader.call(task)
    again = reader.call(task, watermark_state=first.watermark_state)
    pages = [one for one in again.emitted if one.value.is_page]
    assert [one.timestamp for one in pages] == [Timestamp(11)]


def test_in_a_domain_without_instants_the_watermark_stays_at_the_minimum(drivers, sqlite_url):
    source = ScriptedSource({"a": {**growing(3), "t3": idle("t3")}})
    (task,) = tasks_of(source, sqlite_url)
    called = emitting(drivers, source, sqlite_url).call(task)
    assert called.watermark == MIN_TIMESTAMP
    assert {one.timestamp for one in called.emitted} == {MIN_TIMESTAMP}


def test_in_place_the_watermark_is_the_committed_bound(drivers, sqlite_url, tmp_path):
    source = timed(*PAGES[:1])
    (task,) = tasks_of(source, sqlite_url)
    settle = SettleInPlace(source, ParquetEffect(str(tmp_path / "out")), StoreRef(sqlite_url))
    assert drivers(_SettleStream(settle, POLLING)).call(task).watermark == Timestamp(11)


def test_the_planners_watermark_is_the_published_frontier(drivers, sqlite_url, tmp_path):
    """A newcomer enters through it, and may have events from there on."""
    source = timed(*PAGES[:1])
    watch = drivers(_Watch(source, StoreRef(sqlite_url), MembershipPolicy(), POLLING))
    request = PlanRequest("scripted", "one", "test")
    first = watch.call(request)
    assert first.watermark == MIN_TIMESTAMP
    (planned,) = [one for one in values(first.emitted) if isinstance(one, PlannedTasks)]
    settle = SettleInPlace(source, ParquetEffect(str(tmp_path / "out")), StoreRef(sqlite_url))
    drivers(_SettleStream(settle, POLLING)).call(planned.tasks[0])
    second = watch.call(request, first.residual, watermark_state=first.watermark_state)
    assert second.watermark == Timestamp(11)


# --- engines ---


@pytest.mark.parametrize(
    ("runner", "name"),
    [
        (FnApiRunner(), "FnApiRunner"),
        ("DirectRunner", "DirectRunner"),
        (BundleBasedDirectRunner(), "BundleBasedDirectRunner"),
    ],
)
def test_a_runner_that_loses_what_is_deferred_is_refused_before_anything_is_written(scene, runner, name):
    p = beam.Pipeline(runner)
    with pytest.raises(ConfigurationError, match=f"runner .*{name}.*\n.*gapless stream JOB"):
        _ = p | CompleteThrough(scene.source, scene.effect, scene.url, polling=POLLING)
    with pytest.raises(ConfigurationError, match="gapless stream JOB"):
        _ = p | PlanPartitions(scene.source, scene.url, polling=POLLING)
    planned = beam.Pipeline(runner) | PlanPartitions(scene.source, scene.url)
    with pytest.raises(ConfigurationError, match="gapless stream JOB"):
        _ = planned | ReadPages(scene.source, scene.url, polling=POLLING)
    assert not Path(scene.url.removeprefix("sqlite:///")).exists()


def draining() -> beam.Pipeline:
    return beam.Pipeline(FnApiRunner(is_drain=True), options=PipelineOptions(["--streaming"]))


def test_chains_planned_as_a_stream_are_not_read_as_a_batch(scene):
    planned = draining() | PlanPartitions(scene.source, scene.url, polling=POLLING)
    with pytest.raises(ConfigurationError, match="the same polling"):
        _ = planned | ReadPages(scene.source, scene.url)
    settle = SettleInPlace(scene.source, scene.effect, StoreRef(scene.url))
    with pytest.raises(ConfigurationError, match="the same polling"):
        _ = planned.tasks | SettlePages(settle)


def test_what_a_stream_gives_is_unbounded_and_a_batchs_is_not(scene):
    p = draining()
    planned = p | PlanPartitions(scene.source, scene.url, polling=POLLING)
    pages = planned | ReadPages(scene.source, scene.url, polling=POLLING)
    settled = planned.tasks | SettlePages(
        SettleInPlace(scene.source, scene.effect, StoreRef(scene.url)), polling=POLLING
    )
    assert not any(one.is_bounded for one in (*planned, pages, *settled))
    q = beam.Pipeline(FnApiRunner())
    planned = q | PlanPartitions(scene.source, scene.url)
    pages = planned | ReadPages(scene.source, scene.url)
    assert all(one.is_bounded for one in (*planned, pages))


def test_a_drain_reads_nothing_more_and_loses_nothing(drivers, sqlite_url, tmp_path):
    """Some of a stream is settled, and more is there: the drain ends, and the next run settles the rest."""
    script = {**growing(5), "t2": [idle("t2"), *growing(1, first=2).values()], "t5": idle("t5")}
    source = ScriptedSource({"a": script})
    effect = ParquetEffect(str(tmp_path / "out"))
    settle = SettleInPlace(source, effect, StoreRef(sqlite_url))
    (task,) = tasks_of(source, sqlite_url)
    drivers(_SettleStream(settle, POLLING)).call(task)
    with draining() as p:
        done = p | CompleteThrough(source, effect, sqlite_url, run_id="one", polling=POLLING)
        assert_that(done.progress, equal_to([]))
    with closing(open_store(sqlite_url)) as store:
        row = store.chain(task.chain)
        assert (row.sequence, row.page_token, row.state) == (2, "t2", ChainState.OPEN)
        (again,) = tasks_of(source, sqlite_url, "two")
        drivers(_SettleStream(settle, POLLING)).call(again)
        assert store.chain(task.chain).sequence == 5


def test_a_reader_keeps_no_keyed_state():
    """With state in its stage the local runner reads one chain after the other."""
    for kind in (_EmitChain, _EmitStream, _SettleChain, _SettleStream):
        dofn = kind.__new__(kind)
        assert get_dofn_specs(dofn) == (set(), set())
