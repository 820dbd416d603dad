"""What a good job file becomes."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.effects.dead_letters import ParquetDeadLetters
from gapless.effects.growing_file import COMPRESSIONS
from gapless.effects.parquet import ParquetEffect
from gapless.errors import ConfigurationError
from gapless.paging.secrets import SecretReference
from gapless.paging.source import Range
from gapless.progress import IntegerDomain, ListDomain, TextDomain, TimestampDomain
from gapless.settling.retrying import RetryPolicy
from gapless_pipelines.job import InvalidConfiguration, Job, find_job_file, load_job, store_of
from gapless_pipelines.job.description import describe
from gapless_pipelines.job.models import ParquetEffectConfig

Load = Callable[[str], Job]
ENVIRONMENT = {"ORDERS_URL": "http://127.0.0.1:8080/v1", "LIMIT": "7", "NAME": "orders_2"}


def test_every_key_reaches_the_part_it_is_about(load: Load, good: str, tmp_path: Path) -> None:
    job = load(good)

    assert (job.path, job.scope, job.domain) == (tmp_path / "job.yaml", "orders", IntegerDomain())
    assert job.range() == Range(0, None)
    assert job.effect() == ParquetEffect(
        path=str(tmp_path / "out/orders"),
        target_rows=5000,
        compression="snappy",
        schema={"amount_cents": "int64"},
        on_drift="hold",
    )
    assert job.dead_letters() == ParquetDeadLetters(path=str(tmp_path / "out/orders_dead"))
    assert job.retry() == RetryPolicy(attempts=3, backoff=0.1, maximum=2.0)
    assert job.config.membership.on_change == "hold"
    assert job.store.url == f"sqlite:///{tmp_path}/progress.db"
    engine = job.engine()
    assert (engine.engine, engine.workers) == ("local", 2)


def test_the_source_is_described_by_the_files_own_keys(load: Load, good: str) -> None:
    source = load(good).source()

    assert (source.scope, source.domain, source.range) == ("orders", IntegerDomain(), Range(0, None))
    assert source.basis() == "certified"
    config = source.config
    assert config.base_url == "http://127.0.0.1:8080/v1"
    assert (config.client.timeout.connect, config.client.retry.backoff, config.client.retry.max) == (
        10,
        0.5,
        900,
    )


def test_what_is_left_out_has_the_documented_default(load: Load, tmp_path: Path) -> None:
    job = load(
        """
version: 1
scope: orders
domain: {type: integer}
source:
  type: http
  base_url: http://127.0.0.1
  partitions: {list: [eu]}
  pages: {path: /events, records: e, next: {type: cursor, from: n, param: c, end: empty}}
  event: {id: id, position: at}
  certificate: {none: {}}
