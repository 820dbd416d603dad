"""Names of files and folders, twins, and the sweep, which takes what nobody can list any more and nothing else."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gapless.effects.files as files
import gapless.effects.run_writer as run_writer
from gapless.effects import RunStart, sweep
from gapless.effects.files import encoded_name, file_digest
from gapless.paging.page import Page

MakePage = Callable[..., Page]


@given(st.lists(st.text(max_size=200), min_size=2, max_size=2, unique=True))
def test_different_names_have_different_file_names_that_any_folder_can_have(names: list[str]) -> None:
    one, other = map(encoded_name, names)
    assert one != other
    for encoded in (one, other):
        assert 0 < len(encoded) <= 120
        assert encoded.isascii()
        assert not set(encoded) & set("/\\=*?\0 ")
        assert encoded[0] not in "._"


@pytest.mark.parametrize(
    "name", ["..", ".", "", "_hidden", ".hidden", "a/../b", "x=1", "~", "é" * 100, "a" * 5000, "\ud800"]
)
def test_every_name_can_be_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / encoded_name(name)).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [encoded_name(name)]


def test_a_long_name_keeps_a_readable_head_and_no_half_of_an_escape() -> None:
    encoded = encoded_name("é" * 100)
    head, _, tail = encoded.partition("~")
    assert len(head) > 80
    assert ("é" * 100).encode().startswith(unquote_to_bytes(head))
    assert len(tail) == 32


@pytest.mark.parametrize("name", ["p0001", "EWR", "2024-01-01", "a.b_c"])
def test_plain_names_stay_as_they_are(name: str) -> None:
    assert encoded_name(name) == name


def test_twins_that_saw_other_page_boundaries_write_files_of_their_own(
    bench: Any, make_page: MakePage
) -> None:
    start = RunStart(1, "p0", 0, 7)
    one, other = bench.open().begin(start), bench.open().begin(start)
    one.add(make_page([{"k": 1}, {"k": 2}, {"k": 3}]), 0)
    other.add(make_page([{"k": 1}, {"k": 2}]), 0)
    bench.outputs.append(one.finish())
    late = other.finish()
    assert bench.rows() == [{"k": 1}, {"k": 2}, {"k": 3}]
    assert late.path != bench.outputs[0].path
    assert file_digest(bench.outputs[0].path) == bench.outputs[0].digest


def test_twins_with_the_same_content_may_share_a_file(bench: Any, make_page: MakePage) -> None:
    one, other = (bench.write(make_page([{"k": 1}])) for _ in range(2))
    assert one == other
    assert len(bench.files()) == 1


def test_an_unfinished_file_is_hidden_from_readers_of_the_folder(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 1)
    writer = bench.open().begin(RunStart(1, "p0", 3, 9))
    writer.add(make_page([{"k": 1}]), 3)
    (name,) = bench.files()
    assert Path(name).name.startswith(".000000003-9-")
    writer.abandon()


def test_files_and_folders_are_synced_before_and_after_the_rename(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def traced_fsync(descriptor: int) -> None:
        done.append(f"fsync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        fsync(descriptor)

    def traced_replace(source: Any, target: Any) -> None:
        done.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(os, "replace", traced_replace)
    bench.write(make_page([{"k": 1}]))
    made, written = done[: done.index("fsync orders") + 1], done[done.index("fsync orders") + 1 :]
    # The folders' entries in those above them, up to the one that was there before.
    assert {f"fsync {bench.folder.name}", f"fsync {bench.folder.parent.name}", "fsync orders"} <= set(made)
    assert written[0].startswith("fsync .000000000-1-")
    assert written[1:] == ["rename", "fsync p0"]


class Swept:
    """A folder with one file of each kind, and what sweeping it leaves."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(
        self, partition: str, fence: int, suffix: str = "a", scope: str = "orders", temporary: bool = False
    ) -> str:
        folder = self.root / encoded_name(scope) / encoded_name(partition)
        folder.mkdir(parents=True, exist_ok=True)
        name = (
            f".000000000-{fence}-{suffix * 16}.tmp"
            if temporary
            else f"000000000-{fence}-{suffix * 32}.parquet"
        )
        (folder / name).write_text(suffix)
        return str(folder / name)

    def sweep(
        self, fencing_tokens: dict[str, int], listed: list[str] | None = None, **options: Any
    ) -> set[str]:
        return set(sweep(self.root, "orders", listed=listed or [], fencing_tokens=fencing_tokens, **options))


