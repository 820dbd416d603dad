"""From what the models refuse to findings: at the line and key of the document, in a reader's words, all at once.

No value is repeated in a finding: it may be a secret that stands where it should not, or come from a variable."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gapless.paging.config_model import findings as model_findings
from gapless_pipelines.findings import Finding, KeyPath
from gapless_pipelines.job.document import Document

ModelT = TypeVar("ModelT", bound=BaseModel)


def validate(
    document: Document, model: type[ModelT], value: dict[str, object]
) -> tuple[ModelT | None, list[Finding]]:
    """`value`, the document's or a part of its top level, as `model`; None and what is wrong with it.

    Where a variable is missing or the YAML itself was refused, nothing more is found; but where a secret must not
    stand at all, that is said instead of the missing variable."""
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        secret_places = [detail["loc"] for detail in error.errors() if detail["type"] == "secret"]
        all_found = model_findings(error, model, value)
        found = []
        for finding in all_found:
            if any(_lies_below(finding.path, other.path) for other in all_found):
                # Of a key that takes several shapes: the shape that is meant has said what is wrong inside.
                continue
            if any(_names(place, finding.path) for place in secret_places):
                document.unset.pop(finding.path, None)
            elif document.is_spoiled(finding.path):
                continue
            found.append(document.finding(finding.path, finding.what, finding.allowed))
        return None, found


def _names(location: KeyPath, path: KeyPath) -> bool:
    """Whether pydantic's location, which names the kinds of unions too, is that of a path."""
    steps = iter(location)
    return location[-1:] == path[-1:] and all(step in steps for step in path)


def _lies_below(path: KeyPath, other: KeyPath) -> bool:
    return len(other) > len(path) and other[: len(path)] == path


def value_at(value: Any, path: KeyPath) -> Any:
    """What stands at a path; None where nothing does."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value
