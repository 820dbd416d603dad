"""SIGKILL at random instants on every engine, over and over, in both ways of settling and in streams, while an oracle watches."""

import os
import random

import pytest
from engine_pipeline import WAYS
from engine_site import LIVELY
from hostile_universe import Knobs
from truth_oracle import Watch

from gapless.polling import Polling

KILLS = int(os.environ.get("GAPLESS_ENGINE_KILLS", "100"))
SHARES = {
    "local_1": 20,
    "local_8": 20,
    "direct": 13,
    "direct_prism": 14,
    "prism_loopback": 18,
    "prism_external": 15,
}
"""Of a hundred kills. What takes long to start is killed less often."""
POLLING = Polling(every=0.2, longest=1.0, look_every=2.0)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_very_many_kills_at_random_instants(make_site, engine):
    """`GAPLESS_ENGINE_KILLS` says how many on all engines together, `GAPLESS_SEED` begins with other histories."""
    draw = random.Random(f"{os.environ.get('GAPLESS_SEED', '31')}/{engine}")
    kills = max(1, KILLS * SHARES[engine.name] // 100)
    done = 0
    kinds = [(way, None) for way in WAYS] + [(way, POLLING) for way in WAYS if engine.streams]
    while done < kills:
        for way, polling in kinds:
            done += _killed(make_site, engine, way, polling, draw, most=-(-kills // len(kinds)))


def _killed(make_site, engine, way: str, polling, draw: random.Random, most: int) -> int:
    """How often one job was killed before it was made whole: at most `most` times, and less where it was done before."""
    visible = -1 if polling is None else 100
    knobs = Knobs(seed=draw.randrange(10**6), events=240, page=20, visible=visible, pause=0.02, **LIVELY)
    site = make_site(way, engine, knobs=knobs, target_rows=draw.choice((20, 10_000)))
    kills = 0
    with Watch(site.oracle, every=0.3):
        while kills < most:
            run = site.start(engine, polling)
            run.at_work()
            if not run.kill_somebody_after(draw.uniform(0.0, 2.0)):
                break
            kills += 1
            if polling is not None and draw.random() < 0.5:
                site.ask("grow?by=40")
        if polling is None:
            site.run(engine)
        else:
            _streamed_to_the_end(site, engine, polling)
    site.judge_the_end(engine)
    site.close()
    return kills


def _streamed_to_the_end(site, engine, polling) -> None:
    site.ask("grow?by=240")
    run = site.start(engine, polling)
    site.wait_until(lambda: site.reached(site.knobs.events))
    run.close()
