"""`DeliveryFrontier`: where the shards of a message log stand, and, where that is asked for, what is newly covered handed on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PBegin, PCollection, Row, TaggedOutput
from apache_beam.transforms.combiners import Count

from gapless.delivery import LogRef
from gapless.progress import Scalar, Withheld
from gapless.summarise_covered import SummariseCovered
from gapless_pipelines.beam_yaml import rows
from gapless_pipelines.beam_yaml.yaml_job import INLINE, error_output, yaml_document, yaml_engine
from gapless_pipelines.delivery_job import delivery_job_of

_TABLE = "table"


class DeliveryFrontier(beam.PTransform[PBegin, dict[str, PCollection[Row]]]):
    """Through which id every row of each shard of a message log is terminal.

    Outputs `shards` and `table`. With `hand_on` the job's effect is called on what is newly covered first, and there are
    `covered` and `held` as well; `shards` and `table` are then as of afterwards.

    Args:
      job: The path of a job file with `delivery`, local or in object storage, or the keys of one.
      variables: What ${NAME} in the job refers to, before the environment.
      hand_on: true calls the job's effect, as `gapless delivery run --once` does.
      error_handling: {output: NAME} gives ranges whose effect failed under that name; with hand_on alone.
    """

    _yaml_requires_inputs = False

    def __init__(
        self, job: Any, variables: Any = None, hand_on: bool = False, error_handling: Any = None
    ) -> None:
        super().__init__()
        self._job = delivery_job_of(
            yaml_document(job, variables), Path(job if isinstance(job, str) else INLINE)
        )
        self._effect = self._job.effect() if hand_on else None
        self._errors = error_output(error_handling, "held")

    def expand(self, pbegin: PBegin) -> dict[str, PCollection[Row]]:
        yaml_engine(pbegin.pipeline.options, self._job.url)
        reference = self._job.reference()
        outputs: dict[str, PCollection[Row]] = {}
        if self._effect is None:
            asked = pbegin | "Once" >> beam.Impulse()
        else:
            done = pbegin | "SummariseCovered" >> SummariseCovered(
                reference, self._effect, rows=self._job.config.trigger.rows
            )
            outputs["covered"] = rows.as_rows(done.covered, "Covered rows", rows.COVERED, rows.covered_row)
            outputs[self._errors] = rows.as_rows(done.held, "Held rows", rows.HELD, rows.held_row)
            # One element when every shard was handed on.
            asked = done.progress | "All shards" >> Count.Globally()
        stands = asked | "Ask" >> beam.ParDo(_Ask(reference)).with_outputs(_TABLE, main="shards")
        outputs["shards"] = rows.as_rows(stands.shards, "Shard rows", rows.SHARD, rows.shard_row)
        outputs[_TABLE] = rows.as_rows(stands[_TABLE], "Table row", rows.TABLE, _itself)
        return outputs


class _Ask(beam.DoFn):
    """Every shard's frontier, and the table's."""

    def __init__(self, log: LogRef) -> None:
        self._log = log

    def process(self, element: Any) -> Iterator[Any]:
        log = self._log.open()
        try:
            # The table's first: shards only move on.
            table = log.table_frontier()
            yield from log.frontiers()
        finally:
            log.close()
        through = str(table.bound.position) if isinstance(table, Scalar) else None
        withheld = table.blockers[0].code if isinstance(table, Withheld) else None
        yield TaggedOutput(_TABLE, Row(table=log.declared.name, through=through, withheld=withheld))


def _itself(row: Row) -> Row:
    return row
