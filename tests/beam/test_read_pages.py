"""Pages as they leave the reader on Beam's local runner: which, whose, and where the chains stand."""

from collections import defaultdict
from collections.abc import Sequence

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that

from gapless import PlanPartitions, ReadPages
from gapless.emitted_page import EmittedPage
from gapless.progress import ChainState


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
