"""The same events settled in place and in the pipeline, on Beam's local runner and on Prism: ratios of whole processes.

    python benchmarks/engines.py [--pairs 3] [--partitions 8 --pages 100 --events 1000] [--only in-pipeline|prism|readers]

in-pipeline   a trivial transform between pages and outcomes, against settling in place, in the same kind of program
prism         the same job in place on Prism (LOOPBACK), against the local engine
readers       a source that takes --slow-ms for each answer: how many readers Prism keeps busy on the average

Ratios above 1: what is named first is faster. Needs the extra `bench`; Prism's binary in --prism or the variable PRISM.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from urllib.request import urlopen

from backfill_speed import event_api, gapless, promoted, timed

HERE = Path(__file__).parent
PROGRAM = str(HERE / "pipeline_program.py")


def main(options):
    wanted = options.only or ["in-pipeline", "prism", "readers"]
    if "in-pipeline" in wanted:
        in_pipeline(options)
    if "prism" in wanted:
        on_prism(options)
    if "readers" in wanted:
        readers(options)


def program(url, folder, way, *beam_options):
    return [sys.executable, PROGRAM, url, f"sqlite:///{folder}/progress.db", way, *beam_options]


def in_pipeline(options):
    """One program against another, each pair with fresh stores."""
    everything = options.partitions * options.pages * options.events
    ratios = {"page": [], "event": []}
    with event_api(options) as url:
        for _ in range(options.pairs):
            with tempfile.TemporaryDirectory() as folder:
                base = timed(program(url, folder, "in_place"))[0]
            for way, found in ratios.items():
                with tempfile.TemporaryDirectory() as folder:
                    command = program(url, folder, way)
                    seconds = timed(command)[0]
                    again = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                    if int(again) != everything:
                        raise SystemExit(
                            f"{way}: {again.strip()} events are durable, {everything} were served"
                        )
                found.append(base / seconds)
                print(
                    f"in place {base:.2f} s, one outcome a {way} {seconds:.2f} s, ratio {found[-1]:.2f}",
                    flush=True,
                )
    for way, found in ratios.items():
        print(f"in the pipeline, one outcome a {way}: {statistics.median(found):.2f} of the speed in place")


def prism_options(options):
    if not options.prism:
        raise SystemExit("where is Prism's binary? --prism PATH, or the variable PRISM")
    return ["--runner=PrismRunner", f"--prism_location={options.prism}", "--environment_type=LOOPBACK"]


def on_prism(options):
    ratios = []
    with event_api(options) as url:
        for _ in range(options.pairs):
            seconds = []
            for engine in ((), ("--", *prism_options(options))):
                with tempfile.TemporaryDirectory() as folder:
                    seconds.append(timed([*gapless(url, folder), *engine])[0])
                    rows = promoted(folder)
                    if rows != options.partitions * options.pages * options.events:
                        raise SystemExit(f"{rows} rows")
            ratios.append(seconds[0] / seconds[1])
            print(f"local {seconds[0]:.2f} s, Prism {seconds[1]:.2f} s, ratio {ratios[-1]:.2f}", flush=True)
    print(f"Prism: {statistics.median(ratios):.2f} of the local engine's speed")


def readers(options):
    """Seconds that the source held answers back, over the seconds in which they were asked for."""
    slow = Namespace(partitions=8, pages=options.slow_pages, events=10, delay_ms=options.slow_ms)
    with event_api(slow) as url, tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        timed([*gapless(url, folder), "--", *prism_options(options)])
        wall = time.perf_counter() - began
        most = json.load(urlopen(f"{url}/requests"))["most_at_once"]
        held = 8 * options.slow_pages * options.slow_ms / 1000
        one = options.slow_pages * options.slow_ms / 1000
        print(
            f"Prism, 8 partitions, {options.slow_ms} ms an answer: {wall:.1f} s, one partition alone takes {one:.1f} s;"
            f" at most {most} requests at once; {held / wall:.1f} readers busy over the whole process,"
            f" {held / max(0.001, wall - options.start):.1f} without {options.start:.1f} s to start"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--slow-ms", type=float, default=250)
    parser.add_argument("--slow-pages", type=int, default=80)
    parser.add_argument("--start", type=float, default=5.0, help="seconds that starting Prism and Beam take")
    parser.add_argument("--prism", default=os.environ.get("PRISM"))
    parser.add_argument("--only", action="append", choices=["in-pipeline", "prism", "readers"])
    main(parser.parse_args())
