"""Entry points as real processes against a local engine: what they submit, and that a bad word submits and writes nothing."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from message_tables import installed, run
from orders_api import TOKEN, orders_api
from template_process import Ended, readme_job, start

from gapless import Progress
from gapless_pipelines.flex_templates.launching import launch

MESSAGES = """version: 1
delivery:
  url: sqlite:///app.db
  table: conversations
  columns: {id: id, shard: channel_key, status: status}
  terminal: [delivered, failed]
  ids: autoincrement
  trigger: {rows: 1}
  effect: {type: python, callable: "notes:note"}
"""
NOTES = """def note(shard, start, end, rows):
    with open("notes.txt", "a") as file:
        file.write(f"{shard} {start} {end} {rows}\\n")
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with the job file of the README, and the environment in which it can be read."""
    (tmp_path / "orders.yaml").write_text(readme_job("orders.yaml"), encoding="utf-8")
    with orders_api() as url:
        yield tmp_path, {"ORDERS_TOKEN": TOKEN, "ORDERS_URL": url}


@pytest.fixture
def here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """The same within this process: for what is refused or only checked before anything runs."""
    monkeypatch.chdir(tmp_path)

    def launch_here(template: str, *words: str, environment: dict[str, str] | None = None) -> Ended:
        status = launch(template, words, environment or {})
        shown = capsys.readouterr()
        return Ended(status, json.loads(shown.out) if shown.out else None, shown.err.splitlines())

    return launch_here


def refused(ended: Ended, *told: str) -> None:
    assert (ended.status, ended.document) == (2, None)
    assert len(ended.told) == len(told), ended.told
    for line, part in zip(ended.told, told, strict=True):
        assert part in line


def test_a_backfill_is_submitted_and_reads_everything(site: tuple[Path, dict[str, str]]) -> None:
    folder, environment = site
    url = environment.pop("ORDERS_URL")
    variables = json.dumps({"ORDERS_URL": url})
    ended = start(
        "backfill",
        f"--job_file={folder / 'orders.yaml'}",
        f"--variables={variables}",
        folder=folder,
        environment=environment,
    )
    assert ended.status == 0, ended.told
    assert ended.told == ["orders: submitted to local"]
    assert ended.document == {
        "format": 1,
        "template": "backfill",
        "about": "orders",
        "engine": "local",
        "state": "DONE",
        "job": None,
        "graph": None,
    }
    with Progress(f"sqlite:///{folder / 'progress.db'}") as progress:
        orders = progress.scope("orders")
        assert orders.frontier is not None
        assert (orders.frontier.position, orders.frontier.inclusive) == ("400", False)
        assert sum(file.rows for file in orders.files()) == 400


def test_a_delivery_hands_on_what_is_newly_covered(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    installed(engine)
    for status in ("delivered", "failed", "pending", "delivered"):
        run(engine, "INSERT INTO conversations (channel_key, status) VALUES ('a', :status)", status=status)
    engine.dispose()
    (tmp_path / "messages.yaml").write_text(MESSAGES, encoding="utf-8")
    (tmp_path / "notes.py").write_text(NOTES, encoding="utf-8")
    ended = start("delivery", f"--job_file={tmp_path / 'messages.yaml'}", folder=tmp_path)
    assert ended.status == 0, ended.told
    assert ended.document["about"] == "conversations"
    assert (tmp_path / "notes.txt").read_text() == "a 0 2 2\n"


@pytest.mark.parametrize(
    ("template", "word", "told"),
    [
        ("backfill", "--check_only=perhaps", "parameters: check_only: cannot be `perhaps`"),
        ("stream", "--job_nmae=x", "--job_nmae: is no option of Beam's; did you mean `--job_name`?"),
    ],
)
def test_a_process_ends_by_a_bad_word_and_nothing_is_written(
    site: tuple[Path, dict[str, str]], template: str, word: str, told: str
) -> None:
    folder, environment = site
    words = [f"--job_file={folder / 'orders.yaml'}", word]
    refused(start(template, *words, folder=folder, environment=environment), told)
    assert [entry.name for entry in folder.iterdir()] == ["orders.yaml"]


def test_only_checking_submits_and_writes_nothing(
    site: tuple[Path, dict[str, str]], here: Callable[..., Ended]
) -> None:
    folder, environment = site
    ended = here(
        "backfill",
        f"--job_file={folder / 'orders.yaml'}",
        "--check_only=true",
        environment=environment,
    )
    assert (ended.status, ended.document["state"]) == (0, "checked")
    assert [entry.name for entry in folder.iterdir()] == ["orders.yaml"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], ["parameters: job_file: is missing"]),
        (["--job_file=orders.yaml"], ["parameters: job_file: cannot be `orders.yaml`"]),
        (["--job_file={folder}/none.yaml"], ["none.yaml: (top level): cannot be read: FileNotFoundError"]),
        (["--job_file={job}", "--check_only=perhaps"], ["parameters: check_only: cannot be `perhaps`"]),
        (["--job_file={job}", "--variables=x"], ["parameters: variables: cannot be this text"]),
        (["--job_file={job}", "--shared_folder=x"], ["parameters: shared_folder: cannot be `x`"]),
        (["--job_file={job}", "--sdk_container_image=x"], ["parameters: sdk_container_image: cannot be `x`"]),
        (
            ["--job_file={job}", "--job_nmae=x"],
            ["--job_nmae: is no option of Beam's; did you mean `--job_name`?"],
        ),
        (["--job_file={job}", "--runner=DaskRunner"], ["DaskRunner has neither state nor splittable DoFns"]),
        (
            ["--job_file={job}", "--runner=DataflowRunner"],
            ["--runner: DataflowRunner may run workers on other machines, where a SQLite file is not"],
        ),
        (
            ["--job_file={job}", "--environment_type=EXTERNAL", "--environment_config=localhost:1"],
            ["EXTERNAL may put workers on other machines, where a SQLite file is not"],
        ),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_a_bad_word_is_one_clear_error_and_nothing_is_written(
    site: tuple[Path, dict[str, str]],
    words: list[str],
    told: list[str],
    here: Callable[..., Ended],
) -> None:
    folder, environment = site
    given = [word.format(folder=folder, job=folder / "orders.yaml") for word in words]
    refused(here("backfill", *given, environment=environment), *told)
    assert [entry.name for entry in folder.iterdir()] == ["orders.yaml"]


def test_a_bad_job_file_is_told_by_its_lines(
    site: tuple[Path, dict[str, str]], here: Callable[..., Ended]
) -> None:
    folder, environment = site
    job = folder / "orders.yaml"
    job.write_text(job.read_text().replace("records: events", "record: events"), encoding="utf-8")
    del environment["ORDERS_URL"]
    ended = here("backfill", f"--job_file={job}", environment=environment)
    assert (ended.status, ended.document) == (2, None)
    assert all(line.startswith(f"{job}:") for line in ended.told)
    assert any("ORDERS_URL is not set" in line for line in ended.told)
    assert any("source.pages.record:" in line for line in ended.told)
    assert [entry.name for entry in folder.iterdir()] == ["orders.yaml"]


def test_each_template_refuses_the_other_kind_of_job(tmp_path: Path, here: Callable[..., Ended]) -> None:
    (tmp_path / "messages.yaml").write_text(MESSAGES, encoding="utf-8")
    refused(
        here("backfill", f"--job_file={tmp_path / 'messages.yaml'}"),
        "messages.yaml:2: delivery: is about a message log",
    )
    (tmp_path / "orders.yaml").write_text(readme_job("orders.yaml"), encoding="utf-8")
    ended = here("delivery", f"--job_file={tmp_path / 'orders.yaml'}")
    assert ended.status == 2
    assert any("source: is a job about the pages of a source" in line for line in ended.told)


def test_an_effect_that_is_not_there_is_told_before_anything_is_handed_on(
    tmp_path: Path, here: Callable[..., Ended]
) -> None:
    (tmp_path / "messages.yaml").write_text(MESSAGES, encoding="utf-8")
    refused(
        here("delivery", f"--job_file={tmp_path / 'messages.yaml'}"),
        "delivery.effect.callable: module notes cannot be imported",
    )
    assert not (tmp_path / "app.db").exists()
