"""The demo: a backfill is killed half-way and run again; nothing is missing, nothing is twice, little is read again."""

from pathlib import Path

from gapless_pipelines.demo.checks import Checks, Cut, DataSet, Say, cut_of, data_set, missing_before
from gapless_pipelines.demo.flights import YEAR_STOP, Departures, read_departures
from gapless_pipelines.demo.flights_api import PAGE_SIZE
from gapless_pipelines.demo.job_file import FILE_NAME, TARGET_ROWS
from gapless_pipelines.demo.scene import DemoFailed, Scene, prepare, scene

AT_MOST_AGAIN = TARGET_ROWS + PAGE_SIZE
"""What a partition may have been sent and not promoted when the run was killed: one run of pages, and the page after it."""


def show_interrupted(folder: Path, say: Say) -> bool:
    """Run it in `folder`; whether every equality it showed holds. Raises GaplessError."""
    prepare(folder)
    with scene(folder) as on:
        departures = read_departures()
        say(
            f"{len(departures):,} departures of 2013, from an API of {len(departures.by_airport)} partitions at {on.url}"
        )
        say(f"job file, store and Parquet files: {folder}")
        checks = Checks(say)
        _kill_half_way(on, departures, checks)
        _resume(on, departures, checks)
        return checks.all_hold


def _kill_half_way(on: Scene, departures: Departures, checks: Checks) -> None:
    checks.say(f"\n$ gapless backfill {FILE_NAME}      (to be killed half-way)")
    on.kill_backfill_at(len(departures) // 2)
    frontier, found = _left_behind(on, departures)
    checks.say(f"  killed by SIGKILL with {found.total():,} departures durable")
    if frontier is None:
        checks.say("  frontier: withheld, no partition order is proved yet")
    else:
        checks.say(f"  frontier: {frontier.text}")
        missing = missing_before(frontier, departures, found)
        checks.equal("departures the frontier claims and no file holds", 0, missing)


def _resume(on: Scene, departures: Departures, checks: Checks) -> None:
    checks.say(f"\n$ gapless backfill {FILE_NAME}      (again)")
    ran = on.gapless("backfill", FILE_NAME)
    if ran.exit_status not in (0, 3):
        raise DemoFailed(
            f"the second backfill ended with exit status {ran.exit_status}", where=ran.err.strip()
        )
    frontier, found = _left_behind(on, departures)
    served = on.served()
    checks.equal("exit status", 0, ran.exit_status)
    checks.equal("frontier", f"everything before {YEAR_STOP}", frontier.text if frontier else "withheld")
    compare(found, departures, checks)
    checks.say(
        f"\nthe API sent {served.pages:,} pages, {served.unavailable} answers 503 and {served.expired} 410"
    )
    for airport, again in served.again.items():
        checks.at_most(f"{airport} departures read again", AT_MOST_AGAIN, again)


def compare(found: DataSet, departures: Departures, checks: Checks) -> None:
    """Rows of the manifest, and ids in its files, against the data."""
    for airport, expected in departures.by_airport.items():
        checks.equal(f"{airport} rows in the manifest", len(expected), found.rows[airport])
    everything = {departure.id for airport in departures.by_airport.values() for departure in airport}
    ids = {event for airport in found.ids.values() for event in airport}
    checks.equal("departures missing from the files", 0, len(everything - ids))
    checks.equal("departures that are in the files twice", 0, found.twice())


def _left_behind(on: Scene, departures: Departures) -> tuple[Cut | None, DataSet]:
    status = on.gapless_json("status", FILE_NAME)
    return cut_of(status["frontier"]), data_set(on.gapless_json("dataset", FILE_NAME), departures.by_airport)
