"""Readers of a pipeline, on real PostgreSQL: however many read at once, the process keeps to its connections."""

import os
import threading

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from scripted_universe import SCOPE, source_of, universe
from sqlalchemy.engine import make_url

from gapless import CompleteThrough, ParquetEffect, StoreRef
from gapless.store import open_store
from gapless.testing import ScriptedSession, ScriptedSource

ALLOWED = 2
READERS = 8

_met = threading.Barrier(READERS, timeout=60)
"""No reader fetches its first page before all of them are there, each with its chain taken and its store open."""


class TogetherSource(ScriptedSource):
    def open(self):
        return TogetherSession(self)


class TogetherSession(ScriptedSession):
    def fetch(self, partition, page_token):
        if page_token is None:
            _met.wait()
        return super().fetch(partition, page_token)


class Watching(threading.Thread):
    """Asks the server how many connections of that name there are, until it is told to stop; `most` is the highest number."""

    def __init__(self, admin, name):
        super().__init__(daemon=True)
        self._admin, self._name = admin, name
        self.done = threading.Event()
        self.most = 0

    def run(self):
        counted = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        while not self.done.is_set():
            self.most = max(self.most, self._admin.execute(counted, [self._name]).fetchone()[0])


def test_eight_readers_at_once_share_two_connections(tmp_path, postgres_url, postgres_admin):
    name = f"gapless-readers-{os.getpid()}"
    url = make_url(postgres_url).update_query_dict({"application_name": name}).render_as_string()
    there = universe(partitions=READERS)
    transform = CompleteThrough(
        source_of(there, kind=TogetherSource),
        ParquetEffect(str(tmp_path / "out"), target_rows=5),
        StoreRef(url, connections=ALLOWED),
    )
    options = PipelineOptions([f"--direct_num_workers={READERS}", "--direct_running_mode=in_memory"])
    watching = Watching(postgres_admin, name)
    watching.start()
    try:
        with beam.Pipeline(FnApiRunner(), options=options) as pipeline:
            _ = pipeline | transform
    finally:
        watching.done.set()
        watching.join(20)
    assert 1 <= watching.most <= ALLOWED
    with open_store(postgres_url, readonly=True) as store:
        snapshot = store.snapshot(SCOPE)
    assert snapshot.totals.events == sum(map(len, there.values()))
    assert snapshot.run.state == "finished"


pytestmark = pytest.mark.postgres
