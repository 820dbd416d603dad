"""`metadata.json` of a template, as Dataflow's TemplateMetadata: made of the parameters that its entry point takes.

python -m gapless_pipelines.flex_templates.metadata backfill > templates/backfill/metadata.json
"""

import json
import sys
from typing import Any

from gapless_pipelines.flex_templates.parameters import (
    BACKFILL,
    DELIVERY,
    STREAM,
    TEMPLATES,
    Parameter,
    parameters_of,
)

_ABOUT = {
    BACKFILL: (
        "gapless backfill",
        "Reads independently paginated partitions to their end, applies every event durably, and publishes the frontier: "
        "every eligible event up to it has a durable outcome. Batch.",
    ),
    STREAM: (
        "gapless stream",
        "Follows independently paginated partitions, applies every event durably, and moves the frontier as the source "
        "certifies. Streaming.",
    ),
    DELIVERY: (
        "gapless delivery",
        "Hands on what is newly covered in a table of messages, shard by shard and without gaps: one pass over all shards. "
        "Batch.",
    ),
}


def metadata_of(template: str) -> dict[str, Any]:
    """The document, by the names that `TemplateMetadata.from_json` takes."""
    name, description = _ABOUT[template]
    document: dict[str, Any] = {"name": name, "description": description, "streaming": template == STREAM}
    if template == STREAM:
        # What is durable is decided by the store, whichever of the two Dataflow does.
        document |= {
            "supportsAtLeastOnce": True,
            "supportsExactlyOnce": True,
            "defaultStreamingMode": "EXACTLY_ONCE",
        }
    return {**document, "parameters": [_value(parameter) for parameter in parameters_of(template)]}


def metadata_text(template: str) -> str:
    """The file's text."""
    return json.dumps(metadata_of(template), indent=2, ensure_ascii=False) + "\n"


def _value(parameter: Parameter) -> dict[str, Any]:
    value: dict[str, Any] = {
        "name": parameter.name,
        "label": parameter.label,
        "helpText": f"{parameter.help} Example: {parameter.example}",
        "groupName": parameter.group,
        "paramType": parameter.kind,
        "isOptional": not parameter.required,
        "regexes": [parameter.regex],
    }
    if parameter.default is not None:
        value["defaultValue"] = parameter.default
    return value


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in TEMPLATES:
        sys.stdout.write(metadata_text(sys.argv[1]))
    else:
        raise SystemExit(f"name a template: {', '.join(TEMPLATES)}")
