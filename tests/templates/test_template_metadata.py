"""What Dataflow reads of a template is what its entry point takes: by Google's own types, in both directions."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.cloud.dataflow_v1beta3.types import ParameterType, TemplateMetadata

from gapless_pipelines.findings import InvalidConfiguration
from gapless_pipelines.flex_templates.metadata import metadata_text
from gapless_pipelines.flex_templates.parameters import (
    BACKFILL,
    IMAGE,
    STREAM,
    TEMPLATES,
    Parameter,
    parameters_of,
)
from gapless_pipelines.flex_templates.settings import Settings, settings_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "templates"
GOOD = {parameter.name: parameter.example for parameter in parameters_of(BACKFILL)}
BAD = {
    "job_file": ["gs://bucket", "gs:///a", "http://a/b", "jobs/orders.yaml", "gs://bucket/a\nb", "s3://a/b"],
    "variables": ["[1]", "ORDERS_URL=x", '"text"', "{"],
    "shared_folder": ["mnt/x", "/", "/mnt/", "gs://b/x", "/mnt//x"],
    "check_only": ["yes", "True", "1"],
    "sdk_container_image": ["Registry/with space", "image", "a/b:", "a/b@sha256:12", "-x/y"],
}


def read(template: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((FOLDER / template / "metadata.json").read_text("utf-8"))
    return document


def settings(template: str, **values: str) -> Settings:
    taken = {parameter.name for parameter in parameters_of(template)}
    words = [f"--{name}={value}" for name, value in {**GOOD, **values}.items() if name in taken]
    return settings_of(template, words, {})


@pytest.mark.parametrize("template", TEMPLATES)
def test_google_reads_the_metadata_and_knows_every_key(template: str) -> None:
    metadata = TemplateMetadata.from_json(json.dumps(read(template)), ignore_unknown_fields=False)
    assert metadata.streaming == (template == STREAM)
    assert [one.name for one in metadata.parameters] == [one.name for one in parameters_of(template)]
    for parameter in metadata.parameters:
        assert parameter.param_type != ParameterType.DEFAULT
        assert parameter.label
        assert parameter.help_text
        assert parameter.group_name


def test_a_key_that_google_does_not_know_is_noticed() -> None:
    with pytest.raises(Exception, match="helptext"):
        TemplateMetadata.from_json(json.dumps({"name": "x", "parameters": [{"name": "a", "helptext": "b"}]}))


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_files_are_made_of_the_parameters(template: str) -> None:
    assert (FOLDER / template / "metadata.json").read_text("utf-8") == metadata_text(template)


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_entry_point_takes_each_parameter_of_its_metadata_and_no_other(template: str) -> None:
    named = [one.name for one in TemplateMetadata.from_json(json.dumps(read(template))).parameters]
    words = [f"--{name}={GOOD[name]}" for name in named]
    image = f"--{IMAGE.name}={IMAGE.example}"
    assert settings_of(template, words, {}).arguments == (image,)
    others = {one.name for other in TEMPLATES for one in parameters_of(other)} - set(named)
    given = [f"--{name}={GOOD[name]}" for name in sorted(others)]
    # What it does not take is left to Beam, which refuses it by name.
    assert list(settings_of(template, [*words, *given], {}).arguments) == [*given, image]


@pytest.mark.parametrize("parameter", parameters_of(BACKFILL), ids=lambda one: one.name)
def test_each_pattern_matches_its_example_and_refuses_a_bad_value(parameter: Parameter) -> None:
    assert re.fullmatch(parameter.regex, parameter.example)
    for bad in BAD[parameter.name]:
        if parameter.name == "variables" and bad == "{":
            continue
        assert not re.fullmatch(parameter.regex, bad), bad
        if parameter.local is None or not re.fullmatch(parameter.local, bad):
            with pytest.raises(InvalidConfiguration, match=f"^parameters: {parameter.name}: cannot be "):
                settings(BACKFILL, **{parameter.name: bad})


def test_the_defaults_are_what_is_done_where_nothing_is_given() -> None:
    plain = settings_of(BACKFILL, ["--job_file=gs://b/job.yaml"], {})
    assert (dict(plain.variables), plain.check_only, plain.shared_folder) == ({}, False, None)
    assert plain.arguments == ()
    said = {one.name: one.default for one in parameters_of(BACKFILL) if one.default is not None}
    assert said == {"variables": "{}", "check_only": "false"}
    named = [f"--{name}={value}" for name, value in said.items()]
    assert settings_of(BACKFILL, ["--job_file=gs://b/job.yaml", *named], {}) == plain


def test_the_module_prints_a_templates_metadata_and_nothing_for_another_name() -> None:
    module = [sys.executable, "-W", "error", "-m", "gapless_pipelines.flex_templates.metadata"]
    printed = subprocess.run([*module, STREAM], capture_output=True, text=True, timeout=60, check=True)
    assert printed.stdout == metadata_text(STREAM)
    other = subprocess.run([*module, "batch"], capture_output=True, text=True, timeout=60, check=False)
    assert (other.returncode, other.stdout) == (1, "")
    assert "backfill, stream, delivery" in other.stderr
