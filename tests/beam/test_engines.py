"""`DirectRunner` as a user writes it, and Prism: programs of their own, judged by what is durable."""

import os
import platform
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pipeline_as_a_user_writes_it
import pytest

ENDS_WITHIN = 120
NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def prism() -> Path:
    """Prism's binary, from PRISM. Without it the test is skipped, and fails under GAPLESS_REQUIRE_PRISM=1."""
    given = os.environ.get("PRISM", "")
    if given and os.access(given, os.X_OK):
        return Path(given)
    reason = f"PRISM={given!r} is no program" if given else "PRISM does not say where Prism's binary is"
    if os.environ.get("GAPLESS_REQUIRE_PRISM") == "1":
        pytest.fail(f"GAPLESS_REQUIRE_PRISM=1, but {reason}")
    pytest.skip(reason)


def program(scene, home: Path, *options: str) -> tuple[list[str], dict[str, str]]:
    """The command, and its environment."""
    script = Path(pipeline_as_a_user_writes_it.__file__)
    # Beam starts its workers as `python`, found on the path.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(script.parent), "PATH": path}
    return [sys.executable, str(script), str(scene.folder), scene.url, *options], environment


def run(scene, home: Path, *options: str, online: bool = True) -> tuple[str, int]:
    """Run the program; by what module its result was made, and how many readers were at work at once."""
    command, environment = program(scene, home, *options)
    if not online:
        # As on a machine without the internet; what listens here is reached all the same.
        environment |= {
            "https_proxy": NOBODY_LISTENS,
            "http_proxy": NOBODY_LISTENS,
            "no_proxy": "localhost,127.0.0.1",
        }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=ENDS_WITHIN, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    module, most = done.stdout.split()
    return module, int(most)


def cached(prism: Path, home: Path) -> None:
    """Where Beam keeps the Prism that it has downloaded."""
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    folder = home / ".apache_beam" / "cache" / "prism" / "bin"
    folder.mkdir(parents=True)
    name = f"apache_beam-v2.77.0-prism-{platform.system().lower()}-{machine}.zip"
    (folder / name).symlink_to(prism)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "options", [(), ("--runner=DirectRunner",), ("--runner=DirectRunner", "--direct_num_workers=4")]
)
def test_the_direct_runner_without_the_internet_is_beams_local_runner(scene, home, options):
    assert run(scene, home, *options, online=False)[0] == "fn_runner"
    scene.judge_the_end()


@pytest.mark.prism
def test_the_direct_runner_with_prism_at_hand_is_prism(scene, home, prism):
    cached(prism, home)
    module, most = run(scene, home, "--runner=DirectRunner", "--experiments=disable_prism_server_singleton")
    assert module == "portable_runner"
    assert most == 8, "partitions are read at once"
    scene.judge_the_end()


def on_prism(prism: Path) -> tuple[str, ...]:
    return (
        "--runner=PrismRunner",
        f"--prism_location={prism}",
        "--environment_type=LOOPBACK",
        "--experiments=disable_prism_server_singleton",
    )


@pytest.mark.prism
def test_prism_reads_eight_partitions_at_once_and_everything_once(scene, home, prism):
    assert run(scene, home, *on_prism(prism)) == ("portable_runner", 8)
    scene.judge_the_end()
    assert run(scene, home, *on_prism(prism)) == ("portable_runner", 0), "there is nothing left to read"
    scene.judge_the_end()


@pytest.mark.prism
@pytest.mark.parametrize("step", ["applied", "durable", "committed"])
def test_a_program_that_is_killed_on_prism_is_made_whole_by_the_next_one(scene, home, prism, step):
    command, environment = program(scene, home, *on_prism(prism))
    # In a group of its own: Prism, which it has started, is left behind.
    killed = subprocess.Popen(
        command,
        env={**environment, "DIE_AT": f"{step}:7"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert killed.wait(ENDS_WITHIN) == -signal.SIGKILL
    finally:
        with suppress(ProcessLookupError):
            os.killpg(killed.pid, signal.SIGKILL)
    scene.oracle.look()
    run(scene, home, *on_prism(prism))
    scene.judge_the_end()


@pytest.mark.prism
@pytest.mark.postgres
def test_prism_with_its_workers_in_processes_of_their_own(scene, home, prism, postgres_url):
    """They are reached by pickled code and the network alone."""
    scene.use(postgres_url)
    run(scene, home, *on_prism(prism), "--experiments=use_loopback_process_worker")
    scene.judge_the_end()
