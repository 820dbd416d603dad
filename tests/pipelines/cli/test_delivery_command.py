"""`gapless delivery`, on a real database in a folder of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, mark, run
from sqlalchemy.engine import Engine

JOB = """\
version: 1
delivery:
  url: sqlite:///app.db
  table: conversations
  columns: {id: id, shard: channel_key, status: status}
  terminal: [delivered, failed]
  ids: autoincrement
  trigger: {rows: 2, poll: 50ms}
  effect: {type: python, callable: "summaries_of_the_test:summarise"}
"""
EFFECT = """\
import json, pathlib
def summarise(shard, start, end, rows):
    if pathlib.Path("broken").exists():
        raise ValueError("no model today")
    with open("summaries.jsonl", "a") as file:
        file.write(json.dumps([shard, start, end, rows]) + "\\n")
"""


@pytest.fixture
def engine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The table of the job, with three delivered rows and a pending one."""
    monkeypatch.syspath_prepend(folder)
    (folder / "log.yaml").write_text(JOB)
    (folder / "summaries_of_the_test.py").write_text(EFFECT)
    sys.modules.pop("summaries_of_the_test", None)
    engine = sa.create_engine(f"sqlite:///{folder / 'app.db'}")
    create_table(engine)
    add(engine, "chan-1", ["delivered", "failed", "delivered", "pending"])
    yield engine
    engine.dispose()


def summaries(folder: Path) -> list[list[Any]]:
    file = folder / "summaries.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_check_says_what_is_meant_and_writes_nothing(engine: Engine, gapless: Callable[..., Any]) -> None:
    ran = gapless("delivery", "check", "--json")
    assert ran.exit_status == 0
    assert (ran.document["installed"], ran.document["plans"], ran.document["settled"]) == (False, [], 4)
    assert sa.inspect(engine).get_table_names() == ["conversations"]
    assert "not installed yet" in gapless("delivery", "check").err


@pytest.mark.parametrize("command", ["check", "install", "status", "run", "sql"])
def test_a_database_that_is_not_there_is_not_created(
    engine: Engine, gapless: Callable[..., Any], folder: Path, command: str
) -> None:
    (folder / "log.yaml").write_text(JOB.replace("app.db", "ap.db"))
    ran = gapless("delivery", command)
    assert ran.exit_status == 2
    assert "there is no file" in ran.err
    assert str(folder / "ap.db") in ran.err
    assert not (folder / "ap.db").exists()


def test_a_status_that_is_no_text_is_shown_as_one(engine: Engine, gapless: Callable[..., Any]) -> None:
    run(engine, "UPDATE conversations SET status = x'00ff' WHERE id = 4")
    gapless("delivery", "install")
    (shard,) = gapless("delivery", "status", "--json").document["shards"]
    assert shard["blocker"] == {"id": 4, "code": "non_terminal", "status": "x'00ff'"}


def test_check_after_install_shows_every_plan(engine: Engine, gapless: Callable[..., Any]) -> None:
    done = gapless("delivery", "install", "--json").document
    assert len(done["built"]) == 2
    document = gapless("delivery", "check", "--json").document
    assert {plan["statement"]: plan["problem"] for plan in document["plans"]} == dict.fromkeys(
        ("first_open", "behind", "last", "tally")
    )
    assert {plan["index"] for plan in document["plans"]} == set(done["indexes"].values())
    assert "its index" in gapless("delivery", "check").err
    assert "nothing, it was all there" in gapless("delivery", "install").err


def test_status_has_the_documented_shape(engine: Engine, gapless: Callable[..., Any]) -> None:
    gapless("delivery", "install")
    assert gapless("delivery", "status", "--json").document == {
        "format": 1,
        "table": "conversations",
        "shards": [
            {
                "shard": "chan-1",
                "coverage": 0,
                "frontier": 3,
                "newly_covered": 3,
                "claimed": None,
                "blocker": {"id": 4, "code": "non_terminal", "status": "pending"},
            }
        ],
        "violations": [],
    }
    assert gapless("delivery", "status", "--exit-code").exit_status == 3
    (shard,) = gapless("delivery", "status", "--shard", "unknown", "--json").document["shards"]
    assert (shard["frontier"], shard["blocker"]) == (0, None)
    assert "held by row 4, status 'pending'" in gapless("delivery", "status").err


