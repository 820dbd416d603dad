"""`TrackPartitions`: keeps each partition's token position, receipts summary and bound as keyed state, emits what moved."""

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec

from gapless.metrics import LATE_PROGRESS
from gapless.progress_merge import later
from gapless.state_format import PartitionProgressCoder
from gapless.updates import PartitionProgress


class TrackPartitions(beam.PTransform[PCollection[PartitionProgress], PCollection[PartitionProgress]]):
    """One element out for each that moves its partition forward; late and repeated ones are counted and dropped.

    Elements may arrive in any order and more than once: the result for a partition is the latest of all it has seen."""

    def expand(self, progress: PCollection[PartitionProgress]) -> PCollection[PartitionProgress]:
        return (
            progress
            | "By partition" >> beam.Map(_keyed).with_output_types(tuple[str, PartitionProgress])
            | "Track" >> beam.ParDo(_Track()).with_output_types(PartitionProgress)
        )


def _keyed(progress: PartitionProgress) -> tuple[str, PartitionProgress]:
    # The chain, not the partition's name: a partition read under another routing generation or lineage is another chain.
    return f"{progress.scope}\n{progress.chain}", progress


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
