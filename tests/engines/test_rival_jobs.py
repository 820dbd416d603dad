"""Two jobs on one scope at the same time, and a job whose submitter is gone: the rows are right, whoever has it."""

import pytest
from engine_pipeline import IN_PLACE, WAYS
from engine_site import LIVELY, EngineRun
from hostile_universe import Knobs

from engines import BY_NAME, Engine

PAIRS = [("local_8", "prism_loopback"), ("prism_external", "prism_external")]
GATED = Knobs(seed=5, gate=120, **LIVELY)
"""Every reader waits in the middle of its chain until the gate is opened."""


def first_at_the_gate(site, engine: Engine) -> EngineRun:
    run = site.start(engine)
    site.wait_until(lambda: len(site.stats()["waiting"]) == site.knobs.partitions)
    return run


@pytest.mark.prism
@pytest.mark.postgres
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_of_two_jobs_on_one_scope_the_later_one_reads_on_and_the_rows_are_right(make_site, way, names):
    first, second = (BY_NAME[name] for name in names)
    site = make_site(way, first, second, knobs=GATED, target_rows=20)
    older = first_at_the_gate(site, first)
    newer = site.start(second)
    site.wait_until(lambda: site.belongs_to(2))
    site.release()
    # Neither is an error to its engine: who is fenced has nothing more to do.
    assert newer.ended() == 0, site.said()
    assert older.ended() == 0, site.said()
    judge_who_has_it(site, second)


@pytest.mark.prism
@pytest.mark.postgres
@pytest.mark.parametrize("way", WAYS)
def test_a_job_that_outlives_its_submitter_is_fenced_by_the_run_that_goes_on(make_site, way):
    """Prism and its worker go on for most of a minute after the process is gone that has started them."""
    abandoned, here = BY_NAME["prism_external"], BY_NAME["local_8"]
    site = make_site(way, abandoned, here, knobs=GATED, target_rows=20)
    left = first_at_the_gate(site, abandoned)
    left.submitter.kill()
    newer = site.start(here)
    site.wait_until(lambda: site.belongs_to(2))
    before = site.stats()["pages"]
    site.release()
    assert newer.ended() == 0, site.said()
    judge_who_has_it(site, here)
    assert site.stats()["pages"] > before


def judge_who_has_it(site, engine: Engine) -> None:
    now = site.oracle.finish()
    assert {chain.fencing_token for chain in now.chains.values()} == {2}
    by = {one.fencing_token for one in now.manifest}
    # Whoever settles in the pipeline has promoted nothing yet where reading is one bundle.
    assert by == {1, 2} if site.way == IN_PLACE else 2 in by
    site.judge_the_end(engine)
