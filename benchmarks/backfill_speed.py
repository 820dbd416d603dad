"""`gapless backfill` against the plain loop, whole processes, in pairs: the ratio of their times, peak memory, requests.

    python benchmarks/backfill_speed.py [--pairs 3] [--partitions 8 --pages 100 --events 1000] [--delay-ms 0]
    python benchmarks/backfill_speed.py --rival "PYTHON SCRIPT"       another rival, called with URL and FOLDER

A ratio above 1 says that gapless is faster. Needs the extra `bench`.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

HERE = Path(__file__).parent
JOB = """\
version: 1
scope: orders
domain: {{type: integer}}
source:
  type: http
  base_url: {url}
  partitions:
    http: {{path: /partitions, items: partitions, id: "@", routing_generation: routing_generation}}
  pages:
    path: "/partitions/{{partition.id}}/events"
    records: events
    next: {{type: cursor, from: next_cursor, param: cursor, end: "null"}}
  event: {{id: id, position: position}}
  certificate:
    page: {{position: complete_through.position, inclusive: complete_through.inclusive}}
range: {{start: 0, stop: null}}
effect: {{type: parquet, path: {folder}/out}}
store: {{url: "sqlite:///{folder}/progress.db"}}
"""


@contextmanager
def event_api(options):
    """The API in a process of its own; its URL."""
    command = [sys.executable, str(HERE / "event_api.py")]
    for name in ("partitions", "pages", "events", "delay_ms"):
        command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().split()[1]}"
    finally:
        server.kill()
        server.wait()


def timed(command, environment=None):
    """Seconds, CPU seconds and peak MB of one whole process. Raises where it fails."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}\n{error.decode()}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def gapless(url, folder):
    job = Path(folder, "job.yaml")
    job.write_text(JOB.format(url=url, folder=folder))
    return [str(Path(sys.executable).parent / "gapless"), "backfill", str(job)]


def promoted(folder):
    """Rows of the data set, by the command a user would ask."""
    command = [str(Path(sys.executable).parent / "gapless"), "dataset", f"{folder}/job.yaml", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["rows"]


def main(options):
    rival = shlex.split(options.rival) if options.rival else [sys.executable, str(HERE / "plain_loop.py")]
    ratios = []
    with event_api(options) as url:
        for pair in range(options.pairs):
            with tempfile.TemporaryDirectory() as theirs, tempfile.TemporaryDirectory() as ours:
                them = timed([*rival, url, theirs])
                before = json.load(urlopen(f"{url}/requests"))["requests"]
                us = timed(gapless(url, ours))
                asked = json.load(urlopen(f"{url}/requests"))["requests"] - before
                expected = options.partitions * options.pages * options.events
                if promoted(ours) != expected:
                    raise SystemExit(f"gapless holds {promoted(ours)} rows, the API served {expected}")
            ratios.append(them[0] / us[0])
            print(
                f"pair {pair + 1}: rival {them[0]:.2f} s (cpu {them[1]:.2f}, {them[2]:.0f} MB)   "
                f"gapless {us[0]:.2f} s (cpu {us[1]:.2f}, {us[2]:.0f} MB, {asked} requests)   ratio {ratios[-1]:.2f}",
                flush=True,
            )
    print(f"median ratio {statistics.median(ratios):.2f} of {len(ratios)} pairs, {expected} events")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument(
        "--rival", help="a command that is given the URL and a folder; default: the plain loop"
    )
    main(parser.parse_args())
