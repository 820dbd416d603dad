"""What goes to Dataflow and what is said of it, without a network: the request itself is another test's."""

import io
import json
from typing import Any, NoReturn

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions, StandardOptions, WorkerOptions
from template_process import readme_job

from gapless_pipelines import job_text
from gapless_pipelines.flex_templates.launching import launch

JOB = "gs://bucket/jobs/orders.yaml"
CLOUD = [
    "--runner=DataflowRunner",
    "--project=my-project",
    "--region=europe-west1",
    "--temp_location=gs://bucket/tmp",
]
IMAGE = "--sdk_container_image=europe-west1-docker.pkg.dev/my-project/gapless/backfill:1"
SHARED = "--shared_folder=/mnt/shared"
ENVIRONMENT = {"ORDERS_URL": "https://orders.example"}
MESSAGES = """version: 1
delivery:
  url: postgresql+psycopg://app@db.internal/app
  password: {env: APP_PASSWORD}
  table: conversations
  columns: {id: id, shard: channel_key, status: status}
  terminal: [delivered, failed]
  ids: identity
  effect: {type: python, callable: "operator:index"}
"""


def orders_in_the_cloud() -> str:
    text = readme_job("orders.yaml").replace("path: out/orders", "path: /mnt/shared/orders")
    return text.replace('"sqlite:///progress.db"', '"postgresql+psycopg://gapless@db.internal/progress"')


