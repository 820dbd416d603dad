"""The examples of Beam YAML, run by Beam's own YAML runner as processes, and what the transforms refuse."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import sqlalchemy as sa
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.yaml import yaml_provider
from message_tables import installed, run
from orders_api import TOKEN, orders_api
from template_process import STRICT, TEMPLATES, readme_job

from gapless.errors import ConfigurationError
from gapless_pipelines.beam_yaml import DeliveryFrontier, ReadComplete
from gapless_pipelines.beam_yaml.yaml_job import error_output, yaml_document
from gapless_pipelines.findings import InvalidConfiguration

EXAMPLES = TEMPLATES / "yaml"
MESSAGES = {
    "version": 1,
    "delivery": {
        "url": "sqlite:///app.db",
        "table": "conversations",
        "columns": {"id": "id", "shard": "channel_key", "status": "status"},
        "terminal": ["delivered", "failed"],
        "ids": "autoincrement",
        "trigger": {"rows": 1},
        "effect": {"type": "python", "callable": "notes:note"},
    },
}
NOTES = """def note(shard, start, end, rows):
    if shard == "b":
        raise ValueError("no notes about b")
"""


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment in which the README's orders can be read."""
    with orders_api() as url:
        yield {"ORDERS_TOKEN": TOKEN, "ORDERS_URL": url}


