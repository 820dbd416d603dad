"""The same read with dlt, in an environment of its own (`pip install "dlt[parquet]"`). argv: URL FOLDER"""

import sys

import dlt
from dlt.sources.helpers.rest_client import RESTClient
from dlt.sources.helpers.rest_client.paginators import JSONResponseCursorPaginator

base, folder = sys.argv[1:3]
client = RESTClient(
    base,
    paginator=JSONResponseCursorPaginator(cursor_path="next_cursor", cursor_param="cursor"),
    data_selector="events",
)
names = client.get("/partitions").json()["partitions"]


def resource(name):
    @dlt.resource(name=name, table_name="events", parallelized=len(names) > 1)
    def events(position=dlt.sources.incremental("position", initial_value=-1)):  # noqa: B008 - as dlt declares it
        yield from client.paginate(f"/partitions/{name}/events")

    return events()


pipeline = dlt.pipeline(
    "events",
    destination=dlt.destinations.filesystem(bucket_url=f"file://{folder}"),
    dataset_name="events",
    pipelines_dir=f"{folder}/state",
)
pipeline.run([resource(name) for name in names], loader_file_format="parquet")
