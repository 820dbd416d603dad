from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from orders_api import TOKEN, orders_api
from paged_api import PagedApi, page, served

from gapless_pipelines.cli.check_command import _store_lines

Gapless = Callable[..., Any]

PAGES = {"a": [page(1, 2), page(3), page(4)], "b": [page(1)]}


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_it_says_what_is_understood_and_writes_nothing(
    gapless: Gapless, folder: Path, job_for: Callable[..., Path]
) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url, "range: {start: 1, stop: 4}", "schema: {position: int32}")
        ran = gapless("check", "--json")
        lines = gapless("check").lines
    assert (ran.exit_status, ran.err) == (0, "")
    assert api.asked == [("a", 0), ("a", 1)] * 2
    assert everything_in(folder) == ["orders.yaml"]
    document = ran.document
    assert document["partitions"] == {
        "count": 2,
        "first": ["a", "b"],
        "routing_generation": "",
        "list": "frozen",
        "list_bound": None,
    }
    first, second = document["pages"]
    assert (first["events"], first["first_position"], first["last_position"]) == (2, "1", "2")
    assert first["certificate"] == {"position": "2", "inclusive": True}
    assert len(second["next_token"]) == 10
    assert document["certificate"] == {"basis": "certified", "on_pages": 2, "reason": None}
    assert document["columns"] == {"frozen": False, "types": {"id": "string", "position": "int32"}}
    assert document["parallelism"] == {"partitions": 2, "at_once": 2}
    assert document["store"]["state"] == "new"
    assert document["settings"]["source"]["client"]["timeout"] == {"connect": "10s", "read": "1m"}
    text = "\n".join(lines)
    for part in (
        'scope orders, domain {"type": "integer"}',
        "range: from 1, included, to 4, excluded",
        "auth none",
        "2 partitions (a, b), list frozen at the first run",
        "read one after the other; up to 2 partitions at once",
        "page 1 of a: 2 events, positions 1 to 2, first id e1, certificate through 2, next token ",
        "the source certifies",
        "columns: id string, position int32 (inferred; frozen at the first run)",
        "not there yet; the first run creates it",
    ):
        assert part in text


def test_secrets_and_page_tokens_are_not_shown(gapless: Gapless, job_for: Callable[..., Path]) -> None:
    with orders_api() as url:
        path = job_for(url)
        text = path.read_text(encoding="utf-8").replace("list: [a, b]", "list: [eu, us]")
        auth = "  auth: {type: bearer, token: {env: ORDERS_TOKEN}}\n  partitions:"
        path.write_text(text.replace("  partitions:", auth), encoding="utf-8")
        ran = gapless("check", env={"ORDERS_TOKEN": TOKEN})
        as_json = gapless("check", "--json", env={"ORDERS_TOKEN": TOKEN})
    assert "auth bearer, token from env ORDERS_TOKEN" in ran.err
    assert TOKEN not in ran.err + as_json.out
    # The API's cursors are plain numbers: 50 and 100.
    assert [page["next_token"] for page in as_json.document["pages"]] != ["50", "100"]
    assert all(len(page["next_token"]) == 10 for page in as_json.document["pages"])


def test_offline_asks_nobody(gapless: Gapless, job: Path, folder: Path) -> None:
    ran = gapless("check", "--offline")
    assert ran.exit_status == 0
    assert ran.lines[-1] == "offline: neither the source nor the store was asked"
    assert set(gapless("check", "--offline", "--json").document) == {
        "format",
        "stream",
        "job",
        "scope",
        "domain",
        "settings",
    }
    assert everything_in(folder) == ["orders.yaml"]


def test_a_source_that_certifies_nothing_is_told(gapless: Gapless, job_for: Callable[..., Path]) -> None:
    with served(PagedApi({"a": [page(1, through=-1), page(2, through=-1)], "b": [page(1)]})) as api:
        path = job_for(api.url)
        certified = gapless("check").err
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace("    page: {position: complete_through.position,", "    none: {}  #"),
            encoding="utf-8",
        )
        none = gapless("check").err
    assert "none came with the first 2 pages: without one nothing is claimed" in certified
    assert "the source certifies nothing: page tokens are kept, and there is no frontier" in none


def test_an_assumption_is_shown_with_its_reason(gapless: Gapless, job_for: Callable[..., Path]) -> None:
    with served(PagedApi({"a": [page(1, through=-1)], "b": [page(1)]})) as api:
        path = job_for(api.url, "range: {stop: 10}")
        text = path.read_text(encoding="utf-8")
        asserted = text.replace(
            "    page: {position: complete_through.position,",
            '    assert: {closed_range: true, reason: "2013 is over"}  #',
        )
        path.write_text(asserted, encoding="utf-8")
        ran = gapless("check")
    assert "labelled asserted (2013 is over)" in ran.err
    assert "certificate before 10, the chain ends here" in ran.err


