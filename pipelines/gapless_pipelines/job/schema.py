"""What `gapless schema` prints: JSON Schemas of the job file and of what `--json` gives, and a commented example."""

from importlib import import_module, resources
from typing import Any, Final

from gapless.errors import ConfigurationError
from gapless_pipelines.job.description import duration_text

EXAMPLES = ("http",)

OUTPUTS: Final = {
    "status": ("output_documents", "StatusDocument"),
    "dataset": ("output_documents", "DatasetDocument"),
    "epoch": ("output_of_membership", "EpochDocument"),
    "cutover": ("output_of_membership", "CutoverDocument"),
    "history": ("output_of_membership", "HistoryDocument"),
    "audit": ("output_of_audit", "AuditDocument"),
    "delivery-status": ("output_of_delivery", "DeliveryStatusDocument"),
}
"""By the word that `gapless schema` takes: module and model of what a command prints with `--json`."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FROM_VARIABLE = {"type": "string", "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"}


def job_schema() -> dict[str, Any]:
    """The JSON Schema of a job file, for editors. Where a number or a switch is due, ${NAME} may stand too."""
    from gapless_pipelines.job.models import JobConfig

    return {"$schema": _DIALECT, **_for_readers(JobConfig.model_json_schema(), variables=True)}


def delivery_schema() -> dict[str, Any]:
    """The JSON Schema of a job file about a message log."""
    from gapless_pipelines.delivery_job import DeliveryJobConfig

    return {"$schema": _DIALECT, **_for_readers(DeliveryJobConfig.model_json_schema(), variables=True)}


def output_schema(document: str) -> dict[str, Any]:
    """The JSON Schema of a document of OUTPUTS. Raises KeyError for another one."""
    module, model = OUTPUTS[document]
    printed = getattr(import_module(f"gapless_pipelines.job.{module}"), model)
    return {"$schema": _DIALECT, **_for_readers(printed.model_json_schema(), variables=False)}


def example(kind: str) -> str:
    """A commented job file of that kind of source, which loads as it is. Raises ConfigurationError."""
    if kind not in EXAMPLES:
        raise ConfigurationError(f"there is no example {kind!r}", remedy=f"allowed: {', '.join(EXAMPLES)}")
    file = resources.files("gapless_pipelines.job") / "examples" / f"{kind}.yaml"
    return file.read_text(encoding="utf-8")


def _for_readers(schema: Any, *, variables: bool, names: bool = False) -> Any:
    """Without the titles pydantic makes of every name, and with defaults as a file writes them.

    `names`: the keys of `schema` are names the user gives."""
    if isinstance(schema, list):
        return [_for_readers(item, variables=variables) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        key: _for_readers(value, variables=variables, names=not names and key in ("properties", "$defs"))
        for key, value in schema.items()
        if names or not (key == "title" and isinstance(value, str))
    }
    if names:
        return plain
    if plain.get("type") == "string" and isinstance(plain.get("default"), float):
        plain["default"] = duration_text(plain["default"])
    if plain.get("default", "") is None or isinstance(plain.get("default"), dict):
        del plain["default"]
    if variables and plain.get("type") in ("integer", "number", "boolean"):
        described = {key: plain.pop(key) for key in ("description", "default") if key in plain}
        return {"anyOf": [plain, _FROM_VARIABLE], **described}
    return plain