@pytest.fixture
def swept(tmp_path: Path) -> Swept:
    return Swept(tmp_path)


def test_the_sweep_takes_unlisted_files_and_leftovers_below_the_fence_only(swept: Swept) -> None:
    below = {swept.put("p0", 4), swept.put("p0", 3, temporary=True)}
    kept = {
        swept.put("p0", 5),
        swept.put("p0", 6),
        swept.put("p0", 5, temporary=True),
        swept.put("p0", 7, temporary=True),
    }
    assert swept.sweep({"p0": 5}, dry_run=True) == below
    assert all(os.path.exists(path) for path in below)
    assert swept.sweep({"p0": 5}) == below
    assert not any(os.path.exists(path) for path in below)
    assert all(os.path.exists(path) for path in kept)
    assert swept.sweep({"p0": 5}) == set()


def test_the_sweep_never_takes_a_listed_file_however_the_folder_is_reached(
    swept: Swept, tmp_path: Path
) -> None:
    listed = swept.put("p0", 1)
    (tmp_path / "link").symlink_to(swept.root, target_is_directory=True)
    for path in (
        listed,
        str(tmp_path / "link" / "orders" / "p0" / Path(listed).name),
        f"/elsewhere/p0/{Path(listed).name}",
    ):
        assert swept.sweep({"p0": 9}, [path]) == set()
    assert os.path.exists(listed)


def test_a_file_of_the_same_name_in_another_partition_does_not_count_as_listed(swept: Swept) -> None:
    listed, other = swept.put("p0", 1), swept.put("p1", 1)
    assert swept.sweep({"p0": 9, "p1": 9}, [listed]) == {other}


def test_the_sweep_leaves_partitions_it_was_told_nothing_of_and_other_scopes(swept: Swept) -> None:
    swept.put("unknown", 1)
    swept.put("p0", 1, scope="other")
    assert swept.sweep({"p0": 9}) == set()


def test_the_sweep_leaves_files_that_gapless_did_not_name(swept: Swept) -> None:
    folder = Path(swept.put("p0", 9)).parent
    for name in (
        "notes.txt",
        "000000000-1-short.parquet",
        ".hidden.tmp",
        "000000000-1-" + "A" * 32 + ".parquet",
    ):
        (folder / name).write_text("mine")
    assert swept.sweep({"p0": 9}) == set()


def test_partitions_that_one_folder_may_hold_are_swept_by_the_lower_fence(swept: Swept) -> None:
    # On a file system that ignores case, A and a are one folder.
    path = swept.put("A", 4)
    assert swept.sweep({"A": 9, "a": 3}) == set()
    assert swept.sweep({"a": 3, "A": 9}) == set()
    assert os.path.exists(path)


def test_sweeping_a_folder_that_does_not_exist_finds_nothing(swept: Swept) -> None:
    assert swept.sweep({"p0": 9}) == set()


def test_the_sweep_knows_the_names_that_the_effect_gives(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 1)
    finished = bench.write(make_page([{"k": 1}]), partition="a/b")
    open_writer = bench.open().begin(RunStart(1, "a/b", 0, 1))
    open_writer.add(make_page([{"k": 2}]), 0)
    both = {str(bench.folder / name) for name in bench.files()}
    assert finished.path in both
    assert set(sweep(bench.folder, "orders", listed=[], fencing_tokens={"a/b": 1})) == set()
    assert set(sweep(bench.folder, "orders", listed=[], fencing_tokens={"a/b": 2}, dry_run=True)) == both
    assert set(sweep(bench.folder, "orders", listed=[finished.path], fencing_tokens={"a/b": 2})) == both - {
        finished.path
    }
    open_writer.abandon()


def test_a_digest_is_that_of_the_content_also_beyond_one_read(tmp_path: Path) -> None:
    import hashlib

    content = os.urandom(3_000_000)
    (tmp_path / "f").write_bytes(content)
    assert files.file_digest(tmp_path / "f") == hashlib.sha256(content).hexdigest()
