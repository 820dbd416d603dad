"""A stream in a program of its own, on whatever engine Beam's options name, over a source that grows with the clock.

    python streamed_pipeline.py in_place|in_pipeline FOLDER STORE_URL BEGAN [--runner=...]

Each partition has one more page of events every `EVERY` seconds after `BEGAN` (unix seconds); `p9` is listed from the page
`LATE` on. It never ends by itself. Events that the pipeline was given are written to FOLDER/given, one id a line.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from gapless import (
    CombineFrontier,
    CompleteThrough,
    ParquetEffect,
    PlanPartitions,
    PublishFrontier,
    ReadPages,
    TrackPartitions,
)
from gapless.emitted_page import EmittedPage, Outcome
from gapless.outcomes import delivered
from gapless.paging.page import Page, Partition
from gapless.paging.source import Assignment, ListedPartition, Range
from gapless.polling import Polling
from gapless.progress import Bound, Certificate, Domain, IntegerDomain

SCOPE = "clocked"
EVERY = 1.0
EVENTS = 5
LATE = 6
POLLING = Polling(every=0.3, longest=0.6, look_every=1.0)


class ClockedSource:
    """Implements Source, as a stream reads it. Page n holds the positions from 10n on, and certifies 10n + 9."""

    scope = SCOPE
    domain: Domain = IntegerDomain()
    range = Range()
    restarts = None

    def __init__(self, began: float) -> None:
        self.began = began

    def identity(self) -> Mapping[str, object]:
        return {"type": "clocked", "domain": self.domain.describe()}

    def basis(self) -> str:
        return "certified"

    def restart_token(self, bound: Bound) -> str | None:
        return None

    def pages(self) -> int:
        """How many pages each partition has by now."""
        return int((time.time() - self.began) / EVERY)

    def there_since(self, page: int) -> float:
        return self.began + (page + 1) * EVERY

    def open(self) -> "ClockedSession":
        return ClockedSession(self)


class ClockedSession:
    def __init__(self, source: ClockedSource) -> None:
        self._source = source

    def assignment(self) -> Assignment:
        late = ["p9"] if self._source.pages() >= LATE else []
        return Assignment([ListedPartition(Partition(name, {})) for name in ("p0", "p1", "p2", *late)])

    def generation(self) -> str:
        return ""

    def fetch(self, partition: Partition, page_token: str | None) -> Page:
        number, there = int(page_token or 0), self._source.pages()
        if number >= there:
            return Page(page_token, page_token, False, [], [], [], caught_up=True)
        positions = [10 * number + n for n in range(EVENTS)]
        ids = [f"{partition.id}-{position}" for position in positions]
        return Page(
            page_token,
            str(number + 1),
            False,
            ids,
            positions,
            [{"id": event} for event in ids],
            Certificate(Bound.through(10 * number + 9), "clock"),
            caught_up=number + 1 >= there,
        )

    def close(self) -> None:
        """Nothing is open."""


class WriteDown(beam.DoFn):
    """Durable, and safe to do twice."""

    def __init__(self, path: str) -> None:
        self._path = path

    def process(self, element: EmittedPage) -> Iterator[Outcome]:
        with Path(self._path).open("a") as given:
            given.write("".join(f"{event.id}\n" for event in element.events))
        yield delivered(element)


def main() -> None:
    way, folder, url, began, *arguments = sys.argv[1:]
    source = ClockedSource(float(began))
    p = beam.Pipeline(options=PipelineOptions(arguments))
    if way == "in_place":
        _ = p | CompleteThrough(source, ParquetEffect(folder), url, polling=POLLING)
    else:
        pages = p | PlanPartitions(source, url, polling=POLLING) | ReadPages(source, url, polling=POLLING)
        outcomes = pages | beam.ParDo(WriteDown(f"{folder}/given")).with_output_types(Outcome)
        _ = (pages, outcomes) | TrackPartitions(url) | CombineFrontier() | PublishFrontier(url)
    p.run().wait_until_finish()


if __name__ == "__main__":
    # By its own name, so that what is pickled is found there, and not in __main__.
    import streamed_pipeline

    streamed_pipeline.main()
