"""docs/job-file.md: every YAML block is loaded, every answer is compared, every key there is stands in it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from gapless.paging.config_model import Duration, NotBuilt
from gapless_pipelines.job import InvalidConfiguration, load_job
from gapless_pipelines.job.description import describe
from gapless_pipelines.job.document import parse_document
from gapless_pipelines.job.models import JobConfig

PAGE = Path(__file__).parents[3] / "docs" / "job-file.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(yaml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENVIRONMENT = {
    "ORDERS_URL": "https://api.example.com/v1",
    "ORDERS_HOST": "api.example.com",
    "CONNECT_TIMEOUT": "5s",
    "HOME": "/home/me",
}
MERGED = {"source", "pages", "client"}
"""Mappings of which a part replaces keys; all others it replaces whole."""


def examples() -> Iterator[tuple[int, str, list[str]]]:
    """(line, YAML, the findings that answer it: none for what loads)."""
    blocks = [(match[1], match[2], TEXT.count("\n", 0, match.start()) + 2) for match in BLOCK.finditer(TEXT)]
    for (kind, body, line), (next_kind, answer, _) in zip(blocks, [*blocks[1:], ("", "", 0)], strict=True):
        if kind == "yaml":
            yield line, body, answer.splitlines() if next_kind == "text" else []


def merged(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    return whole | {
        key: merged(whole.get(key, {}), value) if key in MERGED else value for key, value in part.items()
    }


def values_of(text: str) -> dict[str, Any]:
    """As written: variables stay variables."""
    return parse_document(text.replace("$", "$$"), "part", {}).value


EXAMPLES = list(examples())
WHOLE = EXAMPLES[0][1]


@pytest.mark.parametrize(
    ("line", "part", "answer"), EXAMPLES, ids=[f"line {line}" for line, _, _ in EXAMPLES]
)
def test_each_example_loads_or_is_answered_as_written(
    line: int, part: str, answer: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = (
        WHOLE if part is WHOLE else yaml.safe_dump(merged(values_of(WHOLE), values_of(part)), sort_keys=False)
    )
    Path("job.yaml").write_text(whole, encoding="utf-8")

    try:
        describe(load_job("job.yaml", ENVIRONMENT))
        told = []
    except InvalidConfiguration as error:
        told = [re.sub(r"^job\.yaml:\d+:", "job.yaml:", str(finding)) for finding in error.findings]

    assert sorted(told) == sorted(answer)


def test_the_page_holds_examples_of_both_kinds() -> None:
    assert len([answer for _, _, answer in EXAMPLES if not answer]) >= 8
    assert len([answer for _, _, answer in EXAMPLES if answer]) >= 5


def keys_of(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, bool]]:
    """(dotted path, whether it is built) of every key that holds no mapping of its own."""
    for name, field in model.model_fields.items():
        path = f"{above}{field.alias or name}"
        inner = list(models_in(field.annotation))
        if any(part in get_args(NotBuilt) for part in field.metadata) or field.annotation is object:
            yield path, path.startswith("range.")
        elif inner and path not in ("domain", "store.password", "source.auth.token"):
            for one in inner:
                yield from keys_of(one, f"{path}.")
        else:
            yield path, True


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


BUILT = sorted({path for path, built in keys_of(JobConfig) if built})
RESERVED = sorted({path for path, built in keys_of(JobConfig) if not built})
KNOWN, NOT_YET = TEXT.split("## Known, not built yet")


@pytest.mark.parametrize("path", BUILT)
def test_every_key_is_in_the_reference(path: str) -> None:
    parts = path.split(".")
    whole = ".".join(parts)
    # What stands under `{position, inclusive}` or `{has_more: PATH}` is written with its key.
    with_key = ".".join(parts[:-1])
    assert f"`{whole}`" in KNOWN or (f"`{with_key}`" in KNOWN and parts[-1] in KNOWN)


@pytest.mark.parametrize("path", RESERVED)
def test_every_reserved_key_is_in_the_list_of_what_is_not_built(path: str) -> None:
    assert f"`{path.rsplit('.', 1)[-1]}`" in NOT_YET
    assert f"`{path}`" not in KNOWN


def test_the_walk_over_the_models_finds_keys_of_both_kinds() -> None:
    assert {"version", "source.client.retry.on", "source.pages.next.end.has_more", "range.start"} <= set(
        BUILT
    )
    assert {"split", "source.client.rate", "source.partitions.sql"} <= set(RESERVED)


ROW = re.compile(r"^\| `(?P<key>[a-z_.]+)` \|(?: \|)? `(?P<default>[^`|]+)` \|", re.MULTILINE)


def default_of(path: str) -> object:
    *above, last = path.split(".")
    models: list[type[BaseModel]] = [JobConfig]
    for name in above:
        fields = [field for model in models if (field := by_alias(model).get(name))]
        models = [inner for field in fields for inner in models_in(field.annotation)]
    return next(
        field.get_default(call_default_factory=True)
        for model in models
        if (field := by_alias(model).get(last)) and not field.is_required()
    )


def by_alias(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


DEFAULTS = [(match["key"], match["default"]) for match in ROW.finditer(KNOWN)]


@pytest.mark.parametrize(
    ("key", "written"), [row for row in DEFAULTS if row[0] not in ("source.auth.type", "pipeline_options")]
)
def test_each_default_in_the_reference_is_the_one_that_holds(key: str, written: str) -> None:
    there = default_of(key)

    if isinstance(there, float):
        assert TypeAdapter(Duration).validate_python(written) == there
    else:
        assert values_of(f"default: {written}")["default"] == there


def test_the_reference_tells_defaults() -> None:
    assert len(DEFAULTS) >= 15
