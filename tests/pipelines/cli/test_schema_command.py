from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Gapless = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ([], "source"),
        (["delivery"], "delivery"),
        (["status"], "blockers"),
        (["dataset"], "files"),
        (["epoch"], "candidates"),
        (["cutover"], "accepted"),
        (["history"], "decisions"),
        (["audit"], "contradictions"),
        (["delivery-status"], "shards"),
    ],
)
def test_schemas_are_json_on_standard_output(arguments: list[str], key: str, gapless: Gapless) -> None:
    ran = gapless("schema", *arguments)
    assert (ran.exit_status, ran.err) == (0, "")
    assert ran.document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert key in ran.document["properties"]


def test_the_example_checks_as_it_is_printed(gapless: Gapless, folder: Path) -> None:
    ran = gapless("schema", "--example", "http")
    (folder / "orders.yaml").write_text(ran.out, encoding="utf-8")
    environment = {"ORDERS_URL": "http://127.0.0.1:9", "ORDERS_TOKEN": "t"}
    checked = gapless("check", "--offline", env=environment)
    assert checked.exit_status == 0, checked.err


@pytest.mark.parametrize("arguments", [["--example", "sql"], ["status", "--example", "http"], ["nothing"]])
def test_what_there_is_no_schema_or_example_of(arguments: list[str], gapless: Gapless) -> None:
    ran = gapless("schema", *arguments)
    assert ran.exit_status == 2
    assert (ran.out, len(ran.lines)) == ("", 3)
