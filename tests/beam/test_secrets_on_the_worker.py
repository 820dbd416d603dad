"""Secrets stand where the workers are: the process that builds the graph has none, the one that runs it finds them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dataflow_jobs import load
from graph_process import written
from orders_api import ORDERS, TOKEN, orders_api

from gapless import CompleteThrough
from gapless.store import open_store

WORKER = Path(__file__).parents[1] / "support" / "graph_process.py"
PASSWORD = os.environ.get("PGPASSWORD", "a-password-of-the-worker")
NAMES = ("ORDERS_TOKEN", "PROGRESS_PASSWORD")

pytestmark = pytest.mark.postgres


@pytest.fixture
def graph(tmp_path, postgres_url, monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    with orders_api() as url:
        job = load(tmp_path, base_url=url, store_url=postgres_url)
        transform = CompleteThrough(job.source(), job.effect(), job.store.ref())
        yield written(transform, tmp_path / "graph")


def worked(graph, **secrets):
    done = subprocess.run(
        [sys.executable, str(WORKER), str(graph)],
        env={**os.environ, **secrets},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    for value in secrets.values():
        assert value not in done.stdout + done.stderr
    return done


def test_a_worker_that_has_the_secrets_needs_nothing_but_the_graph(graph, postgres_url):
    done = worked(graph, ORDERS_TOKEN=TOKEN, PROGRESS_PASSWORD=PASSWORD)
    assert done.returncode == 0, done.stderr
    assert TOKEN.encode() not in graph.read_bytes()
    with open_store(postgres_url, readonly=True) as store:
        snapshot = store.snapshot("orders")
    assert snapshot.totals.events == sum(map(len, ORDERS.values()))
    assert snapshot.run.state == "finished", "the pipeline itself has ended its run"


@pytest.mark.parametrize("absent", NAMES)
def test_a_worker_without_one_says_which(graph, postgres_url, absent):
    secrets = {"ORDERS_TOKEN": TOKEN, "PROGRESS_PASSWORD": PASSWORD}
    del secrets[absent]
    done = worked(graph, **secrets)
    assert done.returncode != 0
    assert absent in done.stderr
    assert "ConfigurationError" in done.stderr
