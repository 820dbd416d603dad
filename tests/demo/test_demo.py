"""The demo, for real: it shows what the README says it does, and ends with 0 only where all it compares is equal."""

import subprocess
import sys
from pathlib import Path

import pytest
from shown import README, blocks, pattern_of
from typer.testing import CliRunner

from gapless.errors import ConfigurationError
from gapless_pipelines.cli.app import app
from gapless_pipelines.demo import broken, interrupted, scene
from gapless_pipelines.demo.checks import Checks, Cut, DataSet, cut_of, missing_before
from gapless_pipelines.demo.flights import Departure, Departures, data_path


@pytest.fixture
def demo_data() -> None:
    try:
        data_path()
    except ConfigurationError as missing:
        pytest.skip(missing.what)


@pytest.mark.usefixtures("demo_data")
def test_killed_half_way_and_run_again_nothing_is_missing_and_nothing_is_twice(tmp_path: Path) -> None:
    said: list[str] = []
    assert interrupted.show_interrupted(tmp_path / "demo", said.append), "\n".join(said)
    shown = "\n".join(said)
    assert "killed by SIGKILL" in shown
    assert shown.count("  ok   ") >= 10
    assert (tmp_path / "demo" / "flights.yaml").exists()


@pytest.mark.usefixtures("demo_data")
def test_with_break_one_airport_is_held_and_released_as_the_readme_shows(tmp_path: Path) -> None:
    said: list[str] = []
    assert broken.show_broken(tmp_path / "demo", said.append), "\n".join(said)
    shown = "\n".join(said).splitlines()
    excerpt = next(block for block in blocks(README.read_text(encoding="utf-8")) if block.kind == "text")
    first = next(number for number, line in enumerate(shown) if line.startswith("departures-2013: "))
    found = "".join(f"{line}\n" for line in shown[first : first + len(excerpt.lines)])
    assert pattern_of(excerpt.lines).fullmatch(found), (
        f"the README shows\n{excerpt.text}\nand it was\n{found}"
    )


def test_a_run_that_ends_before_it_is_killed_is_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene, "_command", lambda arguments: [sys.executable, "-c", "raise SystemExit(7)"])
    with pytest.raises(scene.DemoFailed, match="exit status 7"):
        scene.Scene(tmp_path, "http://127.0.0.1:1").kill_backfill_at(1)


def test_a_server_that_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def dead(command: list[str], **options: object) -> "subprocess.Popen[str]":
        started.append(command)
        return popen([sys.executable, "-c", "pass"], **options)

    popen = subprocess.Popen
    monkeypatch.setattr(scene.subprocess, "Popen", dead)
    with pytest.raises(scene.DemoFailed, match="did not start"), scene.scene(tmp_path):
        pytest.fail("there is no scene without its server")
    assert started


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    done = CliRunner().invoke(app, ["demo", "--dir", str(tmp_path)])
    assert done.exit_code == 2
    assert "not empty" in done.output
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]


def test_an_inequality_is_shown_and_ends_the_demo_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unequal(folder: Path, say: object) -> bool:
        checks = Checks(lambda line: None)
        checks.equal("rows", 2, 1)
        return checks.all_hold

    monkeypatch.setattr(interrupted, "show_interrupted", unequal)
    done = CliRunner().invoke(app, ["demo", "--dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "not all of it holds" in done.output


@pytest.mark.parametrize(("limit", "holds"), [(9_999, False), (10_000, True)])
def test_a_limit_is_compared_as_a_limit(limit: int, holds: bool) -> None:
    said: list[str] = []
    checks = Checks(said.append)
    checks.at_most("read again", limit, 10_000)
    assert checks.all_hold is holds
    assert said[0].startswith("  ok" if holds else "  NOT")


def test_what_a_frontier_claims_and_no_file_holds_is_counted_by_its_endpoint() -> None:
    departures = Departures({"JFK": [Departure(n, f"JFK-{n}", b"{}") for n in (10, 20, 30)]})
    found = DataSet({"JFK": 1}, {"JFK": ["JFK-10"]})
    assert missing_before(Cut("", 20), departures, found) == 0
    assert missing_before(Cut("", 21), departures, found) == 1
    assert missing_before(Cut("", 31), departures, found) == 2


def test_a_frontier_through_an_instant_covers_it_and_one_before_does_not() -> None:
    through = cut_of({"position": "2013-01-01T00:00:00Z", "inclusive": True})
    before = cut_of({"position": "2013-01-01T00:00:00Z", "inclusive": False})
    assert through is not None
    assert before is not None
    assert through.stop == before.stop + 1
    assert cut_of(None) is None
