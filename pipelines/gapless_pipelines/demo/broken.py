"""The demo with `--break`: one departure does not fit the schema. Its airport is held, and only that one; `skip` releases it."""

from pathlib import Path

from gapless_pipelines.demo.checks import Checks, Say, cut_of, data_set, missing_before
from gapless_pipelines.demo.flights import YEAR_STOP, Departures, read_departures
from gapless_pipelines.demo.job_file import FILE_NAME
from gapless_pipelines.demo.scene import Scene, prepare, scene

BROKEN_AIRPORT = "JFK"
BROKEN_ID = "MQ-3363-JFK-2013-08-15"
_REASON = "the delay is no number; told the airport"


def show_broken(folder: Path, say: Say) -> bool:
    """Run it in `folder`; whether every equality it showed holds. Raises GaplessError."""
    prepare(folder)
    with scene(folder, broken=BROKEN_ID) as on:
        departures = read_departures()
        say(
            f"{len(departures):,} departures of 2013, from an API of {len(departures.by_airport)} partitions at {on.url}"
        )
        say(f"one of them, {BROKEN_ID}, comes with a delay that is no number")
        say(f"job file, store and Parquet files: {folder}")
        checks = Checks(say)
        _held(on, departures, checks)
        _released(on, departures, checks)
        return checks.all_hold


def _held(on: Scene, departures: Departures, checks: Checks) -> None:
    ran = _run(on, checks, "backfill", FILE_NAME)
    checks.equal("exit status", 3, ran)
    _run(on, checks, "explain", FILE_NAME, shown=True)
    status = on.gapless_json("status", FILE_NAME)
    frontier = cut_of(status["frontier"])
    found = data_set(on.gapless_json("dataset", FILE_NAME), departures.by_airport)
    checks.say("")
    held = ", ".join(f"{blocker['partition']} by {blocker['event_id']}" for blocker in status["blockers"])
    checks.equal("held", f"{BROKEN_AIRPORT} by {BROKEN_ID}", held)
    if frontier is not None:
        checks.say(f"  frontier: {frontier.text}")
        checks.equal(
            "departures the frontier claims and no file holds", 0, missing_before(frontier, departures, found)
        )
        position = next(d.position for d in departures.by_airport[BROKEN_AIRPORT] if d.id == BROKEN_ID)
        checks.equal("it stands at or before the failing departure", True, frontier.stop <= position)
    for airport, expected in departures.by_airport.items():
        if airport != BROKEN_AIRPORT:
            checks.equal(f"{airport} rows in the manifest", len(expected), found.rows[airport])


def _released(on: Scene, departures: Departures, checks: Checks) -> None:
    checks.equal("exit status", 0, _run(on, checks, "skip", BROKEN_AIRPORT, BROKEN_ID, "--reason", _REASON))
    checks.equal("exit status", 0, _run(on, checks, "backfill", FILE_NAME))
    status = on.gapless_json("status", FILE_NAME)
    frontier = cut_of(status["frontier"])
    found = data_set(on.gapless_json("dataset", FILE_NAME), departures.by_airport)
    checks.equal("frontier", f"everything before {YEAR_STOP}", frontier.text if frontier else "withheld")
    checks.equal("dead letters", 1, status["counts"]["dead_letters"])
    for airport, expected in departures.by_airport.items():
        dead = int(airport == BROKEN_AIRPORT)
        checks.equal(f"{airport} rows in the manifest", len(expected) - dead, found.rows[airport])


def _run(on: Scene, checks: Checks, *arguments: str, shown: bool = False) -> int:
    words = (f'"{word}"' if " " in word else word for word in arguments)
    checks.say(f"\n$ gapless {' '.join(words)}")
    ran = on.gapless(*arguments)
    if shown:
        checks.say((ran.out + ran.err).strip("\n"))
    return ran.exit_status
