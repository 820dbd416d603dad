"""One pipeline over the API of event_api.py, as a user writes it; a program of its own, measured by engines.py.

    python benchmarks/pipeline_program.py URL STORE in_place|page|event [Beam's options]

`in_place` writes Parquet files beside a SQLite store; `page` and `event` settle in the pipeline through a transform that does
nothing but say so, with one outcome for each page or for each event. Prints the events that are durable.
"""

import sys
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

import gapless
from gapless import HttpSource, Progress


def source_of(url: str) -> HttpSource:
    return HttpSource(
        scope="orders",
        domain={"type": "integer"},
        range={"start": 0},
        base_url=url,
        partitions={
            "http": {
                "path": "/partitions",
                "items": "partitions",
                "id": "@",
                "routing_generation": "routing_generation",
            }
        },
        pages={
            "path": "/partitions/{partition.id}/events",
            "records": "events",
            "next": {"type": "cursor", "from": "next_cursor", "param": "cursor", "end": "null"},
        },
        event={"id": "id", "position": "position"},
        certificate={
            "page": {"position": "complete_through.position", "inclusive": "complete_through.inclusive"}
        },
    )


def by_page(page: gapless.EmittedPage) -> Iterator[gapless.Outcome]:
    """One outcome for the whole page."""
    yield gapless.delivered(page)


def by_event(page: gapless.EmittedPage) -> Iterator[gapless.Outcome]:
    """One outcome for each event."""
    for event in page.events:
        yield gapless.delivered(page, [event.id])


def main(url: str, store: str, way: str, options: list[str]) -> None:
    source = source_of(url)
    with beam.Pipeline(options=PipelineOptions(options)) as p:
        if way == "in_place":
            folder = store.removeprefix("sqlite:///").rpartition("/")[0]
            _ = p | gapless.CompleteThrough(source, gapless.ParquetEffect(f"{folder}/out"), store)
        else:
            pages = p | gapless.PlanPartitions(source, store) | gapless.ReadPages(source, store)
            settle = by_page if way == "page" else by_event
            outcomes = pages | beam.FlatMap(settle).with_output_types(gapless.Outcome)
            _ = (
                (pages, outcomes)
                | gapless.TrackPartitions(store)
                | gapless.CombineFrontier()
                | gapless.PublishFrontier(store)
            )
    with Progress(store) as progress:
        print(progress.scope("orders").status()["counts"]["events"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
