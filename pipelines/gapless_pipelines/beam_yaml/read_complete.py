"""`ReadComplete`: `CompleteThrough` for Beam YAML."""

from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PBegin, PCollection, Row

from gapless.complete_through import CompleteThrough
from gapless_pipelines.beam_yaml import rows
from gapless_pipelines.beam_yaml.yaml_job import (
    INLINE,
    error_output,
    refuse_unshared_in,
    yaml_document,
    yaml_engine,
)
from gapless_pipelines.job.loading import job_of


class ReadComplete(beam.PTransform[PBegin, dict[str, PCollection[Row]]]):
    """Reads the partitions of a job, applies its effect to every event, durably, and publishes the frontier.

    Outputs `frontier`, `progress` and `dead_letters`. Events are no output: what a pipeline did with them would have no
    outcome in the ledger. The job's effect takes them, and its files are what the manifest lists.

    Args:
      job: The path of a job file, local or in object storage, or the keys of one. Its pipeline_options are not used.
      variables: What ${NAME} in the job refers to, before the environment.
      shared_folder: The folder that all workers share; needed where they are on other machines and the job writes files.
      error_handling: {output: NAME} gives dead letters under that name.
    """

    _yaml_requires_inputs = False

    def __init__(
        self, job: Any, variables: Any = None, shared_folder: Any = None, error_handling: Any = None
    ) -> None:
        super().__init__()
        self._words = job
        self._document = yaml_document(job, variables)
        self._job = job_of(self._document, Path(job if isinstance(job, str) else INLINE))
        self._shared_folder = shared_folder
        self._errors = error_output(error_handling, "dead_letters")

    def expand(self, pbegin: PBegin) -> dict[str, PCollection[Row]]:
        job = self._job
        engine = yaml_engine(pbegin.pipeline.options, job.store.url)
        refuse_unshared_in(self._document, self._words, engine, self._shared_folder)
        done = pbegin | "CompleteThrough" >> CompleteThrough(
            job.source(),
            job.effect(),
            job.store.ref(),
            dead_letters=job.dead_letters(),
            retry=job.retry(),
            membership=job.membership(),
            engine=engine.engine,
        )
        return {
            "frontier": rows.as_rows(done.frontier, "Frontier rows", rows.FRONTIER, rows.frontier_row),
            "progress": rows.as_rows(done.progress, "Progress rows", rows.PROGRESS, rows.progress_row),
            self._errors: rows.as_rows(
                done.dead_letters, "Dead letter rows", rows.DEAD_LETTER, rows.dead_letter_row, job.domain
            ),
        }