def test_run_once_hands_on_what_is_due(engine: Engine, gapless: Callable[..., Any], folder: Path) -> None:
    gapless("delivery", "install")
    ran = gapless("delivery", "run", "--once", "--json")
    assert (ran.exit_status, ran.document["ranges"], ran.document["rows"]) == (0, 1, 3)
    assert summaries(folder) == [["chan-1", 0, 3, 3]]
    assert "chan-1: (0, 3], 3 rows" in ran.err
    assert gapless("delivery", "run", "--once", "--json").document["ranges"] == 0


def test_run_ends_with_3_where_a_shard_is_held(
    engine: Engine, gapless: Callable[..., Any], folder: Path
) -> None:
    gapless("delivery", "install")
    (folder / "broken").touch()
    ran = gapless("delivery", "run", "--once", "--json")
    assert ran.exit_status == 3
    assert ran.document["held"] == [
        {"shard": "chan-1", "after": 0, "through": 3, "error": "ValueError: no model today"}
    ]
    assert gapless("delivery", "status", "--json").document["shards"][0]["claimed"] == 3
    (folder / "broken").unlink()
    mark(engine, [4], "failed")
    assert gapless("delivery", "run", "--once").exit_status == 0
    assert summaries(folder) == [["chan-1", 0, 3, 3]], "the claimed range, and one row is too few for another"


def test_a_violation_ends_a_run_with_5_and_stays_on_record(
    engine: Engine, gapless: Callable[..., Any]
) -> None:
    gapless("delivery", "install")
    gapless("delivery", "run", "--once")
    mark(engine, [2], "pending")
    ran = gapless("delivery", "run", "--once")
    assert ran.exit_status == 5
    assert "violation: chan-1, id 2: open_behind_coverage" in ran.err
    assert gapless("delivery", "run", "--once").exit_status == 0, "known by now"
    status = gapless("delivery", "status", "--json", "--exit-code")
    assert status.exit_status == 5
    assert [found["id"] for found in status.document["violations"]] == [2]


def test_check_audit_counts_what_was_covered(engine: Engine, gapless: Callable[..., Any]) -> None:
    gapless("delivery", "install")
    gapless("delivery", "run", "--once")
    run(engine, "DELETE FROM conversations WHERE id = 2")
    assert gapless("delivery", "check").exit_status == 0
    ran = gapless("delivery", "check", "--audit", "--json")
    assert ran.exit_status == 5
    assert [(found["code"], found["id"]) for found in ran.document["violations"]] == [("rows_missing", 2)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "terminal: [delivered, failed]",
            "terminal: []",
            "log.yaml:6: delivery.terminal: no status is terminal",
        ),
        (
            "terminal: [delivered, failed]",
            "terminal: [a, a]",
            "log.yaml:6: delivery.terminal: a status is named twice",
        ),
        (
            "terminal: [delivered, failed]",
            "terminal: delivered",
            "log.yaml:6: delivery.terminal: a text cannot stand here; allowed: a list",
        ),
        (
            "shard: channel_key",
            "shrad: channel_key",
            "delivery.columns.shrad: unknown key; did you mean `shard`?",
        ),
        ("shard: channel_key", "shard: id", "delivery.columns: id, shard and status need a column each"),
        ("ids: autoincrement", "ids: snowflake", "log.yaml:7: delivery.ids:"),
        ("ids: autoincrement", "ids: identity", "identity is a way of PostgreSQL's"),
        ("rows: 2", "rows: 0", "log.yaml:8: delivery.trigger.rows:"),
        ("table: conversations", "table: conversation", "did you mean conversations?"),
        ("shard: channel_key", "shard: chanel_key", "did you mean channel_key?"),
        ("sqlite:///app.db", "sqlite:///${NO_SUCH_VARIABLE}", "NO_SUCH_VARIABLE is not set"),
        ("sqlite:///app.db", "postgresql://me:secret@h/d", "log.yaml:3: delivery.url: a password in the URL"),
        ("sqlite:///app.db", "mysql://h/d", "log.yaml:3: delivery.url:"),
        ("summaries_of_the_test:summarise", "summaries_of_the_test", "names no callable"),
        (
            "summaries_of_the_test:summarise",
            "no_such_module:f",
            "log.yaml:9: delivery.effect.callable: module no_such",
        ),
        ("summaries_of_the_test:summarise", "summaries_of_the_test:f", "summaries_of_the_test has no f"),
        ("summaries_of_the_test:summarise", "json:__name__", "json:__name__ is no callable"),
        ("type: python", "type: sql", "is not built yet in this version"),
        ("version: 1", "version: 2", "log.yaml:1: version: is none that this version of gapless knows"),
        ("version: 1\n", "", "log.yaml:1: version: missing"),
    ],
)
def test_bad_input_is_one_clear_error_before_anything_is_created(
    engine: Engine, gapless: Callable[..., Any], folder: Path, old: str, new: str, said: str
) -> None:
    assert old in JOB
    (folder / "log.yaml").write_text(JOB.replace(old, new))
    for command in ("check", "run"):
        ran = gapless("delivery", command, "log.yaml")
        assert ran.exit_status == 2, ran.err
        assert said in ran.err
        assert "secret" not in ran.err
        assert "Traceback" not in ran.err
    assert sa.inspect(engine).get_table_names() == ["conversations"]


