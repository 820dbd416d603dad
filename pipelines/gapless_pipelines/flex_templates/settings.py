"""The words of one launch: the template's own parameters, checked, and what is left of them for Beam."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gapless_pipelines.findings import Finding, InvalidConfiguration
from gapless_pipelines.flex_templates.parameters import (
    CHECK_ONLY,
    IMAGE,
    JOB_FILE,
    SHARED_FOLDER,
    VARIABLES,
    Parameter,
    parameters_of,
)

PLACE = "parameters"
"""What stands for a file's name where a finding is about a parameter."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GRAPH = "--template_location"


@dataclass(frozen=True, slots=True)
class Settings:
    """`arguments` are for Beam: what the launch says beside its parameters, and the image of the workers, where the launch or the
    launcher's own image names it. `graph_location` is where Dataflow's launcher wants the job's graph, from which it makes the
    job itself; None: the job is submitted from here."""

    template: str
    job_file: str
    variables: Mapping[str, str]
    shared_folder: str | None
    check_only: bool
    graph_location: str | None
    arguments: tuple[str, ...]


def settings_of(template: str, words: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """From a command line, `--name=value` or `--name value`. Raises InvalidConfiguration with every problem of the parameters."""
    given, rest = _split(template, words)
    findings: list[Finding] = []
    for parameter in parameters_of(template):
        findings.extend(_problems(parameter, given.get(parameter.name)))
    variables = _variables(given, findings)
    if findings:
        raise InvalidConfiguration(findings)
    graph, rest = _take(_GRAPH, rest)
    image = given.get(IMAGE.name) or environment.get("GAPLESS_TEMPLATE_IMAGE")
    if image:
        rest.append(f"--{IMAGE.name}={image}")
    return Settings(
        template=template,
        job_file=given[JOB_FILE.name],
        variables=variables,
        shared_folder=given.get(SHARED_FOLDER.name),
        check_only=given.get(CHECK_ONLY.name, CHECK_ONLY.default) == "true",
        graph_location=graph,
        arguments=tuple(rest),
    )


def _split(template: str, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What is given of the template's own, the last one counting and an empty one not, and the other words."""
    given: dict[str, str] = {}
    rest = list(words)
    for parameter in parameters_of(template):
        value, rest = _take(f"--{parameter.name}", rest)
        if value:
            given[parameter.name] = value
    return given, rest


def _take(flag: str, words: Sequence[str]) -> tuple[str | None, list[str]]:
    value: str | None = None
    rest: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word.partition("=")[0] != flag:
            rest.append(word)
        elif "=" in word:
            value = word.partition("=")[2]
        else:
            value = remaining.pop(0) if remaining and not remaining[0].startswith("--") else ""
    return value, rest


def _problems(parameter: Parameter, value: str | None) -> list[Finding]:
    allowed = f"such as {parameter.example}"
    if value is None:
        return [_finding(parameter, "is missing", allowed)] if parameter.required else []
    takes = [parameter.regex] if parameter.local is None else [parameter.regex, parameter.local]
    if any(re.fullmatch(regex, value) for regex in takes):
        return []
    # Variables are not repeated: somebody may have written a secret into them after all.
    shown = "" if parameter is VARIABLES else f" `{value}`"
    return [_finding(parameter, f"cannot be{shown or ' this text'}", allowed)]


def _variables(given: Mapping[str, str], findings: list[Finding]) -> dict[str, str]:
    text = given.get(VARIABLES.name, VARIABLES.default or "{}")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict) and all(
        isinstance(one, str) and _NAME.fullmatch(name) for name, one in value.items()
    ):
        return value
    if not any(finding.keys == (VARIABLES.name,) for finding in findings):
        findings.append(_finding(VARIABLES, "is no JSON object of texts", f"such as {VARIABLES.example}"))
    return {}


def _finding(parameter: Parameter, what: str, allowed: str) -> Finding:
    return Finding(PLACE, 0, (parameter.name,), what, allowed)
