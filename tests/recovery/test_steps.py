"""SIGKILL exactly before and after each step of the page barrier, in real processes: nothing is lost, nothing repeated."""

import random
import signal

from backfill_process import FILE_STEPS, SETTLING_STEPS, At
from hostile_universe import Knobs
from truth_oracle import Watch

KILLED = -signal.SIGKILL
PARTITIONS, EVENTS, PAGE, TARGET = 3, 400, 20, 50
OPEN = TARGET + 2 * PAGE
"""Events of a partition that may be read and not yet promoted: a run, and the page that makes it full, and one in flight."""


def test_a_backfill_that_nobody_disturbs_reads_every_page_once_and_is_complete(make_site, store_url):
    site = make_site(
        store_url, Knobs(seed=5, partitions=PARTITIONS, events=EVENTS, page=PAGE), target_rows=TARGET
    )
    with Watch(site.oracle):
        site.run_to_the_end()
    assert site.oracle.looks > 0
    assert site.stats()["events"] == PARTITIONS * EVENTS


def test_killed_at_each_step_in_turn_the_last_run_makes_it_whole_and_little_is_read_again(
    make_site, store_url
):
    """Every step of settling and of writing a file once, in an order by the seed, all on the same store."""
    draw = random.Random(11)
    site = make_site(
        store_url, Knobs(seed=6, partitions=PARTITIONS, events=EVENTS, page=PAGE), target_rows=TARGET
    )
    steps = [*SETTLING_STEPS, *FILE_STEPS]
    draw.shuffle(steps)
    with Watch(site.oracle):
        for step in steps:
            assert site.run(at=At(step, draw.randint(1, 3))) == KILLED, (
                f"{step} was not reached:\n{site.said()}"
            )
            site.oracle.look()
        site.run_to_the_end()
    assert site.stats()["events"] <= PARTITIONS * (EVENTS + len(steps) * OPEN)
    fences = {listed.fencing_token for listed in site.oracle.look().manifest}
    assert len(fences) > 3, "the kills were spread over the reading"