def test_a_job_without_an_effect_is_read_but_not_run(
    engine: Engine, gapless: Callable[..., Any], folder: Path
) -> None:
    (folder / "log.yaml").write_text("".join(line for line in JOB.splitlines(True) if "effect" not in line))
    gapless("delivery", "install")
    assert gapless("delivery", "status").exit_status == 0
    ran = gapless("delivery", "run", "--once")
    assert ran.exit_status == 2
    assert "delivery.effect: is missing" in ran.err


def test_a_view_is_refused(engine: Engine, gapless: Callable[..., Any], folder: Path) -> None:
    run(engine, "CREATE VIEW seen AS SELECT * FROM conversations")
    (folder / "log.yaml").write_text(JOB.replace("table: conversations", "table: seen"))
    ran = gapless("delivery", "install")
    assert (ran.exit_status, "is a view" in ran.err) == (2, True)


def test_a_job_about_pages_is_told_apart(gapless: Callable[..., Any], job: Path) -> None:
    ran = gapless("delivery", "check", str(job))
    assert ran.exit_status == 2
    assert "is a job about the pages of a source" in ran.err


def test_the_job_file_of_a_folder_is_found_beside_one_of_another_kind(
    engine: Engine, gapless: Callable[..., Any], job: Path
) -> None:
    assert gapless("delivery", "install").exit_status == 0
    assert "orders" in gapless("check", "--offline").err


def test_sql_is_printed_on_standard_output(engine: Engine, gapless: Callable[..., Any]) -> None:
    ran = gapless("delivery", "sql")
    assert ran.exit_status == 0
    assert ran.out.startswith('-- Message log "main"."conversations" on SQLite')


def test_integer_shards_are_typed_as_integers(
    engine: Engine, gapless: Callable[..., Any], folder: Path
) -> None:
    create_table(engine, table="numbered", shard_type="integer")
    (folder / "log.yaml").write_text(JOB.replace("table: conversations", "table: numbered"))
    gapless("delivery", "install")
    add(engine, 7, ["delivered"], table="numbered")
    (shard,) = gapless("delivery", "status", "--json", "--shard", "7").document["shards"]
    assert (shard["shard"], shard["frontier"]) == (7, 1)
    assert gapless("delivery", "status", "--shard", "seven").exit_status == 2


def test_a_run_is_stopped_by_sigterm_after_the_range_in_hand(engine: Engine, folder: Path) -> None:
    command = [sys.executable, "-m", "gapless_pipelines.cli", "delivery"]
    subprocess.run([*command, "install"], check=True, capture_output=True, cwd=folder)
    process = subprocess.Popen(
        [*command, "run", "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while not summaries(folder) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert json.loads(out)["ranges"] == 1
    assert summaries(folder) == [["chan-1", 0, 3, 3]]


@pytest.mark.parametrize("command", ["check", "install", "status", "run", "sql"])
def test_no_command_imports_beam_or_arrow(engine: Engine, folder: Path, command: str) -> None:
    spy = (
        "import sys\nfrom gapless_pipelines.cli import main\nsys.argv[0] = 'gapless'\ntry:\n    main()\n"
        "finally:\n    print('LOADED', *(n for n in ('apache_beam', 'pyarrow', 'requests', 'alembic')"
        " if n in sys.modules), file=sys.stderr)"
    )
    arguments = ["delivery", command, *(["--once"] if command == "run" else [])]
    ran = subprocess.run(
        [sys.executable, "-c", spy, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert [line for line in ran.stderr.splitlines() if line.startswith("LOADED")] == ["LOADED"]


def test_the_schema_of_a_delivery_job_is_printed_and_describes_the_job(gapless: Callable[..., Any]) -> None:
    schema = gapless("schema", "delivery").document
    assert set(schema["properties"]) == {"version", "delivery"}
    keys = set(schema["$defs"]["DeliveryConfig"]["properties"])
    assert {
        "url",
        "password",
        "table",
        "schema",
        "columns",
        "terminal",
        "ids",
        "triggers",
        "trigger",
        "effect",
    } == keys
