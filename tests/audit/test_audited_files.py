"""Files as an audit looks at them: data files by their records, those of dead letters by their names."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audited_scope import AuditedScope

from gapless.audit.files import Look, look_at
from gapless.store import evidence


def dead_letter_file(folder: Path, rows: int) -> Path:
    """Named by the digest of its content, as the effect names it."""
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "new"
    pq.write_table(pa.table({"_event_id": [str(number) for number in range(rows)]}), written)
    digest = hashlib.sha256(written.read_bytes()).hexdigest()
    return written.rename(folder / f"000000000-1-{digest[:32]}.parquet")


@pytest.fixture
def with_dead_letters(orders: AuditedScope, tmp_path: Path) -> Callable[[int], Path]:
    """Two dead letters in a file with that many rows."""

    def make(rows: int) -> Path:
        path = dead_letter_file(tmp_path / "dead", rows)
        orders.observe("a")
        letters = [replace(orders.letter("a", f"e{n}", n), path=str(path)) for n in (1, 2)]
        orders.promote("a", 10, rows=8, dead_letters=letters)
        return path

    return make


class TestDeadLetterFiles:
    def test_one_that_holds_them_is_clean(
        self, orders: AuditedScope, with_dead_letters: Callable[[int], Path]
    ) -> None:
        with_dead_letters(2)
        report = orders.audit()
        assert report.clean, report.contradictions
        assert report.checked.files == 2

    def test_one_that_is_gone(self, orders: AuditedScope, with_dead_letters: Callable[[int], Path]) -> None:
        path = with_dead_letters(2)
        path.unlink()
        (one,) = orders.audit().contradictions
        assert (one.code, one.path) == ("file_missing", str(path))

    def test_one_with_other_content(
        self, orders: AuditedScope, with_dead_letters: Callable[[int], Path]
    ) -> None:
        path = with_dead_letters(2)
        pq.write_table(pa.table({"_event_id": ["1", "2"]}), path, compression="none")
        (one,) = orders.audit().contradictions
        assert (one.code, one.path) == ("file_differs", str(path))

    def test_one_that_holds_fewer(
        self, orders: AuditedScope, with_dead_letters: Callable[[int], Path]
    ) -> None:
        with_dead_letters(1)
        (one,) = orders.audit().contradictions
        assert (one.code, one.detail) == (
            "file_rows_differ",
            "it holds 1 rows; 2 dead letters are said to be in it",
        )


def test_a_look_reads_size_digest_and_rows(tmp_path: Path) -> None:
    path = dead_letter_file(tmp_path, 7)
    content = path.read_bytes()
    assert look_at(str(path)) == Look(len(content), hashlib.sha256(content).hexdigest(), 7)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no Parquet file at all", b"PAR1\x00\x00\x00\x00PAR1"])
def test_a_look_at_what_is_no_parquet_file_counts_no_rows(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    assert look_at(str(path)).rows is None


def test_every_file_is_looked_at_over_many_readings_of_the_store(
    each_orders: AuditedScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "FILES_AT_ONCE", 3)
    each_orders.observe("a", "b", "c")
    for name in ("a", "b", "c"):
        for number in range(1, 5):
            each_orders.promote(name, number)
    looked: list[str] = []

    def look(path: str) -> Look:
        looked.append(path)
        return look_at(path)

    assert each_orders.audit(look=look).clean
    assert len(looked) == len(set(looked)) == 12
