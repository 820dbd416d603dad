"""What a user's own transforms do with pages: they write each event down, durably, and say so in every way that there is.

One file a process, which outlives it, one line an event: partition, id and data, by tabs. Some events are given up on.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import apache_beam as beam
import msgspec
from apache_beam.pvalue import PCollection
from engine_steps import on_step

from gapless.emitted_page import EmittedPage, Event, Outcome
from gapless.outcomes import dead_lettered, delivered, left_out, part


def fate(event_id: str) -> str:
    """`delivered`, `left out` (settled, and delivered to nobody) or `dead`: of each event the same, whoever asks."""
    at = int(event_id.rpartition("-")[2]) % 40
    return {17: "dead", 23: "left out"}.get(at, "delivered")


class Deliver(beam.PTransform[PCollection[EmittedPage], PCollection[Outcome]]):
    """Outcomes come in any order, some twice, many or few in one element, some in parts from several steps."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, pages: PCollection[EmittedPage]) -> PCollection[Outcome]:
        return (
            pages
            | "Write down" >> beam.ParDo(_WriteDown(self._folder)).with_output_types(Outcome)
            | "Any order" >> beam.Reshuffle()
        )


class _WriteDown(beam.DoFn):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def process(self, element: EmittedPage) -> Iterator[Outcome]:
        write_down(self._folder, element.task.partition, element.events)
        on_step("delivered")
        yield from _said(element)
        on_step("said")


def write_down(folder: Path, partition: str, events: Sequence[Event]) -> None:
    lines = [
        f"{partition}\t{event.id}\t{msgspec.json.encode(event.row).decode()}\n"
        for event in events
        if fate(event.id) == "delivered"
    ]
    if not lines:
        return
    # A line is whole or not there: what a process has written in one call outlives its SIGKILL.
    out = os.open(folder / f"{os.getpid()}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(out, "".join(lines).encode())
    finally:
        os.close(out)


def _said(page: EmittedPage) -> Iterator[Outcome]:
    by_fate: dict[str, list[str]] = {"delivered": [], "left out": [], "dead": []}
    for event in page.events:
        by_fate[fate(event.id)].append(event.id)
    dead: Mapping[str, str] = dict.fromkeys(by_fate["dead"], "no such account")
    way = crc32(page.attempt.encode()) % 4
    if way == 0:
        yield delivered(page, but=dead)
    elif way == 1:
        yield from (part(delivered(page, but=dead if branch else {}), branch, of=2) for branch in (1, 0))
    else:
        half = len(by_fate["delivered"]) // 2
        yield delivered(page, by_fate["delivered"][half:])
        yield dead_lettered(page, dead)
        yield delivered(page, by_fate["delivered"][:half])
        yield left_out(page, by_fate["left out"])
        if way == 2:
            yield delivered(page, by_fate["delivered"])


class Deliveries:
    """What is written down so far, and what of it nobody has read yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.ids: dict[str, set[str]] = {}
        self.lines = 0

    def look(self) -> list[tuple[str, str, Any]]:
        """(partition, id, data) of what was written down since the last look."""
        found = []
        for file in sorted(self._folder.glob("*.log")):
            with file.open("rb") as opened:
                opened.seek(self._read.get(file, 0))
                whole = opened.read()
            whole = whole[: whole.rfind(b"\n") + 1]
            self._read[file] = self._read.get(file, 0) + len(whole)
            for line in whole.decode().split("\n")[:-1]:
                partition, event_id, data = line.split("\t", 2)
                self.ids.setdefault(partition, set()).add(event_id)
                found.append((partition, event_id, msgspec.json.decode(data)))
        self.lines += len(found)
        return found
