"""`gapless backfill JOB -- --runner=...` on another engine than this process, from the command line to the durable rows."""

import subprocess
import sys

import pytest
from engine_pipeline import IN_PLACE
from worker_pool import WorkerPool

from engines import BY_NAME

ENDS_WITHIN = 120


def gapless(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gapless_pipelines.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN,
        check=False,
    )


@pytest.mark.prism
def test_a_backfill_on_prism_in_this_process(make_site, prism):
    engine = BY_NAME["prism_loopback"]
    site = make_site(IN_PLACE, engine)
    done = gapless("backfill", str(site.job), "--", *engine.flags(prism, None))
    assert done.returncode == 0, done.stderr
    assert "run 1 on PrismRunner, 4 partitions to read" in done.stderr
    assert "done: everything that was to be read is read and proved" in done.stderr
    site.judge_the_end()
    again = gapless("backfill", str(site.job), "--", *engine.flags(prism, None))
    assert again.returncode == 0, again.stderr
    assert "0 events in 0 pages promoted" in again.stderr
    site.judge_the_end()


@pytest.mark.prism
@pytest.mark.postgres
def test_a_backfill_on_prism_with_a_pool_of_worker_processes(make_site, prism, tmp_path):
    engine = BY_NAME["prism_external"]
    site = make_site(IN_PLACE, engine)
    pool = WorkerPool(tmp_path, {})
    try:
        pool.wait_until_it_listens()
        done = gapless("backfill", str(site.job), "--", *engine.flags(prism, pool.port))
    finally:
        pool.close()
    assert done.returncode == 0, done.stderr
    assert len(pool.workers()) == 1, "the pages were read by a worker of the pool"
    site.judge_the_end()


@pytest.mark.prism
def test_sqlite_is_refused_where_workers_are_elsewhere_before_anything_is_written(make_site, prism):
    site = make_site(IN_PLACE, BY_NAME["prism_loopback"])
    done = gapless("backfill", str(site.job), "--", *BY_NAME["prism_external"].flags(prism, 1))
    assert done.returncode == 2
    assert "EXTERNAL may put workers on other machines, where a SQLite file is not" in done.stderr
    assert site.oracle.look() is None
    assert "pages" not in site.stats(), "nothing was read"