class _Submitted:
    """A job of Dataflow's; waiting for it is an error."""

    def job_id(self) -> str:
        return "2026-11-30_12_00_00-123"

    def wait_until_finish(self) -> NoReturn:
        raise AssertionError("a launch returns without waiting")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Object storage: text by its address."""
    stored: dict[str, bytes] = {}

    def open_file(path: str, **how: Any) -> io.BytesIO:
        if path not in stored:
            raise FileNotFoundError(f"no object {path}\nand more lines")
        return io.BytesIO(stored[path])

    monkeypatch.setattr(job_text.FileSystems, "open", staticmethod(open_file))
    return stored


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[beam.Pipeline]:
    """The pipelines that were submitted."""
    pipelines: list[beam.Pipeline] = []

    def submit(self: beam.Pipeline, *ignored: Any) -> _Submitted:
        pipelines.append(self)
        return _Submitted()

    monkeypatch.setattr(beam.Pipeline, "run", submit)
    # Asks Cloud Storage about the buckets.
    monkeypatch.setattr(GoogleCloudOptions, "_warn_if_soft_delete_policy_enabled", lambda *given: None)
    return pipelines


def test_a_job_of_dataflow_is_named_with_its_console(
    files: dict[str, bytes], submitted: list[beam.Pipeline], capsys: pytest.CaptureFixture[str]
) -> None:
    files[JOB] = orders_in_the_cloud().encode()
    words = [f"--job_file={JOB}", SHARED, IMAGE, *CLOUD, "--job_name=orders-backfill", "--max_num_workers=3"]
    assert launch("backfill", words, ENVIRONMENT) == 0
    told = capsys.readouterr()
    console = "https://console.cloud.google.com/dataflow/jobs/europe-west1/2026-11-30_12_00_00-123?project=my-project"
    assert json.loads(told.out) == {
        "format": 1,
        "template": "backfill",
        "about": "orders",
        "engine": "DataflowRunner",
        "state": "submitted",
        "graph": None,
        "job": {
            "id": "2026-11-30_12_00_00-123",
            "name": "orders-backfill",
            "project": "my-project",
            "region": "europe-west1",
            "console": console,
        },
    }
    assert told.err == f"orders: submitted to DataflowRunner, {console}\n"
    (pipeline,) = submitted
    assert pipeline.options.view_as(WorkerOptions).sdk_container_image == IMAGE.partition("=")[2]
    assert pipeline.options.view_as(WorkerOptions).max_num_workers == 3
    assert not pipeline.options.view_as(StandardOptions).streaming


def test_where_the_launcher_wants_the_graph_it_is_put_and_no_job_is_named(
    files: dict[str, bytes], submitted: list[beam.Pipeline], capsys: pytest.CaptureFixture[str]
) -> None:
    files[JOB] = orders_in_the_cloud().encode()
    words = [f"--job_file={JOB}", SHARED, IMAGE, *CLOUD, "--template_location=gs://staging/job_object"]
    assert launch("backfill", words, ENVIRONMENT) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["state"], document["job"], document["graph"]) == (
        "built",
        None,
        "gs://staging/job_object",
    )
    (pipeline,) = submitted
    assert pipeline.options.view_as(GoogleCloudOptions).template_location == "gs://staging/job_object"


def test_a_stream_is_submitted_as_one_and_a_batch_never(
    files: dict[str, bytes], submitted: list[beam.Pipeline], capsys: pytest.CaptureFixture[str]
) -> None:
    files[JOB] = orders_in_the_cloud().replace('end: "null"}', 'end: "null"}\n    tail: last_page').encode()
    words = [f"--job_file={JOB}", SHARED, IMAGE, *CLOUD]
    assert launch("stream", words, ENVIRONMENT) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "submitted"
    (pipeline,) = submitted
    assert pipeline.options.view_as(StandardOptions).streaming
    assert launch("backfill", [*words, "--streaming"], ENVIRONMENT) == 2
    assert capsys.readouterr().err.startswith("command line: --streaming: is not for a backfill")
    assert len(submitted) == 1


@pytest.mark.parametrize("runner", ["local", "DirectRunner"])
def test_a_stream_is_refused_on_an_engine_that_never_rests(
    files: dict[str, bytes], submitted: list[beam.Pipeline], capsys: pytest.CaptureFixture[str], runner: str
) -> None:
    files[JOB] = orders_in_the_cloud().replace('end: "null"}', 'end: "null"}\n    tail: last_page').encode()
    assert launch("stream", [f"--job_file={JOB}", f"--runner={runner}"], ENVIRONMENT) == 2
    assert "polls without a pause" in capsys.readouterr().err
    assert submitted == []


def test_a_stream_without_a_tail_is_refused(
    files: dict[str, bytes], submitted: list[beam.Pipeline], capsys: pytest.CaptureFixture[str]
) -> None:
    files[JOB] = orders_in_the_cloud().encode()
    assert launch("stream", [f"--job_file={JOB}", SHARED, IMAGE, *CLOUD], ENVIRONMENT) == 2
    assert "tail" in capsys.readouterr().err
    assert submitted == []


def test_a_delivery_goes_to_dataflow_without_its_password(
    files: dict[str, bytes],
    submitted: list[beam.Pipeline],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("APP_PASSWORD", "a-secret-of-the-launcher")
    files[JOB] = MESSAGES.encode()
    assert launch("delivery", [f"--job_file={JOB}", IMAGE, *CLOUD], {}) == 0
    assert json.loads(capsys.readouterr().out)["about"] == "conversations"
    (pipeline,) = submitted
    assert b"a-secret-of-the-launcher" not in pipeline.to_runner_api().SerializeToString()


@pytest.mark.parametrize(
    ("without", "told"),
    [
        (SHARED, "`/mnt/shared/orders` would be a folder of each worker's own, and its files lost with it"),
        (
            IMAGE,
            "sdk_container_image: is missing: Beam's own image for workers holds no gapless",
        ),
    ],
)
def test_what_the_workers_need_is_asked_for_before_a_job_is_submitted(
    files: dict[str, bytes],
    submitted: list[beam.Pipeline],
    capsys: pytest.CaptureFixture[str],
    without: str,
    told: str,
) -> None:
    files[JOB] = orders_in_the_cloud().encode()
    words = [word for word in (f"--job_file={JOB}", SHARED, IMAGE, *CLOUD) if word != without]
    assert launch("backfill", words, ENVIRONMENT) == 2
    shown = capsys.readouterr()
    assert told in shown.err
    assert (shown.out, submitted) == ("", [])


def test_the_image_of_the_launcher_is_that_of_the_workers_where_it_knows_its_name(
    files: dict[str, bytes], submitted: list[beam.Pipeline]
) -> None:
    files[JOB] = orders_in_the_cloud().encode()
    environment = {**ENVIRONMENT, "GAPLESS_TEMPLATE_IMAGE": "registry.example/gapless/backfill:1"}
    assert launch("backfill", [f"--job_file={JOB}", SHARED, *CLOUD], environment) == 0
    (pipeline,) = submitted
    assert (
        pipeline.options.view_as(WorkerOptions).sdk_container_image == "registry.example/gapless/backfill:1"
    )


def test_relative_paths_of_a_job_file_in_object_storage_are_refused(
    files: dict[str, bytes], submitted: list[beam.Pipeline], capsys: pytest.CaptureFixture[str]
) -> None:
    files[JOB] = readme_job("orders.yaml").encode()
    assert launch("backfill", [f"--job_file={JOB}"], ENVIRONMENT) == 2
    told = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in told] == ["effect.path", "store.url"]
    assert all(line.startswith(f"{JOB}:") for line in told)
    assert submitted == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, f"{JOB}: (top level): cannot be read: FileNotFoundError: no object {JOB}; a job file"),
        (b"\xff\xfe", f"{JOB}: (top level): is not UTF-8"),
        (b"", f"{JOB}:1: (top level): is empty"),
        (b"a: [", f"{JOB}:1"),
    ],
)
def test_an_object_that_is_no_job_file_is_one_error(
    files: dict[str, bytes],
    submitted: list[beam.Pipeline],
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
    told: str,
) -> None:
    if content is not None:
        files[JOB] = content
    assert launch("backfill", [f"--job_file={JOB}"], ENVIRONMENT) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(told)
    assert submitted == []
