from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

Gapless = Callable[..., Any]


def three_lines(ran: Any, status: int = 2) -> list[str]:
    """What an error said, its three lines."""
    assert ran.exit_status == status
    assert ran.out == ""
    assert len(ran.lines) == 3, ran.err
    what, where, remedy = ran.lines
    assert what.startswith("gapless: ")
    assert where.startswith("  where: ")
    assert remedy.startswith("  to do: ")
    return [what.removeprefix("gapless: "), where.removeprefix("  where: "), remedy.removeprefix("  to do: ")]


def test_a_job_file_is_named_or_found_or_replaced_by_a_store(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a")
    for named in (
        [],
        ["orders.yaml"],
        [str(job)],
        ["--scope", "orders"],
        ["--store", "sqlite:///progress.db"],
        ["--store", "sqlite:///progress.db", "--scope", "orders"],
    ):
        ran = gapless("status", *named, "--json")
        assert ran.exit_status == 0, ran.err
        assert ran.document["scope"] == "orders"


def test_a_job_file_and_a_store_say_it_twice(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    what, where, _ = three_lines(gapless("status", "orders.yaml", "--store", "sqlite:///progress.db"))
    assert "said twice" in what
    assert where == "orders.yaml"


def test_a_scope_that_the_job_file_here_is_not_about(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    what, _, remedy = three_lines(gapless("status", "--scope", "invoices"))
    assert what == "the job file here is about scope orders, not invoices"
    assert "--store" in remedy


def test_without_a_job_file_and_without_a_store_nothing_is_meant(gapless: Gapless, folder: Path) -> None:
    what, where, remedy = three_lines(gapless("status"))
    assert what == "there is no job file here"
    assert str(folder) in where
    assert "gapless schema --example http" in remedy


def test_two_job_files_are_one_too_many(gapless: Gapless, orders: Any, job: Path, folder: Path) -> None:
    (folder / "other.yaml").write_text(job.read_text(encoding="utf-8"), encoding="utf-8")
    what, _, remedy = three_lines(gapless("status"))
    assert what == "there are 2 job files here"
    assert "orders.yaml, other.yaml" in remedy


def test_other_yaml_files_are_no_job_files(gapless: Gapless, orders: Any, job: Path, folder: Path) -> None:
    orders.begin("a")
    (folder / "compose.yaml").write_text("services: {}\n", encoding="utf-8")
    assert gapless("status").exit_status == 0


def test_a_store_of_several_scopes_needs_a_name(gapless: Gapless, orders: Any, folder: Path) -> None:
    orders.begin("a")
    with closing(orders.__class__("sqlite:///progress.db", scope="invoices").store) as store:
        store.register_scope(_identity(orders, "invoices"))
    what, where, remedy = three_lines(gapless("status", "--store", "sqlite:///progress.db"))
    assert what == "the store holds 2 scopes"
    assert where == "sqlite:///progress.db"
    assert remedy == "--scope with one of invoices, orders"
    assert gapless("status", "--store", "sqlite:///progress.db", "--scope", "invoices").exit_status == 0


def _identity(orders: Any, scope: str) -> Any:
    from gapless.store.records import ScopeIdentity

    return ScopeIdentity(scope, orders.domain, {"path": "/invoices"})


def test_an_unknown_scope_names_those_that_are_there(gapless: Gapless, orders: Any, folder: Path) -> None:
    orders.begin("a")
    _, _, remedy = three_lines(gapless("explain", "--store", "sqlite:///progress.db", "--scope", "order"))
    assert remedy == "scopes of this store: orders"


def test_an_empty_store_holds_no_scope_yet(gapless: Gapless, orders: Any, folder: Path) -> None:
    what, _, _ = three_lines(gapless("status", "--store", "sqlite:///progress.db"))
    assert what == "the store holds no scope yet"


def test_a_store_that_is_not_there_is_not_created(gapless: Gapless, job: Path, folder: Path) -> None:
    what, _, remedy = three_lines(gapless("status"))
    assert "no store" in what
    assert "backfill" in remedy
    assert not (folder / "progress.db").exists()


def test_a_password_in_a_url_is_refused_without_being_repeated(gapless: Gapless, folder: Path) -> None:
    ran = gapless("status", "--store", "postgresql://me:hunter2@db/progress")
    three_lines(ran)
    assert "hunter2" not in ran.err


def test_a_store_of_an_unknown_kind_is_refused(gapless: Gapless, folder: Path) -> None:
    three_lines(gapless("status", "--store", "mysql://db/progress"))


def test_reading_changes_nothing(gapless: Gapless, orders: Any, job: Path, folder: Path) -> None:
    orders.begin("a", "b")
    orders.promote("a", 100)
    orders.hold("b")
    before = list(orders.store._database.read(lambda c: c.connection.driver_connection.iterdump()))
    for command in (["status"], ["explain"], ["violations"], ["dataset"], ["dead-letters", "list"]):
        assert gapless(*command).exit_status == 0
    assert gapless("wait", "--through", "5", "--timeout", "0s").exit_status == 3
    assert list(orders.store._database.read(lambda c: c.connection.driver_connection.iterdump())) == before
