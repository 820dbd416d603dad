"""How early the frontier moves while 100 partitions are read with default settings, and what the passes cost.

    python benchmarks/early_frontier.py [--partitions 100 --pages 100 --events 100]

Prints which share of the pages had been asked for when a frontier was first published, and the time of all passes that was
neither spent on pages nor on waiting for them, as a share of the whole run (measured with one reading process).
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from backfill_speed import event_api, gapless

from gapless.errors import StoreError
from gapless.reading import Progress


def first_published(url, folder, pages):
    """Share of the pages that were asked for when the first frontier was there."""
    process = subprocess.Popen(gapless(url, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    store = f"sqlite:///{folder}/progress.db"
    share = None
    while share is None and process.poll() is None:
        try:
            with Progress(store) as progress:
                while process.poll() is None:
                    if progress.scope("orders").frontier is not None:
                        share = json.load(urlopen(f"{url}/requests"))["requests"] / pages
                        break
                    time.sleep(0.005)
        except StoreError:
            time.sleep(0.005)
    process.wait()
    return share


def cost_of_passes(url, folder):
    """(passes, seconds of the run, seconds that no reader accounts for)."""
    from gapless_pipelines import backfill, local_passes
    from gapless_pipelines.job import load_job

    gapless(url, folder)
    job = load_job(Path(folder, "job.yaml"))
    measured = []
    one = local_passes.LocalPasses.one

    def timed(self, pace, due):
        began = time.perf_counter()
        tally = one(self, pace, due)
        measured.append((time.perf_counter() - began, (tally.waited + tally.worked) / pace.workers, len(due)))
        return tally

    local_passes.LocalPasses.one = timed
    outcome = backfill.run_backfill(
        backfill.Backfill(job.source(), job.effect(), job.store.ref(), job.engine(), readers=8)
    )
    return outcome.passes, outcome.seconds, measured


def empty_pass(url, folder):
    """Seconds of a pass in which nothing is due: what any pass costs by itself."""
    from gapless.complete_through import CompleteThrough
    from gapless.paging.readahead import FeedPool
    from gapless.settling.local_run import LocalRun, local_run
    from gapless_pipelines.job import load_job
    from gapless_pipelines.local_passes import LocalPasses, PassRunner

    job = load_job(Path(folder, "job.yaml"))
    run = LocalRun("measured", FeedPool(job.source().open))
    transform = CompleteThrough(
        job.source(), job.effect(), job.store.ref(), run_id="measured", engine="local", observe=False
    )
    passes = LocalPasses(transform, job.engine().pipeline_options(), run)
    with local_run(run):
        run.due = frozenset()
        took = []
        for _ in range(5):
            began = time.perf_counter()
            PassRunner(1).run_via_runner_api(passes._proto, passes._options).wait_until_finish()
            took.append(time.perf_counter() - began)
    return sorted(took)[2]


def main(options):
    with event_api(options) as url, tempfile.TemporaryDirectory() as folder:
        share = first_published(url, folder, options.partitions * options.pages)
        print(f"a frontier was published when {share:.1%} of the pages had been asked for")
    with event_api(options) as url, tempfile.TemporaryDirectory() as folder:
        passes, seconds, measured = cost_of_passes(url, folder)
        cost = empty_pass(url, folder)
        print(
            f"{passes} passes in {seconds:.2f} s; a pass with nothing to read takes {cost:.3f} s: "
            f"{passes * cost / seconds:.1%} of the run"
        )
        for wall, reading, chains in measured:
            print(
                f"  pass over {chains} chains: {wall:.2f} s, of which {reading:.2f} s on pages and waiting for them"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--delay-ms", type=float, default=0)
    main(parser.parse_args())
