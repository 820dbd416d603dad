import json
import os
import pickle
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paged_api import PagedApi, page, served

from gapless.progress import BLOCKER_CODES
from gapless_pipelines.job.output_documents import StatusDocument

Gapless = Callable[..., Any]
JobFor = Callable[..., Path]

PAGES = {"a": [page(1, 2), page(3), page(4, 5)], "b": [page(2), page(9)]}
COMMAND = [sys.executable, "-m", "gapless_pipelines.cli"]


def test_everything_is_read_and_told(gapless: Gapless, job_for: JobFor, folder: Path) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url)
        ran = gapless("backfill")
        again = gapless("backfill")
    assert (ran.exit_status, ran.out) == (0, "")
    assert ran.lines[0] == "orders: run 1 on local, 2 partitions to read"
    assert ran.lines[-4].startswith("7 events in 5 pages promoted in ")
    assert ran.lines[-3].startswith("orders: complete through 5, certified (published ")
    assert ran.lines[-2:] == [
        "nothing holds it: every partition is read to its end",
        "done: everything that was to be read is read and proved",
    ]
    assert again.exit_status == 0
    assert again.lines[0] == "orders: run 2 on local, 0 of 2 partitions to read"
    assert gapless("status", "--json").document["run"]["number"] == 2
    files = gapless("dataset", "--json").document
    assert files["rows"] == 7
    assert all(Path(file["path"]).is_file() for file in files["files"])


def test_json_tells_how_it_ended(gapless: Gapless, job_for: JobFor) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url, "range: {stop: 100}")
        ran = gapless("backfill", "--json")
    document = ran.document
    assert (ran.exit_status, document["exit_status"], document["complete"]) == (3, 3, False)
    assert (document["events"], document["pages"], document["run"]["number"]) == (7, 5, 1)
    assert document["stop"] == {"position": "100", "inclusive": False}
    StatusDocument.model_validate(document["status"])


def test_short_of_the_stop_it_exits_3_and_says_so(gapless: Gapless, job_for: JobFor) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url, "range: {stop: 100}")
        ran = gapless("backfill")
    assert ran.exit_status == 3
    assert ran.lines[-1] == (
        "short of the range's end, before 100: the source has ended and certifies no more; "
        "running it again changes that only if the source does"
    )


def test_each_partition_that_ends_short_of_the_stop_is_named_with_what_releases_it(
    gapless: Gapless, job_for: JobFor
) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url, "range: {stop: 100}")
        lines = gapless("backfill").lines
    for partition, bound in (("a", "through 5"), ("b", "through 9")):
        at = lines.index(f"{partition}, {bound}: no_certificate")
        assert lines[at + 1] == f"  why: the source ended the partition, certified {bound}"
        assert lines[at + 2] == f"  released by: {BLOCKER_CODES['no_certificate'][1]}"


def test_a_held_partition_is_explained_skipped_and_read_on(gapless: Gapless, job_for: JobFor) -> None:
    pages = {"a": [page(1, n=1), page(2, n="x"), page(3, n=3)], "b": [page(4, n=4)]}
    with served(PagedApi(pages)) as api:
        job_for(api.url, "schema: {n: int64}", "on_drift: hold")
        ran = gapless("backfill")
        assert ran.exit_status == 3
        assert "  command: gapless skip a e2 --reason ..." in ran.lines
        status = gapless("status", "--json").document
        assert status["frontier"]["position"] == "1"
        assert [blocker["event_id"] for blocker in status["blockers"]] == ["e2"]
        assert gapless("wait", "--through", "3", "--timeout", "0s").exit_status == 3
        assert gapless("skip", "a", "e2", "--reason", "known bad").exit_status == 0
        assert gapless("backfill").exit_status == 0
    assert gapless("wait", "--through", "3", "--timeout", "0s").exit_status == 0
    assert gapless("dataset", "--json").document["rows"] == 3
    letter = gapless("dead-letters", "show", "a", "e2", "--json").document["dead_letter"]
    assert letter["reason"] == "known bad"


def test_a_partition_held_above_the_frontier_is_not_done_either(gapless: Gapless, job_for: JobFor) -> None:
    pages = {"a": [page(1, n=1)], "b": [page(4, n=4), page(5, n="x")]}
    with served(PagedApi(pages)) as api:
        job_for(api.url, "schema: {n: int64}", "on_drift: hold")
        ran = gapless("backfill")
    assert ran.exit_status == 3
    assert "nothing holds the frontier itself; higher up:" in ran.lines


