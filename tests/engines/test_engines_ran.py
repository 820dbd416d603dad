"""CI tells where the tests of an engine have not run, and which Prism it runs them on."""

import re
from pathlib import Path

import pytest
from apache_beam.version import __version__ as beam_version
from engines_ran import FOR_ALL, FOR_STREAMS, main

from engines import ENGINES

ROOT = Path(__file__).parents[2]


def case(module: str, name: str, inside: str = "") -> str:
    return f'<testcase classname="tests.engines.{module}" name="{name}">{inside}</testcase>'


def everything() -> list[str]:
    return [
        case(module, f"test_it[{engine}-in_place]")
        for engine in ENGINES
        for module in (*FOR_ALL, *FOR_STREAMS)
        if engine.streams or module in FOR_ALL
    ]


def report(folder: Path, cases: list[str]) -> str:
    file = folder / f"report{len(list(folder.iterdir()))}.xml"
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return str(file)


def test_the_tests_of_every_engine_ran(tmp_path, capsys):
    cases = everything()
    assert main([report(tmp_path, cases[:5]), report(tmp_path, cases[5:])]) == 0
    assert "prism_external: 4 tests ran" in capsys.readouterr().out


def test_tests_of_one_engine_that_did_not_run_are_named(tmp_path, capsys):
    for left_out in range(len(everything())):
        cases = everything()
        gone = cases.pop(left_out)
        assert main([report(tmp_path, cases)]) == 1
        module, engine = re.search(r"engines\.(\w+).*\[(\w+)-", gone).groups()
        assert capsys.readouterr().err == f"{module} did not run on {engine}\n"


def test_a_test_that_was_skipped_is_named(tmp_path, capsys):
    skipped = case("test_batch", "test_it[prism_external-in_pipeline]", "<skipped/>")
    assert main([report(tmp_path, [*everything(), skipped])]) == 1
    assert capsys.readouterr().err == "test_batch::test_it[prism_external-in_pipeline] was skipped\n"


def test_the_group_that_a_test_ran_in_is_no_part_of_its_name(tmp_path):
    cases = [one.replace("-in_place]", "]@/tests/engines/test_it.py") for one in everything()]
    assert main([report(tmp_path, cases)]) == 0


def test_without_any_report_nothing_ran():
    assert main([]) == 1


@pytest.mark.prism
def test_prism_is_of_the_version_of_beam_that_is_installed(prism):
    """Go writes into a program which version of which module it was built from."""
    built_from = re.search(rb"mod\tgithub\.com/apache/beam/sdks/v2\tv([0-9.]+)", prism.read_bytes())
    assert built_from is not None
    assert built_from[1].decode() == beam_version


def test_the_version_of_beam_stands_in_pyproject_alone():
    pinned = re.search(r'"apache-beam>=(\d+\.\d+),<(\d+\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert pinned is not None
    major, minor = pinned[1].split(".")
    assert pinned[2] == f"{major}.{int(minor) + 1}", "one minor version: what Beam does is known of that"
    assert beam_version.startswith(f"{pinned[1]}.")
    assert pinned[1] not in (ROOT / ".ci" / "run").read_text()
