"""Disks that are full, folders that are forbidden or vanish: an error that says where and what to do, and nothing left behind."""

import errno
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from full_disk import no_file_may_grow_beyond

import gapless.effects.run_writer as run_writer
from gapless.effects import RunStart
from gapless.errors import EffectError
from gapless.paging.page import Page

MakePage = Callable[..., Page]

START = RunStart(1, "p0", 0, 1)


# What a file may hold before the system refuses to write on, as a full disk would.
ROOM = 4096


def large_page(make_page: MakePage) -> Page:
    return make_page([{"noise": os.urandom(4000).hex()} for _ in range(10)])


def test_a_write_that_fails_in_finish_leaves_nothing_and_says_where(bench: Any, make_page: MakePage) -> None:
    writer = bench.open().begin(START)
    writer.add(large_page(make_page), 0)
    with no_file_may_grow_beyond(ROOM), pytest.raises(EffectError, match="cannot write: ") as failed:
        writer.finish()
    assert failed.value.where == str(bench.folder / "orders" / "p0")
    assert failed.value.code == "unsettled_event"
    assert bench.files() == []
    writer.abandon()


def test_a_write_that_fails_in_the_encoding_thread_is_told_by_the_next_call(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 1)
    writer = bench.open().begin(START)
    with no_file_may_grow_beyond(ROOM):
        writer.add(large_page(make_page), 0)
        with pytest.raises(EffectError, match="cannot write: ") as first:
            writer.add(large_page(make_page), 1)
    assert bench.files() == []
    for call in (lambda: writer.add(large_page(make_page), 1), writer.finish):
        with pytest.raises(EffectError) as again:
            call()
        assert again.value is first.value
    writer.abandon()


def test_abandoning_a_run_whose_writes_fail_raises_nothing_and_removes_it(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 1)
    writer = bench.open().begin(START)
    with no_file_may_grow_beyond(ROOM):
        writer.add(large_page(make_page), 0)
        writer.abandon()
    assert bench.files() == []


def test_a_run_that_failed_does_not_stand_in_the_way_of_the_next(bench: Any, make_page: MakePage) -> None:
    session = bench.open()
    writer = session.begin(START)
    writer.add(large_page(make_page), 0)
    with no_file_may_grow_beyond(ROOM), pytest.raises(EffectError):
        writer.finish()
    page = large_page(make_page)
    bench.write(page, session=session)
    assert bench.rows() == page.rows


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EROFS, "let the user"),
        (errno.EIO, "operating system"),
        (errno.EMFILE, "ulimit"),
    ],
)
def test_each_step_that_the_system_refuses_ends_the_run_with_a_remedy(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch, call: str, number: int, remedy: str
) -> None:
    session = bench.open()
    bench.write(make_page([{"k": 1}]), session=session)
    listed = bench.files()
    writer = session.begin(START)
    writer.add(make_page([{"k": 2}]), 1)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(EffectError, match=os.strerror(number)) as failed:
            writer.finish()
    assert remedy in failed.value.remedy
    assert bench.files() == listed
    assert str(pickle.loads(pickle.dumps(failed.value))) == str(failed.value)


def test_a_path_below_a_file_is_refused_with_the_path(bench: Any, make_page: MakePage) -> None:
    bench.folder.write_text("a file")
    writer = bench.open().begin(START)
    writer.add(make_page([{"k": 1}]), 0)
    with pytest.raises(EffectError) as failed:
        writer.finish()
    assert failed.value.where == str(bench.folder / "orders" / "p0")
    assert bench.folder.read_text() == "a file"


def test_a_folder_that_vanished_is_an_error_and_not_quietly_made_anew(
    bench: Any, make_page: MakePage
) -> None:
    session = bench.open()
    bench.write(make_page([{"k": 1}]), session=session)
    shutil.rmtree(bench.folder)
    for _ in range(2):
        writer = session.begin(START)
        writer.add(make_page([{"k": 2}]), 1)
        with pytest.raises(EffectError) as failed:
            writer.finish()
        assert "restore it" in failed.value.remedy
    assert not bench.folder.exists()


def test_a_partitions_folder_that_vanished_is_told_once_and_then_made_again(
    bench: Any, make_page: MakePage
) -> None:
    session = bench.open()
    bench.write(make_page([{"k": 1}]), session=session)
    shutil.rmtree(bench.folder / "orders" / "p0")
    writer = session.begin(START)
    writer.add(make_page([{"k": 2}]), 1)
    with pytest.raises(EffectError, match="No such file"):
        writer.finish()
    bench.outputs.clear()
    bench.write(make_page([{"k": 2}]), session=session)
    assert bench.rows() == [{"k": 2}]


def test_a_folder_that_vanishes_under_an_open_run_loses_the_run_with_an_error(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 1)
    writer = bench.open().begin(START)
    writer.add(make_page([{"k": 1}]), 0)
    writer._await_encoding()
    shutil.rmtree(bench.folder)
    with pytest.raises(EffectError) as failed:
        writer.finish()
    assert "restore it" in failed.value.remedy


def test_a_file_that_cannot_be_opened_in_the_encoding_thread_is_told_by_the_next_call(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = bench.open()
    bench.write(make_page([{"k": 1}]), session=session)
    shutil.rmtree(bench.folder / "orders" / "p0")
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 1)
    writer = session.begin(START)
    writer.add(make_page([{"k": 2}]), 1)
    with pytest.raises(EffectError, match="cannot write: "):
        writer.finish()
    assert bench.files() == []


FORBIDDEN = """
import os, sys
from gapless.effects import ParquetEffect, RunStart
from gapless.errors import EffectError
from gapless.paging.page import Page
from gapless.progress import IntegerDomain
from gapless.testing.memory_schema_store import MemorySchemaStore

session = ParquetEffect(sys.argv[1]).open("orders", IntegerDomain(), MemorySchemaStore())
writer = session.begin(RunStart(1, "p0", 0, 1))
writer.add(Page(None, "t", False, ["a"], [1], [{"k": 1}]), 0)
if os.getuid() == 0:  # whom nothing is forbidden
    os.setgid(65534)
    os.setuid(65534)
try:
    writer.finish()
except EffectError as error:
    print(error)
"""


def test_a_folder_one_may_not_write_to_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "forbidden"
    folder.mkdir()
    folder.chmod(0o555)
    told = subprocess.run(
        [sys.executable, "-c", FORBIDDEN, str(folder)], capture_output=True, text=True, timeout=60, check=True
    ).stdout.splitlines()
    assert told[0] == "cannot write: Permission denied"
    assert told[1] == str(folder / "orders" / "p0")
    assert told[2].startswith("let the user that runs gapless create files there")
    assert list(folder.iterdir()) == []
