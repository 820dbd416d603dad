"""Files that are no job files: each is told at its place, and never read whole."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gapless_pipelines.job import InvalidConfiguration, load_job

Spoil = Callable[..., list[str]]


def test_a_file_that_is_not_there_names_one_that_is(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text("version: 1\n", encoding="utf-8")

    with pytest.raises(InvalidConfiguration) as caught:
        load_job(tmp_path / "order.yaml", {})

    wanted, there = tmp_path / "order.yaml", tmp_path / "orders.yaml"
    assert str(caught.value) == f"{wanted}: (top level): there is no such file; did you mean `{there}`?"


def test_a_folder_is_no_job_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="is a folder"):
        load_job(tmp_path, {})


def test_a_file_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"version: 1\nscope: caf\xe9\n")

    with pytest.raises(InvalidConfiguration) as caught:
        load_job(path, {})

    assert str(caught.value) == f"{path}:2: (top level): is not UTF-8 here; text in UTF-8"


def test_a_file_larger_than_any_job_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024)

    with pytest.raises(InvalidConfiguration, match="is larger than 16 MiB"):
        load_job(path, {})
