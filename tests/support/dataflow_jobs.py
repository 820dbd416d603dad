"""The jobs whose Dataflow requests are looked at, by name, each as the product itself makes its pipeline.

Run as a program it prints what stays the same of one job's request, as another process finds it:

    python dataflow_jobs.py NAME
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam
import yaml
from dataflow_request import Request, build_request

from gapless import (
    CombineFrontier,
    PlanPartitions,
    PublishFrontier,
    ReadPages,
    TrackPartitions,
)
from gapless.outcomes import delivered
from gapless.polling import Polling
from gapless.updates import PlanRequest
from gapless_pipelines.backfill import transform_of
from gapless_pipelines.cli.backfill_command import backfill_of
from gapless_pipelines.cli.stream_command import stream_of
from gapless_pipelines.job import Job, load_job

TOKEN, PASSWORD, FILE_TOKEN = "tok-3f9c7a51d2e8", "pw-81be64f0c97d", "key-5d20e7c4ba19"
"""Secret values: in the environment or a file of whoever launches, as they may well be, and nowhere in a request."""

ENVIRONMENT = {"ORDERS_TOKEN": TOKEN, "PROGRESS_PASSWORD": PASSWORD}

RUN_ID = "0f" * 16
"""Of every submission another one in truth; fixed here, so that what differs between two requests is not this."""


NOBODY = "http://127.0.0.1:9"
"""Where nobody listens: building a request asks nobody."""

STORE = "postgresql+psycopg://gapless@db.example/progress"


def job_text(folder: Path, partitions: object, base_url: str, store_url: str) -> str:
    document: dict[str, Any] = {
        "version": 1,
        "scope": "orders",
        "domain": {"type": "integer"},
        "source": {
            "type": "http",
            "base_url": base_url,
            "auth": {"type": "bearer", "token": {"env": "ORDERS_TOKEN"}},
            "partitions": partitions,
            "pages": {
                "path": "/partitions/{partition.id}/events",
                "records": "events",
                "next": {"type": "cursor", "from": "next_cursor", "param": "cursor", "end": "null"},
                "tail": "token",
            },
            "event": {"id": "id", "position": "position"},
            "certificate": {
                "page": {
                    "position": "complete_through.position",
                    "inclusive": "complete_through.inclusive",
                }
            },
        },
        "effect": {"type": "parquet", "path": str(folder / "out")},
        "dead_letters": {"type": "parquet", "path": str(folder / "dead")},
        "shared_folder": str(folder),
        "store": {
            "url": store_url,
            "password": {"env": "PROGRESS_PASSWORD"},
        },
    }
    return yaml.safe_dump(document, sort_keys=False)


BY_HTTP: Mapping[str, object] = {"http": {"path": "/partitions", "items": "partitions", "id": "@"}}


def load(folder: Path, partitions: object = BY_HTTP, base_url: str = NOBODY, store_url: str = STORE) -> Job:
    """The job file is written to the folder. Its API is that of `orders_api`."""
    path = folder / "orders.yaml"
    path.write_text(job_text(folder, partitions, base_url, store_url), encoding="utf-8")
    return load_job(path)


def backfill(pipeline: beam.Pipeline, job: Job) -> None:
    """As `gapless backfill` makes it."""
    request = PlanRequest(job.scope, RUN_ID, "DataflowRunner")
    _ = pipeline | "CompleteThrough" >> transform_of(backfill_of(job), request)


def stream(pipeline: beam.Pipeline, job: Job) -> None:
    """As `gapless stream` makes it."""
    request, made = PlanRequest(job.scope, RUN_ID, "DataflowRunner"), stream_of(job)
    _ = pipeline | "CompleteThrough" >> transform_of(made.run, request, made.polling)


def in_the_pipeline(pipeline: beam.Pipeline, job: Job) -> None:
    """Settled by transforms of a user's own."""
    source, store = job.source(), job.store.ref()
    pages = pipeline | PlanPartitions(source, store, RUN_ID) | ReadPages(source, store)
    outcomes = pages | "Write" >> beam.Map(delivered)
    _ = (pages, outcomes) | TrackPartitions(store) | CombineFrontier() | PublishFrontier(store)


def stream_in_the_pipeline(pipeline: beam.Pipeline, job: Job) -> None:
    """Settled by transforms of a user's own, without an end."""
    source, store, polling = job.source().following(), job.store.ref(), Polling()
    planned = pipeline | PlanPartitions(source, store, RUN_ID, polling=polling)
    pages = planned | ReadPages(source, store, polling=polling)
    outcomes = pages | "Write" >> beam.Map(delivered)
    _ = (pages, outcomes) | TrackPartitions(store) | CombineFrontier() | PublishFrontier(store)


JOBS: dict[str, Callable[[beam.Pipeline, Job], None]] = {
    "backfill": backfill,
    "stream": stream,
    "in the pipeline": in_the_pipeline,
    "stream in the pipeline": stream_in_the_pipeline,
}
STREAMING = frozenset({"stream", "stream in the pipeline"})


def request_of(name: str, job: Job, *arguments: str) -> Request:
    return build_request(lambda pipeline: JOBS[name](pipeline, job), *arguments)


def lasting(request: Request) -> dict[str, Any]:
    """What a job that is updated has to keep: steps' names, what elements and state are coded by, what it asks of a runner."""
    components = request.pipeline.components
    coders = set()
    for coder in components.coders.values():
        pickled = coder.spec.urn == "beam:coder:pickled_python:v1"
        coders.add(_class_name(coder.spec.payload) if pickled else coder.spec.urn)
    return {
        "steps": sorted(one.unique_name for one in components.transforms.values() if one.unique_name),
        "coders": sorted(coders),
        "requirements": sorted(request.pipeline.requirements),
    }


def _class_name(payload: bytes) -> str:
    """A coder of a class of its own stands as its name and a pickle: after a length, up to the first dollar."""
    from google.protobuf.wrappers_pb2 import BytesValue

    return "pickled " + BytesValue.FromString(payload).value.partition(b"$")[0].decode()


def main() -> None:
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(lasting(request_of(sys.argv[1], load(Path(folder)))), indent=1))


if __name__ == "__main__":
    main()
