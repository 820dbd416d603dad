"""`gapless schema`: JSON Schemas, for editors and for programs that read `--json`; and a job file to start from."""

import json
from enum import Enum
from typing import Annotated

import typer

from gapless.errors import ConfigurationError
from gapless_pipelines.cli.arguments import Debug
from gapless_pipelines.cli.printing import emit_text


class _Document(str, Enum):
    JOB = "job"
    DELIVERY = "delivery"
    STATUS = "status"
    DATASET = "dataset"
    EPOCH = "epoch"
    CUTOVER = "cutover"
    HISTORY = "history"
    AUDIT = "audit"
    DELIVERY_STATUS = "delivery-status"


def schema(
    document: Annotated[_Document, typer.Argument(help="Of what.", show_default=True)] = _Document.JOB,
    example: Annotated[
        str | None,
        typer.Option(
            "--example", metavar="KIND", help="Print a commented job file instead: http.", show_default=False
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of a job file (job; of one about a message log: delivery) or of what a command prints with --json;
    or an example job file."""
    from gapless_pipelines.job import schema as schemas

    if example is not None:
        if document is not _Document.JOB:
            raise ConfigurationError(
                f"there is no example of {document.value}",
                remedy="`gapless schema --example http` is a job file",
            )
        emit_text(schemas.example(example))
        return
    job_files = {_Document.JOB: schemas.job_schema, _Document.DELIVERY: schemas.delivery_schema}
    made = job_files[document]() if document in job_files else schemas.output_schema(document.value)
    emit_text(json.dumps(made, indent=2))
