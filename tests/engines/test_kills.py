"""SIGKILL in the middle of a bundle: whoever reads is gone, and the next run, on whatever engine, makes it whole."""

import pytest
from engine_pipeline import IN_PLACE


@pytest.mark.parametrize("step", ["applied", "committed"])
def test_a_worker_killed_in_the_middle_of_a_bundle_is_made_up_for_by_the_next_run(make_site, engine, step):
    site = make_site(IN_PLACE, engine)
    site.run_and_die(engine, step, 7)
    site.oracle.look()
    site.run(engine)
    site.judge_the_end()