def test_a_broken_promise_exits_5(gapless: Gapless, job_for: JobFor) -> None:
    pages = {"a": [page(5), page(3, through=6)], "b": [page(7)]}
    with served(PagedApi(pages)) as api:
        job_for(api.url)
        ran = gapless("backfill")
    assert ran.exit_status == 5
    assert "1 violation recorded: `gapless violations` shows the evidence" in ran.lines
    assert gapless("violations", "--json").document["violations"][0]["event_id"] == "e3"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--", "--runer=local"], "did you mean `--runner`?"),
        (["--", "--runner=SparkRuner"], "did you mean"),
        (["--", "stray"], "stray"),
        (["--", "--direct_running_mode=multi_threading"], "loses data"),
        (["--runner=local"], "stand after `--`"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(
    arguments: list[str], said: str, gapless: Gapless, job: Path, folder: Path
) -> None:
    ran = gapless("backfill", *arguments)
    assert ran.exit_status == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert [path.name for path in folder.iterdir()] == ["orders.yaml"]


def test_what_an_engine_lacks_is_told_before_anything_is_written(
    gapless: Gapless, job: Path, folder: Path
) -> None:
    job.write_text(job.read_text().replace("sqlite:///progress.db", "postgresql+psycopg://me@127.0.0.1:9/p"))
    ran = gapless("backfill", "--", "--runner=DataflowRunner", "--project=p", "--temp_location=gs://b/tmp")
    assert ran.exit_status == 2
    assert "region: is missing: Dataflow cannot start the job without it" in ran.err
    assert "sdk_container_image: is missing" in ran.err
    assert "Traceback" not in ran.err
    assert [path.name for path in folder.iterdir()] == ["orders.yaml"]


def test_options_of_beam_reach_the_engine(gapless: Gapless, job_for: JobFor) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url)
        ran = gapless("backfill", "orders.yaml", "--", "--direct_num_workers=2", "--job_name", "mine")
    assert ran.exit_status == 0, ran.err


def test_a_source_that_is_not_there_holds_and_names_every_partition(gapless: Gapless, job: Path) -> None:
    ran = gapless("backfill")
    assert ran.exit_status == 3
    assert "Traceback" not in ran.err
    assert {blocker["code"] for blocker in gapless("explain", "--json").document["blockers"]} == {
        "source_unavailable"
    }


def test_a_list_that_cannot_be_had_is_three_lines(gapless: Gapless, job: Path, folder: Path) -> None:
    text = job.read_text(encoding="utf-8")
    listed = text.replace("{list: [a, b]}", '{http: {path: /partitions, items: partitions, id: "@"}}')
    job.write_text(listed, encoding="utf-8")
    ran = gapless("backfill")
    assert (ran.exit_status, ran.out, len(ran.lines)) == (3, "", 3)
    assert "the list of partitions: GET /partitions" in ran.lines[1]


def test_a_changed_scope_is_refused_by_name(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    ran = gapless("backfill")
    assert (ran.exit_status, len(ran.lines)) == (2, 3)
    assert "another scope under the name 'orders'" in ran.lines[0]


def test_deferred_effects_travel_as_the_real_ones(job_for: JobFor) -> None:
    from gapless_pipelines.cli.backfill_command import backfill_of
    from gapless_pipelines.job import load_job

    job = load_job(job_for("http://127.0.0.1:9", "dead_letters: {type: parquet, path: dead}"))
    backfill = backfill_of(job)
    assert backfill.effect.target_rows == job.effect().target_rows
    assert pickle.loads(pickle.dumps(backfill.effect)) == job.effect()
    assert pickle.loads(pickle.dumps(backfill.dead_letters)) == job.dead_letters()


def test_the_list_is_asked_before_engine_and_arrow_are_loaded(job_for: JobFor, folder: Path) -> None:
    """What has to be there before the source is asked delays everything."""
    spy = """
import sys
from gapless.paging.http import HttpSession
before = HttpSession.assignment
def assignment(self):
    print(*(name for name in ("apache_beam", "pyarrow", "rich") if name in sys.modules), "ASKED")
    return before(self)
HttpSession.assignment = assignment
from gapless_pipelines.cli import main
sys.argv = ["gapless", "backfill"]
main()
"""
    with served(PagedApi(PAGES)) as api:
        job_for(api.url)
        ran = subprocess.run(
            [sys.executable, "-c", spy], cwd=folder, capture_output=True, text=True, check=False
        )
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (0, "ASKED"), ran.stderr


class Paused:
    """The first answer of one page waits until it is let go; `reached` is set where it waits."""

    def __init__(self, partition: str, number: int) -> None:
        self._at = (partition, number)
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, partition: str, number: int) -> None:
        if (partition, number) == self._at and not self.reached.is_set():
            self.reached.set()
            assert self.go_on.wait(60)


