"""`gapless backfill JOB -- --runner=...` on another engine than this process, from the command line to the durable rows."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress

import pytest
from engine_pipeline import IN_PLACE
from engine_site import GROWING
from worker_pool import WorkerPool

from engines import BY_NAME

ENDS_WITHIN = 120
GAPLESS = (sys.executable, "-m", "gapless_pipelines.cli")


def gapless(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GAPLESS, *arguments],
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


@pytest.mark.prism
@pytest.mark.postgres
def test_a_stream_on_prism_with_a_pool_of_worker_processes(make_site, prism, tmp_path):
    engine = BY_NAME["prism_external"]
    site = make_site(IN_PLACE, engine, knobs=GROWING, stream={"poll": "200ms", "longest": "1s", "look": "2s"})
    with ExitStack() as stack:
        pool = WorkerPool(tmp_path, {})
        stack.callback(pool.close)
        pool.wait_until_it_listens()
        log = stack.enter_context(site.log.open("wb"))
        streaming = subprocess.Popen(
            [*GAPLESS, "stream", str(site.job), "--", *engine.flags(prism, pool.port)],
            stderr=log,
            # In a group of its own: Prism, which it starts, is to end with it.
            start_new_session=True,
        )
        stack.callback(_end_group, streaming)
        site.wait_until(lambda: site.reached(60) or streaming.poll() is not None)
        site.ask("grow?by=100")
        site.wait_until(lambda: site.reached(160) or streaming.poll() is not None)
        assert streaming.poll() is None, site.said()
        streaming.send_signal(signal.SIGTERM)
        assert streaming.wait(ENDS_WITHIN) == 0, site.said()
    assert "stopped: what was read is promoted and published" in site.said()
    site.judge_the_end()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
