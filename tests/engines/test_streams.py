"""A stream over an API that grows: it follows, asks seldom while nothing comes, and what it leaves any run goes on with."""

import time
from dataclasses import replace

import pytest
from engine_pipeline import STEPS, WAYS
from engine_site import GROWING
from truth_oracle import Watch

from engines import BY_NAME
from gapless.polling import Polling

POLLING = Polling(every=0.2, longest=1.0, look_every=2.0)


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_follows_its_source_and_a_worker_that_is_killed_is_made_up_for(
    make_site, streaming_engine, way
):
    site = make_site(way, streaming_engine, knobs=GROWING, target_rows=20)
    with Watch(site.oracle, every=0.2):
        first = site.start_and_die(streaming_engine, STEPS[way], 6, POLLING)
        first.over_after_a_kill()
        first.close()
        second = site.start(streaming_engine, POLLING)
        site.wait_until(lambda: site.reached(60))
        site.ask("grow?by=100")
        site.wait_until(lambda: site.reached(160))
        second.close()
    site.judge_the_end()


@pytest.mark.prism
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_asks_seldom_while_nothing_comes(make_site, way):
    """Deferred readers wait as long as they were told to."""
    engine = BY_NAME["prism_loopback"]
    site = make_site(way, engine, knobs=GROWING, target_rows=20)
    run = site.start(engine, POLLING)
    site.wait_until(lambda: site.reached(60))
    before, began = site.stats(), time.monotonic()
    assert run.submitter.ended(6.0) is None
    now, seconds = site.stats(), time.monotonic() - began
    polls = now["requests"] - before["requests"]
    failed = sum(now[name] - before.get(name, 0) for name in now if name.startswith("fault_"))
    looks = 2 + 2 * seconds / POLLING.look_every
    # Pages of this API that bring nothing may have new tokens: then a chain is asked again after the shortest delay.
    assert 4 * 3 <= polls <= 4 * (1 + seconds / POLLING.every) + 2 * failed + looks, (polls, failed, seconds)
    site.ask("grow?by=100")
    site.wait_until(lambda: site.reached(160))
    run.close()
    site.judge_the_end()


@pytest.mark.prism
@pytest.mark.postgres
@pytest.mark.parametrize("way", WAYS)
def test_a_batch_takes_over_from_a_stream_and_reads_what_is_there(make_site, way):
    stream, batch = BY_NAME["prism_external"], BY_NAME["local_8"]
    site = make_site(way, stream, batch, knobs=replace(GROWING, gate=100), target_rows=20)
    streaming = site.start(stream, POLLING)
    site.wait_until(lambda: site.reached(60))
    site.ask("grow?by=100")
    reading = site.start(batch)
    site.wait_until(lambda: site.belongs_to(2))
    site.release()
    assert reading.ended() == 0, site.said()
    streaming.close()
    now = site.judge_the_end()
    assert {chain.fencing_token for chain in now.chains.values()} == {2}