def started(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, "backfill"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def until(process: "subprocess.Popen[str]", said: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if said in line:
            return
    raise AssertionError(f"it never said {said!r}")


def test_a_run_that_a_newer_one_has_overtaken_exits_4(
    gapless: Gapless, job_for: JobFor, folder: Path
) -> None:
    paused = Paused("a", 2)
    with served(PagedApi(PAGES, paused)) as api:
        job_for(api.url)
        process = started(folder)
        try:
            assert paused.reached.wait(60)
            assert gapless("backfill").exit_status == 0
            paused.go_on.set()
            _, err = process.communicate(timeout=60)
        finally:
            paused.go_on.set()
            process.kill()
    assert process.returncode == 4, err
    assert "a newer run has taken over" in err
    assert gapless("dataset", "--json").document["rows"] == 7


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_finishes_the_page_and_promotes(
    number: signal.Signals, gapless: Gapless, job_for: JobFor, folder: Path
) -> None:
    paused = Paused("a", 2)
    with served(PagedApi(PAGES, paused)) as api:
        job_for(api.url)
        process = started(folder)
        try:
            assert paused.reached.wait(60)
            process.send_signal(number)
            until(process, "stopping after the page in hand")
            paused.go_on.set()
            _, err = process.communicate(timeout=60)
        finally:
            paused.go_on.set()
            process.kill()
        assert process.returncode == 3, err
        assert "Traceback" not in err
        assert "not complete: run it again to go on from here" in err
        status = gapless("status", "--json").document
        assert status["run"]["state"] == "stopped"
        assert gapless("backfill").exit_status == 0
    assert gapless("dataset", "--json").document["rows"] == 7


def test_the_second_signal_ends_at_once(gapless: Gapless, job_for: JobFor, folder: Path) -> None:
    paused = Paused("a", 2)
    with served(PagedApi(PAGES, paused)) as api:
        job_for(api.url)
        process = started(folder)
        try:
            assert paused.reached.wait(60)
            process.send_signal(signal.SIGTERM)
            until(process, "stopping after the page in hand")
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
        finally:
            paused.go_on.set()
            process.kill()
        assert process.returncode == 128 + signal.SIGTERM
        assert "stopped at once; what was promoted stays" in err
        assert gapless("backfill").exit_status == 0
    assert gapless("dataset", "--json").document["rows"] == 7


def test_on_a_terminal_progress_is_redrawn_and_the_cursor_comes_back(job_for: JobFor, folder: Path) -> None:
    paused = Paused("a", 2)
    shown = bytearray()
    with served(PagedApi(PAGES, paused)) as api:
        job_for(api.url)
        terminal, end = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
        process = subprocess.Popen(
            [*COMMAND, "backfill", "--json"],
            cwd=folder,
            env=environment,
            stdin=end,
            stdout=subprocess.PIPE,
            stderr=end,
        )
        os.close(end)
        try:
            while b"reading" not in shown:
                shown += os.read(terminal, 4096)
            paused.go_on.set()
            out, _ = process.communicate(timeout=60)
            while chunk := _read(terminal):
                shown += chunk
        finally:
            paused.go_on.set()
            process.kill()
            os.close(terminal)
    assert process.returncode == 0
    assert json.loads(out)["complete"] is True
    assert b"partitions done" in shown
    hidden, visible = shown.rindex(b"\x1b[?25l"), shown.rindex(b"\x1b[?25h")
    assert hidden < visible


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        # The other end is closed.
        return b""


def test_nothing_of_the_libraries_reaches_the_terminal(job_for: JobFor, folder: Path) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url)
        ran = subprocess.run([*COMMAND, "backfill"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert ran.stdout == ""
    lines = [line for line in ran.stderr.splitlines() if "partitions done" not in line]
    assert len(lines) == 5, ran.stderr
