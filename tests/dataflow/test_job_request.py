"""The request by which a job goes to Dataflow, built by Beam's own runner: which kind of job, how large, under which names."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from dataflow_jobs import JOBS, STREAMING, lasting, load, request_of
from dataflow_request import ARGUMENTS, LIMIT, NotSent, nothing_is_sent
from orders_api import ORDERS, TOKEN, orders_api

from gapless.store import open_store
from gapless_pipelines.backfill import run_backfill
from gapless_pipelines.cli.backfill_command import backfill_of
from gapless_pipelines.cli.stream_command import stream_of
from gapless_pipelines.stream import run_stream

GOLDEN = Path(__file__).parent / "golden"
PROGRAM = Path(__file__).parents[1] / "support" / "dataflow_jobs.py"
SPLITTABLE = "beam:requirement:pardo:splittable_dofn:v1"

every_job = pytest.mark.parametrize("name", JOBS)


@every_job
def test_a_batch_stays_a_batch_and_a_stream_streams_without_being_told(built, name):
    request = built(name)
    kind = "JOB_TYPE_STREAMING" if name in STREAMING else "JOB_TYPE_BATCH"
    assert request.kind == kind
    assert SPLITTABLE in request.pipeline.requirements
    bounded = {str(one.is_bounded) for one in request.pipeline.components.pcollections.values()}
    assert (len(bounded) > 1) == (name in STREAMING), "an unbounded collection makes the whole job a stream"


@every_job
def test_the_names_of_steps_differ_and_are_the_same_at_each_submission(built, submitted, name):
    first, second = built(name), submitted(name)
    repeated = [step for step, times in Counter(first.step_names).items() if times > 1]
    assert repeated == []
    assert lasting(first) == lasting(second)


@every_job
def test_another_process_makes_the_same_names(built, name):
    there = subprocess.run(
        [sys.executable, str(PROGRAM), name],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(there.stdout) == lasting(built(name))


@every_job
def test_names_coders_and_requirements_are_those_that_running_jobs_have(built, name):
    """A streaming job is updated in place only where they are. After a change that is meant, and is noted in CHANGELOG.md
    under "State format", write them anew:

        python tests/support/dataflow_jobs.py "NAME" > "tests/dataflow/golden/NAME.json"
    """
    kept = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert lasting(built(name)) == kept


def test_there_is_no_golden_file_of_a_job_that_is_gone():
    assert {path.stem for path in GOLDEN.iterdir()} == set(JOBS)


@every_job
def test_the_list_of_partitions_is_read_by_a_worker_and_is_no_part_of_the_request(built, name):
    """Nobody listens at the job's address: a launcher that asked for the list would fail."""
    assert built(name).size < LIMIT / 50


@every_job
def test_ten_thousand_partitions_in_the_job_file_stay_far_below_the_limit(tmp_path, monkeypatch, name):
    monkeypatch.setenv("ORDERS_TOKEN", "set")
    job = load(
        tmp_path, {"list": [f"warehouse-{number:05}-{number * 7919 % 10007:05}" for number in range(10_000)]}
    )
    assert request_of(name, job).size < LIMIT / 10


@every_job
def test_workers_start_from_the_image_that_was_given(built, name):
    request = built(name)
    (environment,) = request.pipeline.components.environments.values()
    assert b"europe-docker.pkg.dev/project-1/gapless/gapless:1" in environment.payload


def run_the_backfill(job):
    run_backfill(backfill_of(job, ARGUMENTS))


def run_the_stream(job):
    run_stream(stream_of(job, ARGUMENTS))


@pytest.mark.postgres
@pytest.mark.parametrize(("name", "run"), [("backfill", run_the_backfill), ("stream", run_the_stream)])
def test_what_the_command_runs_sends_this_request(tmp_path, postgres_url, monkeypatch, name, run):
    """`gapless backfill JOB -- --runner=DataflowRunner ...`, up to the moment it would be sent; then the run has failed."""
    monkeypatch.setenv("ORDERS_TOKEN", TOKEN)
    monkeypatch.setenv("PROGRESS_PASSWORD", os.environ.get("PGPASSWORD", "not asked for"))
    with orders_api() as url, nothing_is_sent():
        job = load(tmp_path, base_url=url, store_url=postgres_url)
        with pytest.raises(NotSent) as built:
            run(job)
    request = built.value.request
    assert (request.kind == "JOB_TYPE_STREAMING") == (name in STREAMING)
    assert lasting(request) == json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    with open_store(postgres_url, readonly=True) as store:
        snapshot = store.snapshot(job.scope)
    assert (snapshot.run.engine, snapshot.run.state) == ("DataflowRunner", "failed")
    assert {row.partition for row in snapshot.chains} == set(ORDERS)
