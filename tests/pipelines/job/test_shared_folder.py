"""Files that a worker on another machine would write into a folder of its own are refused before a job goes there."""

import re

import pytest

from gapless_pipelines.job import InvalidConfiguration

STORE = 'store: {url: "postgresql+psycopg://me@db/progress"}'
ELSEWHERE = ("--runner=FlinkRunner", "--flink_master=flink:8081", "--environment_type=EXTERNAL")
HERE = ("--runner=PrismRunner", "--environment_type=LOOPBACK")


def text(
    good: str, shared: str | None, effect: str = "/mnt/shared/out", dead: str = "/mnt/shared/dead"
) -> str:
    found = (
        re.sub(r"(?m)^store:.*$", STORE, good).replace("out/orders_dead", dead).replace("out/orders", effect)
    )
    found = re.sub(r"(?m)^pipeline_options:.*$", "pipeline_options: {runner: local}", found)
    return re.sub(r"(?m)^shared_folder:.*$", "" if shared is None else f"shared_folder: {shared}", found)


def refused(job, *arguments: str) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        job.engine(arguments)
    return [str(finding) for finding in caught.value.findings]


def test_without_a_shared_folder_each_folder_that_is_written_is_named(load, good):
    found = refused(load(text(good, None)), *ELSEWHERE)
    assert [line.split(": ")[1] for line in found] == ["effect.path", "dead_letters.path"]
    assert all("would be a folder of each worker's own, and its files lost with it" in line for line in found)
    assert all("shared_folder" in line for line in found)


@pytest.mark.parametrize("outside", ["out", "/mnt/other/out", "/mnt/shared/../out", "/mnt/shared-too/out"])
def test_a_folder_outside_the_shared_one_is_refused(load, good, outside):
    (found,) = refused(load(text(good, "/mnt/shared", outside)), *ELSEWHERE)
    assert "effect.path" in found
    assert "a folder in /mnt/shared, which the workers share" in found


def test_in_the_shared_folder_everything_may_be_written(load, good):
    assert load(text(good, "/mnt/shared")).engine(ELSEWHERE).engine == "FlinkRunner"


@pytest.mark.parametrize("arguments", [(), HERE])
def test_workers_of_this_machine_may_write_anywhere(load, good, arguments):
    assert load(text(good, None, "out", "dead")).engine(arguments)


def test_what_a_launch_says_of_the_shared_folder_stands_for_the_files_own_word(load, good):
    job = load(text(good, None))
    assert job.engine(ELSEWHERE, shared_folder="/mnt/shared").engine == "FlinkRunner"


@pytest.mark.parametrize("path", ["mnt/shared", "gs://bucket/folder", "~/shared"])
def test_a_shared_folder_is_an_absolute_local_path(load, good, path):
    with pytest.raises(InvalidConfiguration, match="shared_folder"):
        load(text(good, path))
