"""Whatever happens to a promoted file, or to what its record says of it, is found, and named."""

import os

from audited_scope import AuditedScope
from tampering import found, promoted

from gapless.store.records import MembershipPolicy


class TestFiles:
    def test_a_file_cut(self, history: AuditedScope) -> None:
        path = promoted(history, "a", 1)
        size = path.stat().st_size
        os.truncate(path, size - 7)
        cut = found(history, "file_differs", path=str(path), partition="a", sequence=1)
        assert cut.detail == f"it was cut: it holds {size - 7} bytes of {size}"
        assert history.codes() == ["file_differs"]

    def test_two_files_swapped(self, history: AuditedScope) -> None:
        first, second = promoted(history, "a", 0), promoted(history, "a", 2)
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
        contradictions = history.audit().contradictions
        assert [(one.code, one.path) for one in contradictions] == [
            ("file_differs", str(first)),
            ("file_differs", str(second)),
        ]

    def test_a_byte_changed(self, history: AuditedScope) -> None:
        path = promoted(history, "c", 0)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert found(history, "file_differs", path=str(path)).detail.startswith("its content is another one")

    def test_a_file_removed(self, history: AuditedScope) -> None:
        path = promoted(history, "b", 0)
        path.unlink()
        removed = found(history, "file_missing", path=str(path))
        assert removed.detail == "it is not there: moved, deleted, or on another machine"

    def test_a_file_that_cannot_be_read(self, history: AuditedScope) -> None:
        path = promoted(history, "b", 0)
        path.unlink()
        path.mkdir()
        assert found(history, "file_unreadable", path=str(path))

    def test_a_record_that_names_another_whole_file(self, history: AuditedScope) -> None:
        path = promoted(history, "a", 0)
        history.sql(
            "UPDATE gapless_promotion SET path = :path WHERE chain = :chain AND sequence = 1",
            path=str(path),
            chain=history.chain("a"),
        )
        assert found(history, "file_differs", sequence=1)
        assert found(history, "file_listed_twice", path=str(path))

    def test_rows_that_are_said_to_be_in_it(self, history: AuditedScope) -> None:
        history.sql("UPDATE gapless_promotion SET rows = rows + 1 WHERE sequence = 0")
        assert "and 10 rows; its record says" in found(history, "file_rows_differ", partition="c").detail

    def test_a_candidates_file_counts_as_well(self, history: AuditedScope) -> None:
        history.observe("a", "c", "n", generation="r2", policy=MembershipPolicy(moves="never behind"))
        history.promote("n", 5)
        promoted(history, "n", 0).unlink()
        assert found(history, "file_missing", partition="n")
