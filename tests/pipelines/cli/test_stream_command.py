"""`gapless stream` as it is typed: a real process, its signals, what it prints, what it refuses."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from growing_api import GrowingApi, source_block
from stream_site import POLLING
from yaml import safe_dump

from gapless.progress import Bound
from gapless.store import open_store

Gapless = Callable[..., Any]


def write(folder: Path, api_block: dict[str, Any], **more: Any) -> Path:
    path = folder / "orders.yaml"
    document = {
        "version": 1,
        "scope": "orders",
        "domain": {"type": "integer"},
        "source": {"type": "http", **api_block},
        "effect": {"type": "parquet", "path": "out"},
        "store": {"url": "sqlite:///progress.db"},
        "stream": POLLING,
        **more,
    }
    path.write_text(safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture
def api() -> Iterator[GrowingApi]:
    with GrowingApi() as api:
        for name in ("eu", "us"):
            api.add(name, *range(10))
            api.certify(name, 9)
        yield api


@contextmanager
def typed(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "gapless_pipelines.cli", "stream", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until_frontier(folder: Path, bound: Bound) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if (folder / "progress.db").exists():
            try:
                with closing(open_store(f"sqlite:///{folder}/progress.db", readonly=True)) as store:
                    if (store.scope("orders").frontier or Bound.before(0)) >= bound:
                        return
            except Exception:  # noqa: BLE001 - it is being made
                pass
        time.sleep(0.05)
    raise AssertionError(f"{bound} does not come")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_ends_it_well(folder: Path, api: GrowingApi, number: int) -> None:
    write(folder, source_block(api))
    with typed(folder) as process:
        until_frontier(folder, Bound.through(9))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == ""
    lines = [line for line in err.splitlines() if line]
    assert lines[0] == "orders: run 1 on local, a stream of 2 partitions"
    assert "gapless: stopping after the page in hand; once more to stop at once" in lines
    assert "orders: complete through 9, certified" in err
    assert lines[-1] == "stopped: what was read is promoted and published; start it again to go on from here"


def test_as_json_it_prints_a_last_document(folder: Path, api: GrowingApi) -> None:
    write(folder, source_block(api))
    with typed(folder, "--json") as process:
        until_frontier(folder, Bound.through(9))
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    document = json.loads(out)
    assert (document["scope"], document["exit_status"], document["stopped"]) == ("orders", 0, True)
    assert document["events"] == 20
    assert document["status"]["frontier"]["position"] == "9"
    assert document["status"]["run"]["state"] == "stopped"


def test_a_range_that_is_proved_ends_it(folder: Path, api: GrowingApi, gapless: Gapless) -> None:
    write(folder, source_block(api), range={"stop": 5})
    ran = gapless("stream")
    assert ran.exit_status == 0
    assert ran.lines[-1] == "done: the range is read and proved to its end"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda block: block["pages"].pop("tail"), "pages.tail"),
        (lambda block: block.update(certificate={"none": {}}), "certificate.page"),
        (lambda block: block["pages"].update(tail="since", expired={"status": [410]}), "expired.restart"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_anything_is_written(
    folder: Path, api: GrowingApi, gapless: Gapless, spoil: Callable[[dict[str, Any]], object], said: str
) -> None:
    block = source_block(api)
    spoil(block)
    write(folder, block)
    ran = gapless("stream")
    assert ran.exit_status == 2
    assert said in ran.err
    assert [path.name for path in folder.iterdir()] == ["orders.yaml"]
    assert api.asked == []


def test_a_misspelt_option_of_the_engine_is_refused(folder: Path, api: GrowingApi, gapless: Gapless) -> None:
    write(folder, source_block(api))
    ran = gapless("stream", "--", "--direct_num_wrokers=2")
    assert ran.exit_status == 2
    assert "direct_num_workers" in ran.err
    assert not (folder / "progress.db").exists()


def test_what_a_stream_opened_again_is_told_by_history_and_passes_the_audit(
    folder: Path, api: GrowingApi, gapless: Gapless
) -> None:
    write(folder, source_block(api))
    assert gapless("backfill").exit_status == 0
    assert gapless("status").lines[1].startswith("  2 partitions: 2 ended")
    with typed(folder) as process:
        api.add("eu", 10)
        for name in ("eu", "us"):
            api.certify(name, 10)
        until_frontier(folder, Bound.through(10))
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
    ran = gapless("history", "--json")
    assert [(one["action"], one["operator"]) for one in ran.document["decisions"]] == [("reopen", None)] * 2
    assert "a stream goes on where a bounded read had ended" in gapless("history").err
    assert gapless("audit").exit_status == 0
    assert gapless("backfill").exit_status == 0
    assert gapless("dataset", "--json").document["rows"] == 21


def test_partitions_that_stay_ended_are_told(folder: Path, api: GrowingApi, gapless: Gapless) -> None:
    write(folder, source_block(api, "token"))
    assert gapless("backfill").exit_status == 0
    with typed(folder) as process:
        assert process.stderr is not None
        first = [process.stderr.readline().strip() for _ in range(2)]
        process.terminate()
        process.communicate(timeout=60)
    assert first[1].startswith("2 partitions ended, with no way to go on: the source has ended them for good")


def test_while_it_runs_its_run_is_running(folder: Path, api: GrowingApi) -> None:
    write(folder, source_block(api))
    with typed(folder) as process:
        until_frontier(folder, Bound.through(9))
        for position in (10, 11):
            for name in ("eu", "us"):
                api.certify(name, position)
            until_frontier(folder, Bound.through(position))
        with closing(open_store(f"sqlite:///{folder}/progress.db", readonly=True)) as store:
            run = store.snapshot("orders").run
        process.terminate()
        process.communicate(timeout=60)
    assert run is not None
    assert run.state == "running"
