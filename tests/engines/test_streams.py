"""A stream over an API that grows: it follows, asks seldom while nothing comes, and what it leaves any run goes on with."""

import pytest
from engine_pipeline import IN_PIPELINE, IN_PLACE, WAYS
from engine_site import LIVELY
from hostile_universe import END, Knobs
from truth_oracle import Watch

from engines import BY_NAME
from gapless.polling import Polling

POLLING = Polling(every=0.2, longest=1.0, look_every=2.0)
GROWING = Knobs(seed=8, events=160, page=20, visible=60, **LIVELY)
STEPS = {IN_PLACE: "committed", IN_PIPELINE: "delivered"}


def reached(site, events: int) -> bool:
    """The frontier has passed the first so many events of each partition; with all of them, its chains have ended."""
    now = site.oracle.look()
    if now is None or now.frontier is None:
        return False
    if events >= site.knobs.events:
        return now.frontier.position == END
    lowest = min(one[events - 1]["position"] for one in site.oracle.universe.values())
    return now.frontier.position >= lowest


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
        site.wait_until(lambda: reached(site, 60))
        site.ask("grow?by=100")
        site.wait_until(lambda: reached(site, 160))
        second.close()
    site.judge_the_end()


@pytest.mark.prism
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_asks_seldom_while_nothing_comes(make_site, way):
    """Deferred readers wait as long as they were told to."""
    engine = BY_NAME["prism_loopback"]
    site = make_site(way, engine, knobs=GROWING, target_rows=20)
    run = site.start(engine, POLLING)
    site.wait_until(lambda: reached(site, 60))
    asked = site.stats()["requests"]
    assert run.submitter.ended(6.0) is None
    polls = site.stats()["requests"] - asked
    # In six seconds a chain is asked at least 5 times; with what fails and is asked again, and the list, not twice as often
    # as it would be without backing off.
    assert 4 * 3 <= polls <= 4 * 25, polls
    site.ask("grow?by=100")
    site.wait_until(lambda: reached(site, 160))
    run.close()
    site.judge_the_end()


@pytest.mark.prism
@pytest.mark.postgres
@pytest.mark.parametrize("way", WAYS)
def test_a_batch_takes_over_from_a_stream_and_reads_what_is_there(make_site, way):
    stream, batch = BY_NAME["prism_external"], BY_NAME["local_8"]
    site = make_site(way, stream, batch, knobs=GROWING, target_rows=20)
    streaming = site.start(stream, POLLING)
    site.wait_until(lambda: reached(site, 60))
    site.ask("grow?by=100")
    site.run(batch)
    streaming.close()
    now = site.judge_the_end()
    assert {chain.fencing_token for chain in now.chains.values()} == {2}
