"""A chain that a batch has ended keeps where a stream goes on with it, whichever way its events were settled."""

from contextlib import closing

import apache_beam as beam
import pytest
from growing_api import GrowingApi, source_block

import gapless
from gapless.paging.http import HttpSource
from gapless.progress import ChainState
from gapless.store import open_store


@pytest.mark.parametrize("style", ["more", "null"])
def test_a_batch_settled_in_the_pipeline_keeps_the_token_to_resume_with(sqlite_url, style):
    with GrowingApi(style) as api:
        api.add("eu", 1, 2, 3, 4)
        api.certify("eu", 4)
        source = HttpSource(scope="scripted", domain={"type": "integer"}, **source_block(api, None))
        with beam.Pipeline() as p:
            pages = p | gapless.PlanPartitions(source, sqlite_url) | gapless.ReadPages(source, sqlite_url)
            outcomes = pages | beam.Map(gapless.delivered)
            _ = (
                (pages, outcomes)
                | gapless.TrackPartitions(sqlite_url)
                | gapless.CombineFrontier()
                | gapless.PublishFrontier(sqlite_url)
            )
    with closing(open_store(sqlite_url)) as store:
        (row,) = [row for row in store.snapshot("scripted").chains if row.partition == "eu"]
        assert row.state is ChainState.ENDED
        assert store.resume_token(row) is not None
