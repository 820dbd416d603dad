"""A job over an API that changes, run in this process, and what of it is durable."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from changing_api import ChangingApi, job_text

from gapless.progress import Bound
from gapless.store import open_store
from gapless_pipelines.backfill import Backfill, BackfillResult, run_backfill
from gapless_pipelines.job import load_job


class Changing:
    """`read()` is one run of the job as its file stands."""

    def __init__(self, api: ChangingApi, folder: Path) -> None:
        self.api = api
        self.folder = folder
        self.url = f"sqlite:///{folder / 'progress.db'}"

    def job(self, **options: Any) -> Path:
        path = self.folder / "job.yaml"
        path.write_text(job_text(self.api, **options))
        return path

    def read(self, **options: Any) -> BackfillResult:
        job = load_job(self.job(**options))
        return run_backfill(
            Backfill(
                job.source(),
                job.effect(),
                job.store.ref(),
                job.engine(),
                membership=job.membership(),
                retry=job.retry(),
            )
        )

    def store(self, **options: Any) -> Any:
        return open_store(self.url, **options)

    def frontier(self) -> Bound | None:
        with self.store() as store:
            return store.scope("changing").frontier

    def rows(self, lineage: int | None = None) -> list[str]:
        """The ids in the data set: one for each row."""
        with self.store() as store:
            paths = [row.path for row in store.promotions("changing", lineage)]
        return sorted(
            event
            for path in paths
            for event in pq.read_table(path, columns=["_event_id"])["_event_id"].to_pylist()
        )


@pytest.fixture
def changing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Changing]]:
    monkeypatch.chdir(tmp_path)
    opened: list[ChangingApi] = []

    def make(
        routing: dict[str, dict[str, list[int]]],
        now: int,
        kind: type[ChangingApi] = ChangingApi,
        **options: Any,
    ) -> Changing:
        api = kind(routing, now, **options)
        api.__enter__()
        opened.append(api)
        return Changing(api, tmp_path)

    yield make
    for api in opened:
        api.__exit__()
