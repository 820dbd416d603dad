"""`DirectRunner` as a user writes it, and Prism: programs in interpreters of their own, judged by what is durable."""

import os
import subprocess
import sys
from pathlib import Path

import pipeline_as_a_user_writes_it
import pytest

from engines import BY_NAME, downloaded, without_the_internet

ENDS_WITHIN = 120


def run(scene, home: Path, *options: str, online: bool = True) -> tuple[str, int]:
    """Run the program; by what module its result was made, and how many readers were at work at once."""
    script = Path(pipeline_as_a_user_writes_it.__file__)
    # Beam starts its workers as `python`, found on the path.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    modules = os.pathsep.join((str(script.parent), os.environ.get("PYTHONPATH", ""))).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, str(script), str(scene.folder), scene.url, *options],
        env={
            **os.environ,
            "HOME": str(home),
            "PYTHONPATH": modules,
            "PATH": path,
            **({} if online else without_the_internet()),
        },
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    module, most = done.stdout.split()
    return module, int(most)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("options", [(), ("--runner=DirectRunner", "--direct_num_workers=4")])
def test_the_direct_runner_without_the_internet_is_beams_local_runner(scene, home, options):
    assert run(scene, home, *options, online=False)[0] == "fn_runner"
    scene.judge_the_end()


@pytest.mark.prism
def test_the_direct_runner_with_prism_at_hand_is_prism(scene, home, prism):
    downloaded(prism, home)
    module, most = run(scene, home, *BY_NAME["direct_prism"].flags(prism, None))
    assert module == "portable_runner"
    assert most == 8, "partitions are read at once"
    scene.judge_the_end()


@pytest.mark.prism
def test_prism_reads_eight_partitions_at_once_and_everything_once(scene, home, prism):
    options = BY_NAME["prism_loopback"].flags(prism, None)
    assert run(scene, home, *options) == ("portable_runner", 8)
    scene.judge_the_end()
    assert run(scene, home, *options) == ("portable_runner", 0), "there is nothing left to read"
    scene.judge_the_end()


@pytest.mark.prism
@pytest.mark.postgres
def test_prism_with_its_workers_in_processes_of_their_own(scene, home, prism, postgres_url):
    """They are reached by pickled code and the network alone."""
    scene.use(postgres_url)
    options = BY_NAME["prism_loopback"].flags(prism, None)
    run(scene, home, *options, "--experiments=use_loopback_process_worker")
    scene.judge_the_end()
