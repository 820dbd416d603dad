"""`SummariseCovered`: what is newly covered in a message log, handed on for many shards in parallel.

A bounded pass: the shards are listed, spread over the workers, and each is handed on until nothing is due. The log's own
claims keep the ranges apart, so any bundle may run twice, also at the same time. Run it as often as you like, or beside
`gapless delivery run`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.pvalue import PBegin, PCollection, TaggedOutput

from gapless import state_format  # noqa: F401 - registers the coders of progress and hints
from gapless.combine_frontier import CombineFrontier
from gapless.delivery import CoveredRange, Held, LogRef, MessageLog, RangeEffect, Worker
from gapless.delivery.coverage import Shard
from gapless.delivery.worker import ROWS, Report
from gapless.progress import Bound, ChainState, IntegerDomain
from gapless.progress_merge import FrontierHint
from gapless.updates import PartitionProgress

_HELD = "held"
_PROGRESS = "progress"


class SummarisedCovered(NamedTuple):
    """`covered`: ranges that were handed on in this pass. `held`: shards whose effect failed. `progress`: each shard as the
    partition that it is, complete through a bound. `frontier`: the table's, the minimum over all shards."""

    covered: PCollection[CoveredRange]
    held: PCollection[Held]
    progress: PCollection[PartitionProgress]
    frontier: PCollection[FrontierHint]


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One of `members` shards, listed when `settled` was known: no other shard has a row at or below it."""

    shard: Shard
    number: int
    members: int
    settled: int


class SummariseCovered(beam.PTransform[PBegin, SummarisedCovered]):
    """`log`: installed, and opened by URL (or its `reference()`): it is opened anew on each worker. `effect`: see
    `RangeEffect`; it is pickled. `rows`: act when this many rows of a shard are newly covered. `shards`: these alone; then
    the frontier is theirs.

    Raises ConfigurationError for a log that cannot travel."""

    def __init__(
        self,
        log: MessageLog | LogRef,
        effect: RangeEffect,
        *,
        rows: int = ROWS,
        shards: Iterable[Shard] | None = None,
    ) -> None:
        super().__init__()
        self._log = log if isinstance(log, LogRef) else log.reference()
        self._effect = effect
        self._rows = rows
        self._shards = None if shards is None else tuple(shards)

    def expand(self, begin: PBegin) -> SummarisedCovered:
        handed_on = (
            begin
            | "Once" >> beam.Impulse()
            | "List shards" >> beam.ParDo(_ListShards(self._log, self._shards)).with_output_types(ShardTask)
            | "Spread" >> beam.Reshuffle()
            | "Hand on"
            >> beam.ParDo(_HandOn(self._log, self._effect, self._rows)).with_outputs(
                _HELD, _PROGRESS, main="covered"
            )
        )
        progress = handed_on[_PROGRESS] | "Progress" >> beam.Map(_same).with_output_types(PartitionProgress)
        return SummarisedCovered(
            handed_on["covered"] | "Covered" >> beam.Map(_same).with_output_types(CoveredRange),
            handed_on[_HELD] | "Held" >> beam.Map(_same).with_output_types(Held),
            progress,
            progress | CombineFrontier(),
        )


def _same(element: object) -> object:
    return element


class _OverLog(beam.DoFn):
    """Opens the log when it is first needed, and keeps it."""

    def __init__(self, ref: LogRef) -> None:
        self._ref = ref
        self._opened: MessageLog | None = None

    def log(self) -> MessageLog:
        if self._opened is None:
            self._opened = self._ref.open()
        return self._opened

    def teardown(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()


class _ListShards(_OverLog):
    def __init__(self, ref: LogRef, shards: tuple[Shard, ...] | None) -> None:
        super().__init__(ref)
        self._shards = shards

    def process(self, element: bytes) -> Iterator[ShardTask]:
        # In this order: a shard that is not listed has no row at or below what was settled before.
        settled = self.log().settled().id
        shards = self.log().shards() if self._shards is None else list(self._shards)
        for number, shard in enumerate(shards):
            yield ShardTask(shard, number, len(shards), settled)


class _HandOn(_OverLog):
    def __init__(self, ref: LogRef, effect: RangeEffect, rows: int) -> None:
        super().__init__(ref)
        self._effect = effect
        self._rows = rows

    def process(self, element: ShardTask) -> Iterator[Any]:
        told: list[Report] = []
        worker = Worker(self.log(), self._effect, rows=self._rows, shards=[element.shard], report=told.append)
        worker.hand_on(element.shard)
        for one in told:
            if isinstance(one, CoveredRange):
                yield one
            elif isinstance(one, Held):
                yield TaggedOutput(_HELD, one)
        yield TaggedOutput(_PROGRESS, self._progress(element, worker.done.rows))

    def _progress(self, task: ShardTask, rows: int) -> PartitionProgress:
        frontier = self.log().frontier(task.shard)
        return PartitionProgress(
            scope=self.log().declared.name,
            domain=IntegerDomain(),
            chain=task.number,
            partition=str(task.shard),
            lineage=1,
            epoch=1,
            members=task.members,
            member=True,
            state=ChainState.OPEN,
            fencing_token=0,
            sequence=0,
            events=rows,
            bound=min(frontier.complete, Bound.through(task.settled)),
            basis="certified",
        )
