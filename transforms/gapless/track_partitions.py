"""`TrackPartitions`: open pages and receipts of each partition as keyed state; promotes what is settled, emits what moved."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec

from gapless import page_format  # noqa: F401 - registers the coders of pages and outcomes
from gapless.clock import Clock
from gapless.emitted_page import EmittedPage, Outcome
from gapless.errors import ConfigurationError
from gapless.metrics import LATE_PROGRESS
from gapless.progress_merge import later
from gapless.state_format import PartitionProgressCoder
from gapless.store_ref import StoreRef, store_ref
from gapless.track_open_pages import TrackInBatch, TrackInStream
from gapless.tracking.log_entry import LogEntry, entries_of
from gapless.updates import PartitionProgress


class TrackPartitions(beam.PTransform[Any, PCollection[PartitionProgress]]):
    """Where each partition durably stands, one element for each step forward. Elements may come in any order and more than once.

    With a store, it is applied to `(pages, outcomes)`, the pages of `ReadPages` and what the pipeline said of their events: it
    promotes the pages whose events have all been settled, by compare-and-swap on the partition's durable row. Without,
    to the progress that settling in place has made: the result for a partition is the latest of all it has seen."""

    def __init__(self, store: "str | StoreRef | None" = None, *, clock: Clock | None = None) -> None:
        super().__init__()
        self._store = None if store is None else store_ref(store)
        self._clock = clock

    def expand(self, told: Any) -> PCollection[PartitionProgress]:
        if self._store is None:
            if not isinstance(told, PCollection):
                raise ConfigurationError(
                    "pages and outcomes are tracked with the store that their pages are promoted in",
                    where=self.label,
                    remedy="(pages, outcomes) | TrackPartitions(store)",
                )
            return self._of_progress(told)
        if not isinstance(told, tuple) or len(told) != 2:
            raise ConfigurationError(
                "with a store, two collections are tracked: the pages and the outcomes of their events",
                where=self.label,
                remedy="(pages, outcomes) | TrackPartitions(store)",
            )
        return self._of_pages(self._store, *told)

    def _of_progress(self, progress: PCollection[PartitionProgress]) -> PCollection[PartitionProgress]:
        return (
            progress
            | "By partition" >> beam.Map(_keyed).with_output_types(tuple[str, PartitionProgress])
            | "Track" >> beam.ParDo(_Track()).with_output_types(PartitionProgress)
        )

    def _of_pages(
        self, store: StoreRef, pages: PCollection[EmittedPage], outcomes: PCollection[Outcome]
    ) -> PCollection[PartitionProgress]:
        for collection in (pages, outcomes):
            if not isinstance(collection, PCollection):
                raise ConfigurationError(
                    f"pages and outcomes are tracked, each a collection, not {type(collection).__name__}",
                    where=self.label,
                    remedy="(pages, outcomes) | TrackPartitions(store), the pages being what ReadPages returns",
                )
            if not collection.windowing.is_default():
                raise ConfigurationError(
                    "pages and outcomes are tracked in the global window, with its default trigger",
                    where=self.label,
                    remedy="outcomes | beam.WindowInto(window.GlobalWindows()), after what is windowed",
                )
        track = TrackInBatch if pages.is_bounded and outcomes.is_bounded else TrackInStream
        told = pages | "Told" >> beam.FlatMap(_told).with_output_types(PartitionProgress)
        slim = pages | "Without rows" >> beam.FlatMap(_keyed_page).with_output_types(tuple[str, LogEntry])
        said = outcomes | "By chain" >> beam.Map(_keyed_outcome).with_output_types(tuple[str, LogEntry])
        tracked = (
            (slim, said)
            | "Both" >> beam.Flatten()
            # What has a state is to stand at the beginning of a stage, or readers would wait for it and for each other.
            | "Apart" >> beam.Reshuffle()
            | "Track"
            >> beam.ParDo(
                track(store, self._clock, only_at_the_end=_may_split_keys(pages))
            ).with_output_types(PartitionProgress)
        )
        return (told, tracked) | "Progress" >> beam.Flatten()


_SPLITTING: Final = ("PrismRunner", "DirectRunner", "SwitchingDirectRunner")
"""Prism 2.77, and what may turn out to be it: a stateful bundle without progress for some 0.2 s is split, between any two
elements, and the key is given to the rest at once, without the state that the first part is about to leave."""


def _may_split_keys(pages: PCollection[EmittedPage]) -> bool:
    return type(pages.pipeline.runner).__name__ in _SPLITTING


def _keyed(progress: PartitionProgress) -> tuple[str, PartitionProgress]:
    # The chain, not the partition's name: a partition read under another routing generation or lineage is another chain.
    return f"{progress.scope}\n{progress.chain}", progress


def _told(page: EmittedPage) -> Iterable[PartitionProgress]:
    if not isinstance(page, EmittedPage):
        raise TypeError(f"the first collection to track holds the pages, not {type(page).__name__}")
    return () if page.progress is None else (page.progress,)


def _keyed_page(page: EmittedPage) -> Iterator[tuple[str, LogEntry]]:
    for entry in entries_of(page):
        yield entry.key, entry


def _keyed_outcome(outcome: Outcome) -> tuple[str, LogEntry]:
    if not isinstance(outcome, Outcome):
        # Reached where the collection has no type, or another one than its elements.
        raise TypeError(f"the second collection to track holds outcomes, not {type(outcome).__name__}")
    if outcome.attempt and outcome.number is None and outcome.read_through is None:
        raise ValueError(
            f"an outcome says of which page it is: attempt {outcome.attempt!r} names no number; Outcome(..., number=page.number)"
        )
    entry = LogEntry(outcome)
    return entry.key, entry


class _Track(beam.DoFn):
    LATEST = ReadModifyWriteStateSpec("latest", PartitionProgressCoder())

    def process(
        self, element: tuple[str, PartitionProgress], latest: Any = beam.DoFn.StateParam(LATEST)
    ) -> Iterator[PartitionProgress]:
        known: PartitionProgress | None = latest.read()
        merged = later(known, element[1])
        if merged == known:
            LATE_PROGRESS.inc()
            return
        latest.write(merged)
        yield merged
