"""A good job file, and ways to spoil it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gapless_pipelines.job import InvalidConfiguration, Job, load_job

GOOD = """\
version: 1
scope: orders
domain: {type: integer}
source:
  type: http
  base_url: ${ORDERS_URL}
  auth: {type: bearer, token: {env: ORDERS_TOKEN}}
  headers: {Accept: application/json}
  client:
    timeout: {connect: 10s, read: 60s}
    retry: {attempts: 6, backoff: 500ms, max: 15m, on: [429, 503]}
    connections: 4
  partitions:
    http: {path: /partitions, items: partitions, id: "@", routing_generation: routing_generation}
  pages:
    path: "/partitions/{partition.id}/events"
    params: {limit: 500}
    records: events
    next: {type: cursor, from: next_cursor, param: cursor, end: "null"}
    expired: {status: [410], restart: {param: since}}
  event: {id: id, position: position}
  certificate:
    page: {position: complete_through.position, inclusive: complete_through.inclusive}
range: {start: 0, stop: null}
schema: {amount_cents: int64}
on_drift: hold
effect: {type: parquet, path: out/orders, target_rows: 5000, compression: snappy}
dead_letters: {type: parquet, path: out/orders_dead}
retry: {attempts: 3, backoff: 100ms, max: 2s}
membership: {on_change: hold}
store: {url: "sqlite:///progress.db"}
pipeline_options: {runner: local, direct_num_workers: 2}
stream: {poll: 2s, longest: 20s, look: 1m}
shared_folder: /mnt/shared
"""
ENVIRONMENT = {"ORDERS_URL": "http://127.0.0.1:8080/v1", "LIMIT": "7", "NAME": "orders_2"}


@pytest.fixture
def good() -> str:
    """The text of a job file that uses every key there is."""
    return GOOD


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Job]:
    """Load a text as `job.yaml` of the current folder, which is empty otherwise."""
    monkeypatch.chdir(tmp_path)

    def load_text(text: str) -> Job:
        Path("job.yaml").write_text(text, encoding="utf-8")
        return load_job("job.yaml", ENVIRONMENT)

    return load_text


@pytest.fixture
def spoil(load: Callable[[str], Job], tmp_path: Path) -> Callable[..., list[str]]:
    """Replace one text of the good file by another, and give the findings as they are printed; none may be written."""

    def findings_of(*replacements: tuple[str, str]) -> list[str]:
        text = GOOD
        for old, new in replacements:
            assert text.count(old) == 1, f"{old!r} has to stand in the good file once"
            text = text.replace(old, new)
        with pytest.raises(InvalidConfiguration) as caught:
            load(text)
        assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"], "nothing is written"
        assert caught.value.exit_status == 2
        return str(caught.value).splitlines()

    return findings_of
