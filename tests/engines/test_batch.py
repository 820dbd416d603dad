"""A batch on each engine, against an API that does everything to its reader: exact by durable rows."""

import pytest
from engine_pipeline import WAYS


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_reads_everything(make_site, engine, way):
    site = make_site(way, engine)
    site.run(engine)
    site.judge_the_end(engine)
