"""What engines do to a reader besides letting it read: they ask it to split, check it out, and drain it."""

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from engine_pipeline import IN_PLACE, STEPS, WAYS, build
from engine_site import LIVELY
from engine_steps import NOTE_SPLITS
from hostile_universe import Knobs

from engines import BY_NAME
from gapless.polling import Polling
from gapless_pipelines.job import load_job

SLOW = Knobs(seed=11, events=160, page=20, pause=0.25, **LIVELY)


@pytest.mark.prism
@pytest.mark.parametrize("way", WAYS)
def test_prism_asks_slow_readers_to_split_gets_nothing_and_everything_is_read_once(make_site, way):
    engine = BY_NAME["prism_loopback"]
    site = make_site(way, engine, knobs=SLOW, target_rows=20)
    noted = site.folder / "splits"
    run = site.start(engine, None, **{NOTE_SPLITS: str(noted)})
    assert run.ended() == 0, site.said()
    asked = noted.read_text().split("\n")[:-1]
    assert asked, "nobody was asked to split"
    assert set(asked) == {"0.5 None"}
    now = site.judge_the_end(engine)
    if way == IN_PLACE:
        assert {chain.fencing_token for chain in now.chains.values()} == {1}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("polling", [None, Polling()], ids=["batch", "stream"])
def test_a_drain_reads_nothing_more_and_loses_nothing_of_what_was_there(make_site, way, polling):
    local = BY_NAME["local_1"]
    knobs = Knobs(seed=12, events=80, page=10, visible=-1 if polling is None else 80, **LIVELY)
    site = make_site(way, local, knobs=knobs, target_rows=10)
    site.run_and_die(local, STEPS[way], 5)
    before = site.oracle.look()
    with beam.Pipeline(FnApiRunner(is_drain=True), options=PipelineOptions(["--streaming"])) as pipeline:
        build(pipeline, load_job(site.job), way, site.deliveries, polling)
    after = site.oracle.look()
    assert after.manifest == before.manifest
    assert after.frontier == before.frontier
    site.run(local)
    site.judge_the_end()
