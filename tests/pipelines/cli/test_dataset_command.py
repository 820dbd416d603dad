from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gapless.progress import Bound
from gapless_pipelines.cli.dataset_command import view_of
from gapless_pipelines.job.output_documents import DatasetDocument

Gapless = Callable[..., Any]


@pytest.fixture
def filled(orders: Any, job: Path) -> Any:
    """a: files through 10, 20, 30; b: through 15, one without a certificate, through 25. The frontier stands at 25."""
    orders.begin("a", "b")
    for position in (10, 20, 30):
        orders.promote("a", position)
    orders.promote("b", 15)
    orders.promote("b", None, rows=7)
    orders.promote("b", 25)
    orders.publish()
    return orders


def paths(ran: Any) -> list[str]:
    return [file["path"] for file in ran.document["files"]]


def test_it_lists_every_promoted_file_with_its_rows(gapless: Gapless, filled: Any) -> None:
    ran = gapless("dataset", "--json")
    DatasetDocument.model_validate(ran.document)
    assert ran.document["rows"] == 57
    assert ran.document["files"][0] == {
        "path": "/out/a-0.parquet",
        "partition": "a",
        "sequence": 0,
        "rows": 10,
        "bound": {"position": "10", "inclusive": True},
    }
    assert list(ran.document) == ["format", "scope", "lineage", "files", "rows"]


def test_files_that_are_gone_are_named_in_every_form_of_output(
    gapless: Gapless, orders: Any, job: Path, folder: Path
) -> None:
    orders.begin("a")
    there, gone = folder / "there.parquet", folder / "gone.parquet"
    there.touch()
    orders.promote("a", 10, path=str(there))
    assert gapless("dataset", "--json").err == ""
    orders.promote("a", 20, path=str(gone), rows=7)
    for form in ([], ["--json"], ["--duckdb"]):
        ran = gapless("dataset", *form)
        assert ran.exit_status == 0
        assert ran.lines[-1] == (
            f"not found here: 1 of 2 files, with 7 rows, the first {gone}:"
            " moved, deleted or on another machine; no backfill writes them again"
        )


def test_a_file_without_a_certificate_is_proved_as_far_as_those_before_it(
    gapless: Gapless, filled: Any
) -> None:
    file = gapless("dataset", "--json").document["files"][4]
    assert (file["path"], file["bound"]["position"]) == ("/out/b-1.parquet", "15")


def test_through_a_position_only_the_files_it_takes_are_listed(gapless: Gapless, filled: Any) -> None:
    assert paths(gapless("dataset", "--json", "--through", "10")) == ["/out/a-0.parquet", "/out/b-0.parquet"]
    assert paths(gapless("dataset", "--json", "--through", "11")) == [
        "/out/a-0.parquet",
        "/out/a-1.parquet",
        "/out/b-0.parquet",
    ]
    assert paths(gapless("dataset", "--json", "--through", "16")) == [
        "/out/a-0.parquet",
        "/out/a-1.parquet",
        "/out/b-0.parquet",
        "/out/b-1.parquet",
        "/out/b-2.parquet",
    ]


