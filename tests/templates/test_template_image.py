"""The image: what is copied is there, what is installed is the project's, and its steps work in an empty environment."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from template_process import readme_job

from gapless_pipelines.flex_templates.parameters import TEMPLATES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "templates"
TEXT = (FOLDER / "Dockerfile").read_text("utf-8")


def steps(template: str = "backfill") -> Iterator[tuple[str, str]]:
    """(instruction, the rest of its line), arguments filled in."""
    known = {"TEMPLATE": template}
    for line in TEXT.replace("\\\n", " ").splitlines():
        if not line or line.startswith("#"):
            continue
        instruction, _, rest = line.partition(" ")
        for name, value in known.items():
            rest = rest.replace(f"${{{name}}}", value)
        if instruction == "ARG" and "=" in rest:
            known.update([rest.split("=", 1)])
        yield instruction, " ".join(rest.split())


def copies(template: str) -> Iterator[tuple[list[str], str]]:
    """(sources, target) of what is copied out of the project."""
    for instruction, rest in steps(template):
        if instruction == "COPY" and not rest.startswith("--from="):
            *sources, target = rest.split()
            yield sources, target


def pins(name: str) -> dict[str, str]:
    found = {}
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        pin = re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s;]+)", line)
        assert pin, f"{name}: `{line}` is no exact version"
        assert canonicalize_name(pin[1]) not in found
        found[canonicalize_name(pin[1])] = pin[2]
    return found


def argument(name: str) -> str:
    return next(
        rest.partition("=")[2] for kind, rest in steps() if kind == "ARG" and rest.startswith(f"{name}=")
    )


@pytest.mark.parametrize("template", TEMPLATES)
def test_everything_that_is_copied_is_there_and_sent_to_the_builder(template: str) -> None:
    sent = {
        line[1:]
        for line in (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    sources = [source for given, _ in copies(template) for source in given]
    assert f"templates/{template}/main.py" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert Path(source).parts[0] in sent, source


def test_the_beam_of_the_image_is_that_of_the_project() -> None:
    beam = argument("BEAM")
    assert pins("requirements.txt")["apache-beam"] == beam
    # Pickled graphs and Beam's boot belong to one version.
    assert beam.split(".")[:2] == version("apache-beam").split(".")[:2]
    declared = [Requirement(one) for one in requires("gapless") or []]
    assert next(one for one in declared if one.name == "apache-beam" and not one.marker).specifier.contains(
        beam
    )
    assert ("FROM", f"apache/beam_python{argument('PYTHON')}_sdk:{beam} AS beam") in list(steps())


def test_the_python_of_the_image_is_one_of_the_projects_and_the_same_everywhere() -> None:
    python = argument("PYTHON")
    assert SpecifierSet(">=3.10,<3.14").contains(python)
    bases = [rest for kind, rest in steps() if kind == "FROM"]
    assert bases[-1] == f"python:{python}-slim"
    assert f"/python{python.replace('.', '')}-template-launcher-base" in bases[1]


def test_the_pins_are_what_the_project_asks_for() -> None:
    pinned, building = pins("requirements.txt"), pins("requirements-build.txt")
    assert all(pinned[name] == building[name] for name in pinned.keys() & building.keys())
    python = argument("PYTHON")
    needed = [
        one
        for package in ("gapless", "apache-beam")
        for one in map(Requirement, requires(package) or [])
        if one.name != "gapless"
        and (
            one.marker is None
            or any(
                one.marker.evaluate({"extra": extra, "python_version": python})
                for extra in ("postgres", "gcp")
            )
        )
    ]
    assert {"apache-beam", "psycopg", "sqlalchemy", "google-cloud-storage"} <= {
        one.name.lower() for one in needed
    }
    for one in needed:
        assert one.specifier.contains(pinned[canonicalize_name(one.name)]), one


def test_launcher_and_workers_find_what_they_start() -> None:
    found = list(steps())
    work = next(rest for kind, rest in found if kind == "WORKDIR")
    environment = " ".join(rest for kind, rest in found if kind == "ENV")
    assert f"FLEX_TEMPLATE_PYTHON_PY_FILE={work}/main.py" in environment
    assert ("COPY", "templates/backfill/main.py ./main.py") in found
    assert found[-1] == ("ENTRYPOINT", '["/opt/apache/beam/boot"]')
    launcher = "/opt/google/dataflow/python_template_launcher"
    assert ("COPY", f"--from=launcher {launcher} {launcher}") in found
    assert ("COPY", "--from=beam /opt/apache/beam /opt/apache/beam") in found


def python_of_the_image() -> str:
    wanted = argument("PYTHON")
    said = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in (sys.executable, shutil.which(f"python{wanted}")):
        if candidate is not None:
            found = subprocess.run([candidate, "-c", said], capture_output=True, text=True, check=False)
            if found.stdout.strip() == wanted:
                return candidate
    pytest.skip(f"no Python {wanted} here, for which the image's versions are pinned")


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_steps_of_the_image_work_in_an_empty_environment(tmp_path: Path) -> None:
    python = python_of_the_image()
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True, timeout=120)
    work = tmp_path / "template"
    work.mkdir()
    environment = {"PATH": f"{tmp_path / 'venv' / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    for instruction, rest in steps():
        if instruction == "COPY" and not rest.startswith("--from="):
            *sources, target = rest.split()
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(
                        ROOT / source, work / target, ignore=shutil.ignore_patterns("__pycache__")
                    )
                else:
                    folder = target.endswith("/")
                    (work / target).mkdir(parents=True, exist_ok=True) if folder else None
                    shutil.copy(ROOT / source, work / target)
        elif instruction == "RUN":
            done = subprocess.run(
                rest, shell=True, cwd=work, env=environment, capture_output=True, text=True, timeout=900
            )
            assert done.returncode == 0, f"{rest}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert sorted(entry.name for entry in work.iterdir()) == [
        "main.py",
        "requirements-build.txt",
        "requirements.txt",
    ]
    (tmp_path / "orders.yaml").write_text(readme_job("orders.yaml"), encoding="utf-8")
    words = [f"--job_file={tmp_path / 'orders.yaml'}", "--check_only=true"]
    ended = subprocess.run(
        ["python", "main.py", *words],
        cwd=work,
        env={**environment, "ORDERS_URL": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert '"state": "checked"' in ended.stdout
