"""What must be equal at the end: counted from the data itself on one side, from frontier, manifest and files on the other."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq

from gapless_pipelines.demo.flights import Departures

Say = Callable[[str], None]


@dataclass(slots=True)
class Checks:
    """Says each comparison as it is made, and remembers whether all have held."""

    say: Say
    all_hold: bool = True

    def equal(self, what: str, expected: object, found: object) -> None:
        if expected == found:
            self.say(f"  ok   {what}: {_text(found)}")
        else:
            self.all_hold = False
            self.say(f"  NOT  {what}: {_text(found)}, but it has to be {_text(expected)}")

    def at_most(self, what: str, limit: int, found: int) -> None:
        if found <= limit:
            self.say(f"  ok   {what}: {found:,}, at most {limit:,}")
        else:
            self.all_hold = False
            self.say(f"  NOT  {what}: {found:,}, but it may be at most {limit:,}")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True)
class DataSet:
    """The files that the manifest names: rows as it counts them, and the ids that are in the files, by airport."""

    rows: Mapping[str, int]
    ids: Mapping[str, "list[str]"] = field(repr=False)

    def total(self) -> int:
        return sum(self.rows.values())

    def twice(self) -> int:
        """Rows whose event is in another row too."""
        return sum(len(ids) - len(set(ids)) for ids in self.ids.values())


def data_set(manifest: Mapping[str, Any], airports: Iterable[str]) -> DataSet:
    """Read what `gapless dataset --json` names. An airport without a file has no rows."""
    rows = dict.fromkeys(airports, 0)
    ids: dict[str, list[str]] = {airport: [] for airport in rows}
    for file in manifest["files"]:
        rows[file["partition"]] += file["rows"]
        ids[file["partition"]].extend(
            pq.read_table(file["path"], columns=["_event_id"])["_event_id"].to_pylist()
        )
    return DataSet(rows, ids)


@dataclass(frozen=True, slots=True)
class Cut:
    """A frontier as `gapless status --json` tells it, and as whole seconds: everything before `stop` is covered."""

    text: str
    stop: int


def cut_of(frontier: Mapping[str, Any] | None) -> Cut | None:
    """None where the frontier is withheld."""
    if frontier is None:
        return None
    instant = int(datetime.strptime(frontier["position"], "%Y-%m-%dT%H:%M:%S%z").timestamp())
    word = "through" if frontier["inclusive"] else "before"
    return Cut(f"everything {word} {frontier['position']}", instant + int(frontier["inclusive"]))


def missing_before(cut: Cut, departures: Departures, found: DataSet) -> int:
    """How many departures the frontier claims that are in no file of the manifest."""
    missing = 0
    for airport, ids in found.ids.items():
        claimed = departures.by_airport[airport][: departures.before(airport, cut.stop)]
        missing += len({departure.id for departure in claimed}.difference(ids))
    return missing