effect: {type: parquet, path: out}
store: {url: "sqlite:///p.db"}
"""
    )

    assert job.effect() == ParquetEffect(
        path=str(tmp_path / "out"), target_rows=1_000_000, compression="zstd", schema=None, on_drift="rest"
    )
    assert job.dead_letters() is None
    assert job.retry() == RetryPolicy(attempts=5, backoff=1.0, maximum=60.0)
    assert job.range() == Range(None, None)
    assert (job.engine().engine, job.engine().workers) == ("local", None)


@pytest.mark.parametrize(
    ("domain", "start", "position"),
    [
        ("{type: integer}", "'12'", 12),
        ("{type: integer}", "-5", -5),
        ("{type: text}", "b-7", "b-7"),
        ("{type: timestamp, precision: ms}", "1970-01-01T00:00:01.5Z", 1500),
        ("{type: timestamp, precision: s, read: unix_s}", "60", 60),
        ("{type: timestamp, precision: s, read: unix_s}", "1970-01-01T00:01:00Z", 60),
        (
            "{type: timestamp, precision: s, read: {format: '%m/%d/%Y %H:%M', zone: America/New_York}}",
            "01/01/1970 00:00",
            18000,
        ),
        (
            "{type: timestamp, precision: s, read: {format: '%m/%d/%Y %H:%M', zone: America/New_York}}",
            "1970-01-01T05:00:00Z",
            18000,
        ),
        ("[{type: integer}, {type: text}]", "[7, b]", (7, "b")),
        ("[{type: integer}, {type: text}]", """'["7","b"]'""", (7, "b")),
    ],
)
def test_an_end_of_the_range_is_read_as_the_source_or_gapless_writes_it(
    load: Load, good: str, domain: str, start: str, position: object
) -> None:
    text = good.replace("{type: integer}", domain).replace("start: 0", f"start: {start}")

    assert load(text).range() == Range(position, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "domain"),
    [
        ("{type: integer}", IntegerDomain()),
        ("{type: text}", TextDomain()),
        ("{type: timestamp, precision: us}", TimestampDomain("us")),
        (
            "[{type: timestamp, precision: ns, read: unix_ns}, {type: text}]",
            ListDomain((TimestampDomain("ns", "unix_ns"), TextDomain())),
        ),
        ("{type: list, items: [{type: integer}, {type: text}]}", ListDomain((IntegerDomain(), TextDomain()))),
    ],
)
def test_every_kind_of_domain_is_understood(load: Load, good: str, written: str, domain: object) -> None:
    job = load(good.replace("{type: integer}", written).replace("start: 0", "start: null"))

    assert job.domain == domain


def test_a_job_travels_by_pickle_and_holds_no_secret(
    load: Load, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_TOKEN", "hunter2")
    monkeypatch.setenv("PASSWORD", "hunter2")
    store = "{url: postgresql+psycopg://me@db.example/progress, password: {env: PASSWORD}}"
    job = load(good.replace('{url: "sqlite:///progress.db"}', store))

    packed = pickle.dumps((job, job.source(), job.store))

    assert b"hunter2" not in packed
    assert "hunter2" not in json.dumps(describe(job))
    again = pickle.loads(packed)[0]
    assert again == job
    assert again.store.password == SecretReference(env="PASSWORD")


def test_an_absolute_path_of_the_store_stays(load: Load, good: str) -> None:
    assert (
        load(good.replace("sqlite:///progress.db", "sqlite:////var/p.db")).store.url == "sqlite:////var/p.db"
    )


def test_the_job_stays_where_it_was_loaded_when_the_process_moves_on(
    load: Load, good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = load(good)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    monkeypatch.chdir(elsewhere)

    assert job.store.url == f"sqlite:///{tmp_path}/progress.db"
    assert job.effect().path == str(tmp_path / "out/orders")
    assert job.dead_letters() == ParquetDeadLetters(path=str(tmp_path / "out/orders_dead"))


def test_what_the_source_itself_refuses_is_a_finding_too(load: Load, good: str) -> None:
    text = (
        good.replace(
            "domain: {type: integer}",
            "domain: {type: timestamp, precision: s, read: {format: '%Y-%m-%d', zone: UTC}}",
        )
        .replace("start: 0", "start: 2013-01-01T05:00:00Z")
        .replace("limit: 500", 'limit: 500, from: "{start}"')
    )

    with pytest.raises(
        InvalidConfiguration, match=r"^job\.yaml:4: source: .* cannot be written in the declared format"
    ):
        load(text)


def test_the_compressions_of_the_file_are_those_of_the_effect() -> None:
    schema = ParquetEffectConfig.model_json_schema()

    assert tuple(schema["properties"]["compression"]["enum"]) == COMPRESSIONS


# --- describing ------------------------------------------------------------------------------------------------------


def test_a_job_is_described_in_the_words_of_its_file_with_the_defaults(
    load: Load, good: str, tmp_path: Path
) -> None:
    described = describe(load(good.replace("    connections: 4\n", "")))

    assert json.loads(json.dumps(described)) == described
    assert described["job"] == str(tmp_path / "job.yaml")
    assert described["domain"] == {"type": "integer"}
    assert described["range"] == {"start": "0", "stop": None}
    assert described["source"]["client"] == {
        "timeout": {"connect": "10s", "read": "1m"},
        "retry": {"attempts": 6, "backoff": "500ms", "max": "15m", "on": [429, 503]},
        "connections": 8,
    }
    assert described["source"]["auth"] == {"type": "bearer", "token": {"env": "ORDERS_TOKEN"}}
    assert described["effect"]["path"] == str(tmp_path / "out/orders")
    assert described["dead_letters"]["path"] == str(tmp_path / "out/orders_dead")
    assert described["store"] == {"url": f"sqlite:///{tmp_path}/progress.db", "connections": 4}


def test_a_description_says_again_what_it_was_made_of(load: Load, good: str) -> None:
    described = describe(load(good))
    del described["job"]

    assert describe(load(json.dumps(described).replace("$", "$$"))) == {
        **described,
        "job": str(Path("job.yaml").absolute()),
    }


# --- the cheap way for reading commands ------------------------------------------------------------------------------


def test_reading_commands_need_neither_the_source_nor_its_variables(
    tmp_path: Path, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(
        good.replace("records: events", "records: a..b\n    nonsense: 1"), encoding="utf-8"
    )

    store = store_of("job.yaml", {})

    assert (store.scope, store.domain) == ("orders", IntegerDomain())
    assert store.url == f"sqlite:///{tmp_path}/progress.db"
    assert load_job_fails("job.yaml")


def load_job_fails(path: str) -> bool:
    with pytest.raises(InvalidConfiguration):
        load_job(path, ENVIRONMENT)
    return True


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("sqlite:///progress.db", "mysql:///d", "job.yaml:31: store.url: 'mysql' is no kind of store"),
        (
            "sqlite:///progress.db",
            "sqlite:///${DIR}/p.db",
            "job.yaml:31: store.url: the environment variable DIR",
        ),
        ("domain: {type: integer}", "domain: {type: text, collation: de}", "job.yaml:3: domain.collation: "),
        ("scope: orders\n", "", "job.yaml:1: scope: missing"),
        ("on_drift: hold", "scope: again", "job.yaml:26: scope: is given twice"),
        ("version: 1", "version: 3", "job.yaml:1: version: is none that this version of gapless knows"),
    ],
)
def test_reading_commands_refuse_what_they_do_need(
    tmp_path: Path, good: str, monkeypatch: pytest.MonkeyPatch, old: str, new: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(good.replace(old, new), encoding="utf-8")

    with pytest.raises(InvalidConfiguration) as caught:
        store_of("job.yaml", {})

    (finding,) = caught.value.findings
    assert str(finding).startswith(expected)


MODULES = """
import sys
from gapless_pipelines.job import {function}
{function}(sys.argv[1], {{"ORDERS_URL": "http://127.0.0.1"}})
print(*sorted({{name.split(".")[0] for name in sys.modules}} & {{"apache_beam", "pyarrow", "requests", "sqlalchemy"}}))
"""


@pytest.mark.parametrize(
    ("function", "loaded"), [("store_of", "sqlalchemy"), ("load_job", "pyarrow requests sqlalchemy")]
)
def test_loading_imports_no_more_than_it_needs(tmp_path: Path, good: str, function: str, loaded: str) -> None:
    (tmp_path / "job.yaml").write_text(good, encoding="utf-8")

    program = MODULES.format(function=function)
    run = subprocess.run(
        [sys.executable, "-c", program, "job.yaml"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert set(run.stdout.split()) <= set(loaded.split())


# --- finding the file ------------------------------------------------------------------------------------------------


def test_the_one_job_file_of_a_folder_is_found_among_other_files(tmp_path: Path, good: str) -> None:
    (tmp_path / "orders.yml").write_text(good, encoding="utf-8")
    (tmp_path / "compose.yaml").write_text("version: 3\nservices: {}\n", encoding="utf-8")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "orders.txt").write_text(good, encoding="utf-8")
    (tmp_path / "folder.yaml").mkdir()

    assert find_job_file(tmp_path) == tmp_path / "orders.yml"


def test_a_job_file_with_errors_is_found_so_that_they_can_be_told(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text("version: 1\nscope: [\n", encoding="utf-8")

    assert find_job_file(tmp_path) == tmp_path / "orders.yaml"


def test_no_job_file_and_several_are_errors_that_say_what_to_do(tmp_path: Path, good: str) -> None:
    with pytest.raises(ConfigurationError, match="there is no job file here") as none:
        find_job_file(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(good, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="there are 2 job files here") as several:
        find_job_file(tmp_path)

    assert none.value.remedy == "name one, or begin with `gapless schema --example http`"
    assert several.value.remedy == "name one of a.yaml, b.yaml"
    with pytest.raises(ConfigurationError, match="there is no job file here"):
        find_job_file(tmp_path / "nowhere")
    assert none.value.exit_status == several.value.exit_status == 2


# --- whatever is written ---------------------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_at_any_key_loads_or_is_refused_by_findings_at_a_line(
    load: Load, good: str, data: st.DataObject
) -> None:
    described = describe(load(good))
    del described["job"]
    node: object = described
    while isinstance(node, dict) and node and data.draw(st.booleans()):
        parent, key = node, data.draw(st.sampled_from(sorted(node)))
        node = node[key]
        parent_and_key = (parent, key)
    if node is described:
        parent_and_key = (described, data.draw(st.sampled_from([*sorted(described), "other"])))
    parent_and_key[0][parent_and_key[1]] = data.draw(anything)

    try:
        outcome = load(json.dumps(described)).scope
    except InvalidConfiguration as error:
        outcome = str(error)
        assert all(finding.line >= 1 for finding in error.findings)  # noqa: PT017 - most values are refused

    assert outcome
