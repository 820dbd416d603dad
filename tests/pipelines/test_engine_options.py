"""Beam's options: what is taken, what Beam would silently drop, and what gapless refuses with a reason."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from apache_beam.options.pipeline_options import (
    DebugOptions,
    DirectOptions,
    GoogleCloudOptions,
    StandardOptions,
    TypeOptions,
    WorkerOptions,
)

from gapless.errors import ConfigurationError
from gapless_pipelines.findings import InvalidConfiguration
from gapless_pipelines.options import LOCAL, EngineOptions, engine_options, option_problems

SQLITE = "sqlite:////tmp/progress.db"
POSTGRESQL = "postgresql+psycopg://me@db/progress"


def chosen(options: Mapping[str, object], *arguments: str, store_url: str = POSTGRESQL) -> EngineOptions:
    return engine_options(options, arguments, store_url=store_url)


def refused(options: Mapping[str, object], *arguments: str, store_url: str = POSTGRESQL) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        engine_options(options, arguments, store_url=store_url)
    assert isinstance(caught.value, ConfigurationError)
    return [str(finding) for finding in caught.value.findings]


def test_the_default_is_beams_local_runner_by_its_own_name() -> None:
    engine = chosen({})

    assert (engine.engine, engine.workers) == (LOCAL, None)
    assert engine.pipeline_options().view_as(StandardOptions).runner == "FnApiRunner"


def test_what_is_known_without_beam_comes_out_as_beam_itself_would_read_it() -> None:
    cheap = chosen({"runner": "local", "direct_num_workers": 4})
    by_beam = chosen({"runner": "local", "direct_num_workers": 4, "streaming": False})

    assert (cheap.engine, cheap.workers) == (by_beam.engine, by_beam.workers) == ("local", 4)
    assert cheap.pipeline_options().get_all_options() == by_beam.pipeline_options().get_all_options()


@pytest.mark.parametrize(
    ("options", "imported"),
    [
        ({}, False),
        ({"runner": "local"}, False),
        ({"runner": "local", "direct_num_workers": 8}, False),
        ({"runner": "prism"}, True),
    ],
)
def test_beam_is_imported_only_for_its_own_options(options: dict[str, object], imported: bool) -> None:
    program = (
        "import json, sys; from gapless_pipelines.options import option_problems; "
        "option_problems(json.loads(sys.argv[1]), None); print('apache_beam' in sys.modules)"
    )

    run = subprocess.run(
        [sys.executable, "-c", program, json.dumps(options)], capture_output=True, text=True, check=True
    )

    assert run.stdout.strip() == str(imported)


def test_json_values_become_beams_options() -> None:
    options: dict[str, Any] = {
        "streaming": True,
        "experiments": ["a", "b=c"],
        "use_public_ips": False,
        "no_pipeline_type_check": True,
        "direct_runner_use_stacked_bundle": False,
        "num_workers": 3,
        "labels": ["team=data"],
        "sdk_harness_log_level_overrides": {"gapless": "DEBUG"},
        "dry_run": True,
        "project": "p1",
    }

    beam = chosen(options).pipeline_options()

    assert beam.view_as(StandardOptions).streaming is True
    assert beam.view_as(DebugOptions).experiments == ["a", "b=c"]
    assert beam.view_as(WorkerOptions).use_public_ips is False
    assert beam.view_as(WorkerOptions).num_workers == 3
    assert beam.view_as(WorkerOptions).sdk_harness_log_level_overrides == {"gapless": "DEBUG"}
    assert beam.view_as(TypeOptions).pipeline_type_check is False
    assert beam.view_as(DirectOptions).direct_runner_use_stacked_bundle is False
    assert beam.view_as(GoogleCloudOptions).labels == ["team=data"]
    assert beam.view_as(GoogleCloudOptions).project == "p1"


def test_the_command_line_comes_after_the_job_file() -> None:
    engine = chosen(
        {"runner": "dataflow", "direct_num_workers": 2}, "--runner=local", "--direct_num_workers", "3"
    )

    assert (engine.engine, engine.workers) == ("local", 3)
    beam = engine.pipeline_options()
    assert beam.view_as(StandardOptions).runner == "FnApiRunner"
    assert beam.view_as(DirectOptions).direct_num_workers == 3


def test_values_may_stand_apart_and_may_be_negative() -> None:
    engine = chosen({}, "--parallelism", "-1", "--experiments", "a", "--experiments=b")

    assert engine.pipeline_options().view_as(DebugOptions).experiments == ["a", "b"]


@pytest.mark.parametrize(
    ("written", "engine"),
    [
        ("local", "local"),
        ("LOCAL", "local"),
        ("FnApiRunner", "local"),
        ("apache_beam.runners.portability.fn_api_runner.FnApiRunner", "local"),
        ("DirectRunner", "DirectRunner"),
        ("direct", "DirectRunner"),
        ("prismrunner", "PrismRunner"),
        ("Flink", "FlinkRunner"),
        ("my_company.runners.OwnRunner", "my_company.runners.OwnRunner"),
    ],
)
def test_a_runner_is_named_as_beam_lets_it_be_named(written: str, engine: str) -> None:
    assert chosen({"runner": written}).engine == engine


# --- what Beam would not take, or silently drop ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        (
            {"direct_num_worker": 3},
            "direct_num_worker: is no option of Beam's; did you mean `direct_num_workers`?",
        ),
        ({"zzz": 3}, "zzz: is no option of Beam's; a pipeline option of Apache Beam, by its name"),
        (
            {"direct_num_workers": "many"},
            "direct_num_workers: invalid int value: 'many'; a value that Beam takes",
        ),
        (
            {"direct_num_workers": True},
            "direct_num_workers: invalid int value: 'true'; a value that Beam takes",
        ),
        ({"streaming": "yes"}, "streaming: is a switch; true or false"),
        (
            {"enable_streaming_engine": False},
            "enable_streaming_engine: cannot be switched off in Beam; true, or",
        ),
        ({"project": None}, "project: is null; a value, or leave the option out"),
        ({"project": ["a", "b"]}, "project: is a list; one value"),
        (
            {"flexrs_goal": "FAST"},
            "flexrs_goal: `FAST` is none of its values; COST_OPTIMIZED, SPEED_OPTIMIZED",
        ),
        ({"runner": "lokal"}, "runner: `lokal` is no engine that gapless runs on; did you mean `local`?"),
        ({"runner": "apache_beam.runners.Wrong"}, "runner: `apache_beam.runners.Wrong` is no engine"),
    ],
)
def test_a_wrong_option_of_the_job_file_is_an_error(options: dict[str, object], finding: str) -> None:
    (told,) = refused(options)

    assert told.startswith(f"job file: pipeline_options.{finding}")


def test_every_wrong_word_of_the_command_line_is_told() -> None:
    told = refused(
        {}, "--direct_num_worker", "4", "--runner", "prism", "stray", "-x", "--project", "--streaming=true"
    )

    assert [line.split("; ")[0] for line in told] == [
        "command line: --direct_num_worker: is no option of Beam's",
        "command line: --runner: `stray` belongs to no option",
        "command line: -x: is no option of Beam's",
        "command line: --project: expected one argument",
        "command line: --streaming: takes no value",
    ]


@pytest.mark.parametrize("word", ["stray", "--help", "-h"])
def test_a_word_that_beam_would_answer_or_drop_is_an_error(word: str) -> None:
    assert refused({}, word) == [
        f"command line: {word}: is no option of Beam's; a pipeline option of Apache Beam, by its name"
    ]


# --- what gapless refuses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["multi_threading", "multi_processing"])
@pytest.mark.parametrize("from_job", [True, False])
def test_running_modes_that_lose_data_are_refused(mode: str, from_job: bool) -> None:
    if from_job:
        (told,) = refused({"direct_running_mode": mode})
        assert told.startswith(f"job file: pipeline_options.direct_running_mode: {mode} loses ")
    else:
        (told,) = refused({}, f"--direct_running_mode={mode}")
        assert told.startswith(f"command line: --direct_running_mode: {mode} loses ")
    assert told.endswith("in_memory, which reads as many partitions at once as direct_num_workers says")


@pytest.mark.parametrize(
    ("runner", "reason"),
    [
        ("DaskRunner", "has neither state nor splittable DoFns"),
        ("dask", "has neither state nor splittable DoFns"),
        ("apache_beam.runners.dask.dask_runner.DaskRunner", "has neither state nor splittable DoFns"),
        ("BundleBasedDirectRunner", "fails on splittable DoFns"),
    ],
)
def test_runners_that_cannot_read_partitions_are_refused(runner: str, reason: str) -> None:
    (told,) = refused({}, "--runner", runner)

    assert reason in told
    assert told.endswith(
        "allowed: local, DirectRunner, PrismRunner, DataflowRunner, FlinkRunner, SparkRunner, PortableRunner"
    )


def test_a_classic_template_is_refused() -> None:
    (told,) = refused({"runner": "DataflowRunner", "template_location": "gs://b/t"})

    assert "every start would be the same run; a Flex Template" in told


@pytest.mark.parametrize("name", ["s3_secret_access_key", "s3_session_token", "azure_connection_string"])
def test_a_secret_among_the_options_is_refused_and_not_repeated(name: str) -> None:
    for told in (refused({name: "hunter2"}), refused({}, f"--{name}=hunter2")):
        assert "holds a secret" in told[0]
        assert "hunter2" not in told[0]


ELSEWHERE: list[tuple[dict[str, object], Sequence[str]]] = [
    ({"runner": "DataflowRunner"}, ()),
    ({"runner": "FlinkRunner"}, ()),
    ({"runner": "SparkRunner"}, ()),
    ({"runner": "PortableRunner"}, ()),
    ({"runner": "my_company.runners.OwnRunner"}, ()),
    ({"runner": "PrismRunner", "environment_type": "EXTERNAL"}, ()),
    ({"runner": "PrismRunner", "environment_type": "DOCKER"}, ()),
    ({"runner": "PrismRunner", "output_executable_path": "job.jar"}, ()),
    ({"runner": "DirectRunner", "environment_type": "PROCESS"}, ()),
    ({}, ("--runner=DataflowRunner",)),
    ({"runner": "PrismRunner"}, ("--environment_type=EXTERNAL",)),
]
HERE: list[tuple[dict[str, object], Sequence[str]]] = [
    ({}, ()),
    ({"runner": "DirectRunner"}, ()),
    ({"runner": "PrismRunner"}, ()),
    ({"runner": "PrismRunner", "environment_type": "LOOPBACK"}, ()),
    ({"runner": "FlinkRunner", "environment_type": "LOOPBACK"}, ()),
    ({"runner": "PortableRunner"}, ("--environment_type", "LOOPBACK")),
    ({"runner": "DataflowRunner"}, ("--runner=local",)),
]


@pytest.mark.parametrize(("options", "arguments"), ELSEWHERE)
def test_sqlite_is_refused_where_workers_may_be_elsewhere_and_postgresql_is_named(
    options: dict[str, object], arguments: Sequence[str]
) -> None:
    (told,) = refused(options, *arguments, store_url=SQLITE)

    assert "may " in told
    assert "on other machines, where a SQLite file is not; a PostgreSQL store (postgresql+psycopg://" in told
    assert told.startswith("command line: --" if arguments else "job file: pipeline_options.")
    assert chosen(options, *arguments, store_url=POSTGRESQL)


@pytest.mark.parametrize(("options", "arguments"), HERE)
def test_sqlite_serves_workers_of_this_process(options: dict[str, object], arguments: Sequence[str]) -> None:
    assert chosen(options, *arguments, store_url=SQLITE)


def test_without_a_store_only_the_options_themselves_are_judged() -> None:
    assert option_problems({"runner": "DataflowRunner"}, None) == []
    assert [problem.name for problem in option_problems({"runner": "dask"}, None)] == ["runner"]
