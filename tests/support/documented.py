"""Whether what a command prints with `--json` is what its printed schema says: every key, and no other one."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from gapless_pipelines.job.schema import OUTPUTS

DOCUMENTS = {
    ("status",): "status",
    ("dataset",): "dataset",
    ("epoch", "show"): "epoch",
    ("epoch", "cutover"): "cutover",
    ("history",): "history",
    ("audit",): "audit",
    ("delivery", "status"): "delivery-status",
}
"""By the words of the command: the document of `gapless schema`."""


def document_of_command(arguments: tuple[str, ...]) -> str | None:
    """None for a command whose output has no schema."""
    if "--vacuum" in arguments:
        # It tells of what it removes, not of the data set.
        return None
    return DOCUMENTS.get(arguments[:1]) or DOCUMENTS.get(arguments[:2])


def require_documented(document: str, printed: Any) -> None:
    module, model = OUTPUTS[document]
    read = getattr(import_module(f"gapless_pipelines.job.{module}"), model).model_validate(printed)
    undocumented = list(_undocumented(read))
    if undocumented:
        raise AssertionError(f"printed, and not in the schema: {undocumented}")


def _undocumented(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _undocumented(item, path)
    if isinstance(value, BaseModel):
        yield from (f"{path}.{key}" for key in value.model_extra or ())
        for key, inner in value:
            yield from _undocumented(inner, f"{path}.{key}")