def test_an_exclusive_bound_does_not_hold_its_own_position(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", None, bound=Bound.before(10))
    orders.promote("a", 20)
    orders.publish()
    assert paths(gapless("dataset", "--json", "--through", "9")) == ["/out/a-0.parquet"]
    assert len(paths(gapless("dataset", "--json", "--through", "10"))) == 2


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--duckdb",)])
def test_through_what_is_not_complete_it_refuses(
    arguments: tuple[str, ...], gapless: Gapless, filled: Any
) -> None:
    ran = gapless("dataset", "--through", "26", *arguments)
    assert ran.exit_status == 3
    assert ran.out == ""
    assert ran.lines[0] == "gapless: not complete through 26: the frontier stands through 25"
    assert len(ran.lines) == 3


def test_without_a_frontier_nothing_is_complete_through_anything(
    gapless: Gapless, orders: Any, job: Path
) -> None:
    orders.begin("a", "b")
    orders.promote("a", 10)
    ran = gapless("dataset", "--through", "1")
    assert (ran.exit_status, ran.lines[0]) == (3, "gapless: not complete through 1: the frontier is withheld")
    assert len(paths(gapless("dataset", "--json"))) == 1


def test_pages_without_rows_have_no_file(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", 10, events=0, rows=0, path=None, digest=None)
    assert gapless("dataset", "--json").document == {
        "format": 1,
        "scope": "orders",
        "lineage": 1,
        "files": [],
        "rows": 0,
    }


def test_a_newcomers_files_are_not_in_the_data_set(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    orders.promote("a", 10)
    newcomer = next(row for row in orders.observe("a", "c") if row.partition == "c")
    orders.rows["c"] = orders.store.take(newcomer.chain, 1)
    orders.promote("c", 10)
    assert paths(gapless("dataset", "--json")) == ["/out/a-0.parquet"]


def test_a_reader_sees_files_and_sums(gapless: Gapless, filled: Any) -> None:
    lines = gapless("dataset").lines
    assert lines[:2] == [
        "orders: 57 rows in 6 files",
        "  /out/a-0.parquet: 10 rows, partition a, proved through 10",
    ]


def test_the_view_names_exactly_the_files(gapless: Gapless, filled: Any) -> None:
    ran = gapless("dataset", "--duckdb", "--through", "10")
    assert ran.out == (
        'CREATE OR REPLACE VIEW "orders" AS\n'
        "SELECT * FROM read_parquet([\n"
        "  '/out/a-0.parquet',\n"
        "  '/out/b-0.parquet'\n"
        "], union_by_name = true);\n"
    )


def test_names_are_quoted_in_the_view(filled: Any) -> None:
    from gapless.reading import DataFile

    sql = view_of('my "orders"', [DataFile("/out/it's.parquet", "a", 0, 1, None)])
    assert '"my ""orders"""' in sql
    assert "'/out/it''s.parquet'" in sql


def test_a_view_of_no_file_is_refused(gapless: Gapless, orders: Any, job: Path) -> None:
    orders.begin("a")
    ran = gapless("dataset", "--duckdb")
    assert (ran.exit_status, ran.out, len(ran.lines)) == (3, "", 3)


class TestVacuum:
    @pytest.fixture
    def files(self, orders: Any, folder: Path, job: Path) -> dict[str, Path]:
        """Files below out/ and dead/, as crashed runs 1 and the live run 2 left them; `listed` ones are in the store."""
        job.write_text(
            job.read_text(encoding="utf-8") + "dead_letters: {type: parquet, path: dead}\n", encoding="utf-8"
        )
        digest = "0123456789abcdef" * 2
        names = {
            "listed": f"out/orders/orders/a/000000000-1-{digest}.parquet",
            "lost": f"out/orders/orders/a/000000001-1-{digest}.parquet",
            "live": f"out/orders/orders/a/000000001-2-{digest}.parquet",
            "temporary": "out/orders/orders/a/.000000001-1-0123456789abcdef.tmp",
            "not ours": "out/orders/orders/a/notes.txt",
            "dead listed": f"dead/orders/a/000000000-1-{digest}.parquet",
            "dead lost": f"dead/orders/a/000000001-1-{digest}.parquet",
        }
        made = {name: folder / path for name, path in names.items()}
        for path in made.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
        orders.begin("a")
        from gapless.store.records import DeadLetter

        letter = DeadLetter("a", 0, "e3", 3, "no", "{}", str(made["dead listed"]))
        orders.promote("a", 10, path=str(made["listed"]), dead_letters=[letter])
        assert orders.store.take(orders.rows["a"].chain, 2) is not None
        return made

    def left(self, files: dict[str, Path]) -> set[str]:
        return {name for name, path in files.items() if path.exists()}

    def test_removes_what_no_run_can_list_any_more(self, gapless: Gapless, files: dict[str, Path]) -> None:
        ran = gapless("dataset", "--vacuum", "--json")
        assert ran.exit_status == 0, ran.err
        assert self.left(files) == {"listed", "live", "not ours", "dead listed"}
        gone = {str(files[name]) for name in ("lost", "temporary", "dead lost")}
        assert set(ran.document["removed"]) == gone

    def test_a_dry_run_only_says_so(self, gapless: Gapless, files: dict[str, Path]) -> None:
        ran = gapless("dataset", "--vacuum", "--dry-run")
        assert self.left(files) == set(files)
        assert ran.lines[-1] == "orders: 3 files to be removed"

    def test_it_goes_by_the_job_file_alone(self, gapless: Gapless, files: dict[str, Path]) -> None:
        for other in (["--through", "5"], ["--duckdb"], ["--store", "sqlite:///progress.db"]):
            assert gapless("dataset", "--vacuum", *other).exit_status == 2
        assert gapless("dataset", "--dry-run").exit_status == 2
        assert self.left(files) == set(files)

    def test_a_folder_that_is_not_there_holds_nothing(self, gapless: Gapless, orders: Any, job: Path) -> None:
        orders.begin("a")
        assert gapless("dataset", "--vacuum", "--json").document["removed"] == []
