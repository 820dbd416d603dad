"""Pages as they leave the reader on Beam's local runner: which, whose, and where the chains stand."""

from collections import defaultdict
from collections.abc import Sequence

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that
from scripted_universe import source_of

from gapless import CombineFrontier, PlanPartitions, PublishFrontier, ReadPages, TrackPartitions
from gapless.emitted_page import EmittedPage, Outcome
from gapless.outcomes import delivered
from gapless.progress import ChainState
from gapless.testing import ScriptedSource


def pipeline(options=None) -> beam.Pipeline:
    return beam.Pipeline(FnApiRunner(), options=options)


def by_partition(out: Sequence[EmittedPage]) -> dict[str, list[EmittedPage]]:
    pages = defaultdict(list)
    for page in out:
        if page.is_page:
            pages[page.task.partition].append(page)
    return {partition: sorted(some, key=lambda page: page.number) for partition, some in pages.items()}


def test_every_event_is_emitted_once_in_pages_that_link(scene, options):
    with pipeline(options) as p:
        pages = p | PlanPartitions(scene.source, scene.url) | ReadPages(scene.source, scene.url)

        def whole(out: list[EmittedPage]) -> None:
            read = by_partition(out)
            assert sorted(read) == sorted(scene.universe)
            for partition, chain in read.items():
                assert [page.number for page in chain] == list(range(len(chain)))
                tokens = [page.start_token for page in chain] + [chain[-1].next_token]
                assert tokens[0] is None
                assert tokens[-1] is None
                assert tokens[1:-1] == [page.next_token for page in chain[:-1]]
                events = [event.id for page in chain for event in page.events]
                assert events == [event["id"] for event in scene.universe[partition]]
                assert len({page.attempt for page in chain}) == len(chain)

        def standing(out: list[EmittedPage]) -> None:
            told = [page.progress for page in out if page.progress]
            assert {(one.partition, one.sequence) for one in told} == {(name, 0) for name in scene.universe}
            assert not any(page.stop for page in out)

        assert_that(pages, whole, label="whole")
        assert_that(pages, standing, label="standing")
    snapshot = scene.snapshot()
    assert {row.sequence for row in snapshot.chains} == {0}, "nothing is promoted by a reader"
    assert {row.state for row in snapshot.chains} == {ChainState.OPEN}


def test_no_chain_is_read_further_than_so_many_open_pages(scene, options):
    with pipeline(options) as p:
        planned = p | PlanPartitions(scene.source, scene.url)
        pages = planned | ReadPages(scene.source, scene.url, max_open_pages=2)

        def two_each(out: list[EmittedPage]) -> None:
            assert {len(chain) for chain in by_partition(out).values()} == {2}
            assert not any(page.stop for page in out)

        assert_that(pages, two_each)


def test_a_limit_of_no_pages_is_refused(scene):
    with pytest.raises(ValueError, match="positive number of pages"):
        ReadPages(scene.source, scene.url, max_open_pages=0)


class Broken(ScriptedSource):
    """Whatever is asked of partition p3 raises what nobody has declared."""

    def next_step(self, partition, token):
        if partition == "p3":
            raise RuntimeError("nobody knows what")
        return super().next_step(partition, token)


def test_one_partitions_error_takes_no_other_with_it(scene, options):
    """Had it left the reader it would have ended the bundle, in which the others were read too."""
    source = source_of(scene.universe, kind=Broken)
    with pipeline(options) as p:
        pages = p | PlanPartitions(source, scene.url) | ReadPages(source, scene.url)

        def all_but_one(out: list[EmittedPage]) -> None:
            read = by_partition(out)
            assert sorted(read) == sorted(set(scene.universe) - {"p3"})
            assert all(chain[-1].next_token is None for chain in read.values())
            (stop,) = [page for page in out if page.stop]
            assert (stop.task.partition, stop.stop.state) == ("p3", ChainState.HELD)
            assert "nobody knows what" in stop.stop.hint

        assert_that(pages, all_but_one)


def test_pages_settled_downstream_are_promoted_though_the_reader_waits_for_none(scene, options):
    """Beam's local runner shows nothing of a stage before it has ended: a reader that waited would wait for ever."""
    with pipeline(options) as p:
        pages = p | PlanPartitions(scene.source, scene.url) | ReadPages(scene.source, scene.url)
        outcomes = pages | beam.Map(delivered).with_output_types(Outcome)
        _ = (pages, outcomes) | TrackPartitions(scene.url) | CombineFrontier() | PublishFrontier(scene.url)
    now = scene.snapshot()
    assert now.scope.frontier == scene.end
    assert {row.state for row in now.chains} == {ChainState.ENDED}
    assert sum(row.events for row in now.chains) == sum(map(len, scene.universe.values()))
