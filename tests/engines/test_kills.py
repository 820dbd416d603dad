"""SIGKILL in the middle of a bundle: whoever reads is gone, and the next run, on whatever engine, makes it whole."""

import pytest
from engine_pipeline import IN_PLACE, STEPS, WAYS

from engines import BY_NAME


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_killed_in_the_middle_of_a_bundle_is_made_up_for_by_the_next_run(make_site, engine, way):
    site = make_site(way, engine)
    site.run_and_die(engine, STEPS[way], 7)
    site.oracle.look()
    site.run(engine)
    site.judge_the_end(engine)


@pytest.mark.prism
@pytest.mark.postgres
@pytest.mark.parametrize("way", WAYS)
def test_what_one_engine_left_another_one_goes_on_with(make_site, way):
    """Each is killed a little further on, and the last one reads the rest."""
    chain = [BY_NAME[name] for name in ("local_8", "prism_external", "prism_loopback", "direct", "local_1")]
    site = make_site(way, *chain, target_rows=20)
    for nth, engine in enumerate(chain[:-1], start=3):
        site.run_and_die(engine, STEPS[way], nth)
        site.oracle.look()
    site.run(chain[-1])
    now = site.judge_the_end()
    # A chain that an earlier one has read to its end is not taken again.
    assert max(chain.fencing_token for chain in now.chains.values()) == len(chain)
    if way == IN_PLACE:
        assert len({one.fencing_token for one in now.manifest}) > 1, "nothing that was promoted is read again"
