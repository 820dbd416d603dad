"""The job file that the demo runs: what a user of the flights API would write."""

from pathlib import Path

from gapless_pipelines.demo.flights import YEAR_START, YEAR_STOP

FILE_NAME = "flights.yaml"
SCOPE = "departures-2013"
STORE = "progress.db"
TARGET_ROWS = 10_000

_JOB = f"""\
# Every departure of 2013 from New York's three airports, to Parquet.
version: 1
scope: {SCOPE}
domain: {{type: timestamp, precision: s, read: rfc3339}}
source:
  type: http
  base_url: %(url)s
  client:
    retry: {{attempts: 6, backoff: 100ms}}
  partitions:
    http: {{path: /airports, items: airports, id: "@", routing_generation: routing_generation}}
  pages:
    path: "/airports/{{partition.id}}/departures"
    records: departures
    next: {{type: cursor, from: next, param: cursor, end: "null"}}
    expired: {{status: [410], restart: {{param: since}}}}
  event: {{id: id, position: scheduled}}
  certificate:
    page: {{position: complete_through.position, inclusive: complete_through.inclusive}}
range: {{start: "{YEAR_START}", stop: "{YEAR_STOP}"}}      # 2013 in New York
schema: {{dep_delay: int64}}
on_drift: hold
effect: {{type: parquet, path: departures, target_rows: {TARGET_ROWS}}}
store: {{url: "sqlite:///{STORE}"}}
"""


def write_job_file(folder: Path, url: str) -> Path:
    """Write the job for the API at `url`; paths in it are relative to `folder`."""
    path = folder / FILE_NAME
    path.write_text(_JOB % {"url": url}, encoding="utf-8")
    return path