def test_an_existing_scope_is_compared(gapless: Gapless, orders: Any, job_for: Callable[..., Path]) -> None:
    orders.begin("a")
    with served(PagedApi(PAGES)) as api:
        job_for(api.url)
        ran = gapless("check", "--json")
        told = gapless("check")
    assert ran.exit_status == told.exit_status == 2
    assert ran.document["store"]["state"] == "existing"
    differing = {one["key"]: one for one in ran.document["store"]["differences"]}
    assert differing["path"]["stored"] == '"/orders"'
    assert differing["path"]["given"] == '"/partitions/{partition.id}/events"'
    assert "holds another scope of this name" in told.err
    assert told.lines[-1].strip() == (
        "a run would refuse: give the changed job another scope name,"
        " or start it over: `gapless epoch rebuild JOB --reason ...`"
    )


def test_a_store_without_this_scope_is_told(
    gapless: Gapless, orders: Any, job_for: Callable[..., Path]
) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url)
        ran = gapless("check", "--json")
    assert (ran.exit_status, ran.document["store"]["state"]) == (0, "new scope")


@pytest.mark.postgres
def test_a_database_without_a_store_is_new(
    gapless: Gapless, postgres_url: str, job_for: Callable[..., Path]
) -> None:
    with served(PagedApi(PAGES)) as api:
        path = job_for(api.url)
        text = path.read_text(encoding="utf-8").replace("sqlite:///progress.db", postgres_url)
        path.write_text(text, encoding="utf-8")
        ran = gapless("check", "--json")
        assert (ran.exit_status, ran.document["store"]["state"]) == (0, "new"), ran.err
        assert gapless("backfill").exit_status == 0
        assert gapless("check", "--json").document["store"]["state"] == "existing"


def test_what_is_frozen_is_shown_as_it_is(
    gapless: Gapless, folder: Path, job_for: Callable[..., Path]
) -> None:
    with served(PagedApi(PAGES)) as api:
        job_for(api.url)
        assert gapless("backfill").exit_status == 0
        assert gapless("check", "--json").document["columns"]["frozen"] is True


def test_broken_promises_are_shown_and_exit_5(gapless: Gapless, job_for: Callable[..., Path]) -> None:
    with served(PagedApi({"a": [page(5), page(3, through=6)], "b": [page(1)]})) as api:
        job_for(api.url)
        ran = gapless("check")
    assert ran.exit_status == 5
    assert any(line.startswith("violation: event 'e3' at 3 came after through 5") for line in ran.lines)


@pytest.mark.parametrize(
    ("pages", "what"),
    [
        ({"events": [{"id": "e1"}], "complete_through": None}, "position"),
        ({"events": [{"id": "e1", "position": 1.5}], "complete_through": None}, "1.5"),
        ({"items": []}, "events"),
    ],
    ids=["absent position", "a float", "absent records"],
)
def test_what_does_not_fit_the_job_file_is_told_in_three_lines(
    pages: dict[str, Any], what: str, gapless: Gapless, job_for: Callable[..., Path]
) -> None:
    with served(PagedApi({"a": [pages], "b": [page(1)]})) as api:
        job_for(api.url)
        ran = gapless("check")
    assert ran.exit_status == 3
    assert len(ran.lines) == 3
    assert what in ran.lines[0]
    assert "partition a" in ran.lines[1]


def test_findings_of_the_job_file_stand_a_line_each(gapless: Gapless, job: Path) -> None:
    job.write_text(
        job.read_text(encoding="utf-8").replace("domain:", "domian:") + "surplus: 1\n", encoding="utf-8"
    )
    ran = gapless("check")
    assert ran.exit_status == 2
    assert ran.out == ""
    assert [line.split(": ")[0] for line in ran.lines] == ["orders.yaml:1", "orders.yaml:3", "orders.yaml:18"]
    assert "did you mean `domain`" in ran.lines[1]


def test_a_job_file_that_is_not_there(gapless: Gapless, job: Path) -> None:
    ran = gapless("check", "order.yaml")
    assert ran.exit_status == 2
    assert "did you mean `orders.yaml`?" in ran.err


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (
            "    tail: last_page\n",
            "stream: asks for the last page again, 1s later and, while nothing comes, up to 10s; looks",
        ),
        ("    tail: token\n", "stream: asks for the last page's token again, 1s later"),
        ("", "stream: would be refused: a stream has to know how the source is asked again"),
        ("    tail: since\n", "set pages.expired.restart: {param: ...}, or tail: last_page"),
    ],
)
def test_it_says_what_a_stream_would_do(gapless: Gapless, job: Path, pages: str, said: str) -> None:
    text = job.read_text(encoding="utf-8")
    job.write_text(text.replace("    records: events\n", f"    records: events\n{pages}"), encoding="utf-8")
    ran = gapless("check", "--offline")
    assert ran.exit_status == 0
    assert said in ran.err


def test_the_connections_of_a_run_are_told_where_a_server_counts_them() -> None:
    store = {
        "url": "postgresql+psycopg://db/p",
        "state": "new",
        "differences": [],
        "connections_per_process": 3,
    }
    told = (
        "    connections: at most (worker processes + 1) x 3; what PostgreSQL's max_connections has to allow"
    )
    assert told in list(_store_lines(store))
    assert len(list(_store_lines({**store, "connections_per_process": None}))) == 1