def run_example(name: str, folder: Path, environment: dict[str, str], *words: str) -> str:
    """Run it in `folder` with warnings as errors; what was logged."""
    ended = subprocess.run(
        [
            *(sys.executable, *STRICT, "-m", "apache_beam.yaml.main"),
            *(f"--yaml_pipeline_file={EXAMPLES / name}", "--runner=FnApiRunner", *words),
        ],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stderr


def written(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows that a pipeline wrote as JSON lines; none where it wrote no file."""
    rows = []
    for file in sorted((folder / "out").glob(f"{name}.json*")):
        rows += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return rows


def test_orders_are_read_and_their_frontier_written(tmp_path: Path, orders: dict[str, str]) -> None:
    (tmp_path / "orders.yaml").write_text(readme_job("orders.yaml"), encoding="utf-8")
    run_example("read_complete.yaml", tmp_path, orders)
    assert written(tmp_path, "frontier")[-1] == {
        "scope": "orders",
        "lineage": 1,
        "membership_epoch": 1,
        "basis": "certified",
        "withheld": None,
        "position": "400",
        "inclusive": False,
        "after": "0",
        "after_inclusive": False,
        "blockers": "[]",
    }
    assert written(tmp_path, "given_up") == []


def test_an_event_that_is_given_up_comes_out_of_the_error_output(
    tmp_path: Path, orders: dict[str, str]
) -> None:
    job = readme_job("orders.yaml") + "dead_letters: {type: parquet, path: out/dead}\non_drift: hold\n"
    # The largest amounts are wider than this type.
    job = job.replace("effect:", "schema: {amount_cents: int16}\nretry: {attempts: 1}\neffect:")
    (tmp_path / "orders.yaml").write_text(job, encoding="utf-8")
    run_example("read_complete.yaml", tmp_path, orders)
    given_up = written(tmp_path, "given_up")
    assert {row["event"] for row in given_up} == {f"o-{at}" for at in range(328, 400)}
    assert all(set(row) == {"event", "at", "why"} and row["event"] == f"o-{row['at']}" for row in given_up)
    assert written(tmp_path, "frontier")[-1]["position"] == "400"


def test_a_job_may_stand_in_the_pipeline(tmp_path: Path, orders: dict[str, str]) -> None:
    url = orders.pop("ORDERS_URL")
    run_example("inline_job.yaml", tmp_path, orders, f"--jinja_variables={json.dumps({'orders_url': url})}")
    last = {row["partition"]: row for row in written(tmp_path, "progress")}
    assert {name: (row["state"], row["events"], row["position"]) for name, row in last.items()} == {
        "eu": ("ended", 200, "400"),
        "us": ("ended", 200, "400"),
    }


def test_messages_are_handed_on_and_a_failing_shard_comes_out_of_the_error_output(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    installed(engine)
    for shard, status in [("a", "delivered"), ("b", "failed"), ("a", "delivered"), ("a", "pending")]:
        run(
            engine,
            "INSERT INTO conversations (channel_key, status) VALUES (:shard, :status)",
            shard=shard,
            status=status,
        )
    engine.dispose()
    (tmp_path / "messages.yaml").write_text(json.dumps(MESSAGES), encoding="utf-8")
    (tmp_path / "notes.py").write_text(NOTES, encoding="utf-8")
    run_example("delivery_frontier.yaml", tmp_path, {})
    assert written(tmp_path, "covered") == [{"shard": "a", "after": "0", "through": "3", "rows": 2}]
    (failed,) = written(tmp_path, "failed")
    assert (failed["shard"], failed["after"], failed["through"]) == ("b", "0", "2")
    assert "no notes about b" in failed["error"]
    shards = {row["shard"]: row for row in written(tmp_path, "shards")}
    assert (shards["a"]["coverage"], shards["a"]["through"]) == ("3", "3")
    assert (shards["a"]["blocker"], shards["a"]["blocker_id"]) == ("non_terminal", "4")
    assert (shards["b"]["coverage"], shards["b"]["through"]) == ("0", "2")


def test_every_example_takes_the_providers_of_this_folder() -> None:
    names = {"read_complete.yaml", "inline_job.yaml", "delivery_frontier.yaml"}
    assert {file.name for file in EXAMPLES.glob("*.yaml")} == {*names, "providers.yaml"}
    for name in names:
        assert "- include: providers.yaml" in (EXAMPLES / name).read_text(encoding="utf-8")


def test_without_handing_on_only_the_frontier_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    installed(engine)
    run(engine, "INSERT INTO conversations (channel_key, status) VALUES ('a', 'delivered')")
    engine.dispose()
    monkeypatch.chdir(tmp_path)
    seen = tmp_path / "seen"
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        outputs = pipeline | DeliveryFrontier(MESSAGES)
        assert set(outputs) == {"shards", "table"}
        _ = outputs["shards"] | "S" >> beam.Map(lambda row: (seen / "shards").write_text(str(row)))
        _ = outputs["table"] | "T" >> beam.Map(lambda row: (seen / "table").write_text(str(row)))
        seen.mkdir()
    assert "coverage='0'" in (seen / "shards").read_text()
    assert "through='1'" in (seen / "table").read_text()


def test_a_job_that_cannot_be_meant_so_is_refused_when_the_pipeline_is_built() -> None:
    with pytest.raises(InvalidConfiguration, match="job in the pipeline:1: source: "):
        ReadComplete({"version": 1, "scope": "orders", "domain": {"type": "integer"}, "source": 7})
    with pytest.raises(InvalidConfiguration, match="is neither a path nor a job"):
        yaml_document(7)
    with pytest.raises(InvalidConfiguration, match="is no mapping of texts"):
        yaml_document({}, {"PORT": 8080})
    with pytest.raises(ConfigurationError, match="error_handling names no output"):
        error_output({"outputs": "x"}, "held")


def test_workers_elsewhere_are_refused_a_file_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.yaml").write_text(readme_job("orders.yaml"), encoding="utf-8")
    elsewhere = PipelineOptions(["--runner=FlinkRunner"])
    with pytest.raises(InvalidConfiguration, match="where a SQLite file is not"):
        _ = beam.Pipeline(options=elsewhere) | ReadComplete(
            "orders.yaml", {"ORDERS_URL": "http://127.0.0.1:1"}
        )
    job = readme_job("orders.yaml").replace("sqlite:///progress.db", "postgresql://db.internal/progress")
    (tmp_path / "orders.yaml").write_text(job, encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="a folder of each worker's own"):
        _ = beam.Pipeline(options=elsewhere) | ReadComplete(
            "orders.yaml", {"ORDERS_URL": "http://127.0.0.1:1"}
        )


def test_the_providers_are_those_two() -> None:
    found = list(yaml_provider.load_providers(str(EXAMPLES / "providers.yaml")))
    assert {name for provider in found for name in provider.provided_transforms()} == {
        *("ReadComplete", "DeliveryFrontier"),
    }
