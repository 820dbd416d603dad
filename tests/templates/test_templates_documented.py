"""docs/templates.md names what there is: parameters, their templates, transforms and their outputs."""

import json
import re
from pathlib import Path

from shown import ROOT, blocks

from gapless_pipelines.beam_yaml import DeliveryFrontier, ReadComplete
from gapless_pipelines.flex_templates.parameters import TEMPLATES, parameters_of

DOCUMENT = ROOT / "docs" / "templates.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    """The cells of every table row."""
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in TEXT.splitlines()
        if line.startswith("| ")
    ]


def test_every_parameter_stands_there_with_the_templates_that_have_it() -> None:
    told = {row[0].strip("`"): row[1] for row in rows() if len(row) == 3 and row[1] != "templates"}
    names = {parameter.name for template in TEMPLATES for parameter in parameters_of(template)}
    assert names <= told.keys()
    for parameter in parameters_of("backfill"):
        every = parameter.templates == TEMPLATES
        assert told[parameter.name] == ("all" if every else ", ".join(parameter.templates))


def test_every_transform_stands_there_with_what_it_takes() -> None:
    told = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in rows()}
    for transform in (ReadComplete, DeliveryFrontier):
        taken = list(transform.__init__.__annotations__)
        assert told[transform.__name__] == [name for name in taken if name != "return"]


def test_links_lead_somewhere() -> None:
    for document in (DOCUMENT, ROOT / "templates" / "README.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (Path(document).parent / target).exists(), f"{document.name}: {target}"


def test_the_answer_of_a_launch_is_json_of_the_shown_keys() -> None:
    (shown,) = (json.loads(block.text) for block in blocks(TEXT) if block.kind == "json")
    assert list(shown) == ["format", "template", "about", "engine", "state", "job", "graph"]
