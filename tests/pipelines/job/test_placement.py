"""Paths that a worker on another machine could not see are refused before anything is submitted."""

from typing import Any

import pytest

from gapless_pipelines.findings import InvalidConfiguration
from gapless_pipelines.job.document import Document
from gapless_pipelines.job.placement import refuse_unshared
from gapless_pipelines.options import engine_options, workers_elsewhere


def document(effect: str, letters: str | None = None, store: str = "postgresql+psycopg://db/x") -> Document:
    value: dict[str, Any] = {"effect": {"type": "parquet", "path": effect}, "store": {"url": store}}
    if letters is not None:
        value["dead_letters"] = {"path": letters}
    return Document(
        "job.yaml", value, {("effect", "path"): 3, ("dead_letters", "path"): 5, ("store", "url"): 7}
    )


def refused(found: Document, **how: Any) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        refuse_unshared(found, **{"remote": False, "elsewhere": False, **how})
    return str(caught.value).splitlines()


def test_on_this_machine_any_folder_will_do() -> None:
    refuse_unshared(document("out", "dead", "sqlite:///progress.db"), remote=False, elsewhere=False)


def test_a_job_file_in_object_storage_has_no_folder_for_relative_paths() -> None:
    assert refused(document("out", "../dead", "sqlite:///progress.db"), remote=True) == [
        "job.yaml:3: effect.path: `out` is relative, and a job file in object storage has no folder; an absolute path",
        "job.yaml:5: dead_letters.path: `../dead` is relative, and a job file in object storage has no folder; "
        "an absolute path",
        "job.yaml:7: store.url: is a relative SQLite file, and a job file in object storage has no folder; "
        "an absolute path: sqlite:////FOLDER/FILE",
    ]
    refuse_unshared(document("/out", store="sqlite:////p.db"), remote=True, elsewhere=False)


def test_a_folder_of_each_workers_own_would_lose_the_files() -> None:
    found = refused(document("/data/out"), elsewhere=True)
    assert len(found) == 1
    assert "`/data/out` would be a folder of each worker's own, and its files lost with it" in found[0]
    assert "shared_folder" in found[0]


@pytest.mark.parametrize("path", ["/mnt/shared", "/mnt/shared/out", "/mnt/shared/a/b"])
def test_a_folder_in_the_shared_one_will_do(path: str) -> None:
    refuse_unshared(document(path, path), remote=True, elsewhere=True, shared_folder="/mnt/shared")


@pytest.mark.parametrize("path", ["/mnt/shared2", "/mnt", "/mnt/shared/../x", "mnt/shared", "/other"])
def test_a_folder_beside_the_shared_one_will_not(path: str) -> None:
    found = refused(document("/mnt/shared/out", path), elsewhere=True, shared_folder="/mnt/shared")
    assert len(found) == 1
    assert found[0].startswith("job.yaml:5: dead_letters.path: ")
    assert found[0].endswith("; a folder in /mnt/shared, which the workers share")


@pytest.mark.parametrize(
    ("arguments", "elsewhere"),
    [
        ([], False),
        (["--runner=DirectRunner"], False),
        (["--runner=PrismRunner", "--environment_type=LOOPBACK"], False),
        (["--environment_type=EXTERNAL"], True),
        (["--runner=FlinkRunner"], True),
        (["--runner=FlinkRunner", "--environment_type=LOOPBACK"], False),
        (["--runner=DataflowRunner"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_workers_are_elsewhere_where_an_engine_may_put_them_on_other_machines(
    arguments: list[str], elsewhere: bool
) -> None:
    assert workers_elsewhere(engine_options({}, arguments)) is elsewhere


def test_the_job_files_own_word_of_a_shared_folder_counts_at_a_launch() -> None:
    found = document("/mnt/shared/out", "/mnt/shared/dead")
    found.value["shared_folder"] = "/mnt/shared"
    refuse_unshared(found, remote=True, elsewhere=True)
    found.value["shared_folder"] = "/mnt/other"
    assert [line.split(" ")[1] for line in refused(found, elsewhere=True)] == [
        "effect.path:",
        "dead_letters.path:",
    ]
