"""`ParquetEffect`: one file a run, envelope, skipped and failing events, drift, and columns that get their type late."""

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import gapless.effects.run_writer as run_writer
from gapless.effects import FrozenSchema, ParquetEffect, RunOutput, RunStart, open_dataset, source_row
from gapless.errors import ConfigurationError, EffectError, PositionError
from gapless.paging.page import Page
from gapless.progress import IntegerDomain, ListDomain, TextDomain, TimestampDomain

MakePage = Callable[..., Page]


def test_a_run_of_pages_becomes_one_file_with_its_envelope(bench: Any, make_page: MakePage) -> None:
    output = bench.write(
        make_page([{"k": 1}, {"k": 2}], ids=["a", "b"], positions=[10, 2**70]),
        make_page([{"k": 3}], ids=["c"], positions=[-(2**70)]),
        partition="eu/west",
    )
    assert bench.records() == [
        {"k": 1, "_partition": "eu/west", "_sequence": 0, "_position": "10", "_event_id": "a", "_rest": None},
        {
            "k": 2,
            "_partition": "eu/west",
            "_sequence": 0,
            "_position": str(2**70),
            "_event_id": "b",
            "_rest": None,
        },
        {
            "k": 3,
            "_partition": "eu/west",
            "_sequence": 1,
            "_position": str(-(2**70)),
            "_event_id": "c",
            "_rest": None,
        },
    ]
    assert bench.files() == [f"orders/eu%2Fwest/000000000-1-{output.digest[:32]}.parquet"]


def test_the_output_says_what_is_on_the_disk(bench: Any, make_page: MakePage) -> None:
    output = bench.write(make_page([{"k": 1}, {"k": "x"}, {"k": 2}]))
    content = Path(output.path).read_bytes()
    assert os.path.isabs(output.path)
    assert output == RunOutput(output.path, hashlib.sha256(content).hexdigest(), 3, len(content), drifted=1)


def test_a_run_without_events_lists_no_file_and_leaves_none(bench: Any, make_page: MakePage) -> None:
    assert bench.write() == RunOutput(None, None, 0)
    assert bench.write(make_page([]), make_page([])) == RunOutput(None, None, 0)
    assert bench.files() == []
    assert bench.store.frozen() is None


@pytest.mark.parametrize(
    ("domain", "positions"),
    [
        (IntegerDomain(), [-5, 0, 2**63 - 1, -(2**63)]),
        (IntegerDomain(), [2**63, 1, 2, 3]),
        (TextDomain(), ["a", "", "é", "10"]),
        *((TimestampDomain(unit), [-1, 0, 1709164800, 253402300799]) for unit in ("s", "ms", "us", "ns")),
        (TimestampDomain("s"), [-62167219200, 253402300799, 0, 1]),
        (TimestampDomain("ns"), [-(2**63), 2**63 - 1, 2**63, 10**18]),
        (ListDomain((TimestampDomain("ms"), TextDomain())), [(0, "a"), (0, 'b"'), (1, ""), (2, "é")]),
    ],
)
def test_positions_are_written_as_the_domain_writes_them(
    bench: Any, make_page: MakePage, domain: Any, positions: list[Any]
) -> None:
    bench.write(make_page([{"k": 1}] * 4, positions=positions), session=bench.open(domain))
    assert [record["_position"] for record in bench.records()] == [domain.text(each) for each in positions]


@pytest.mark.parametrize("positions", [[None], [True], [1.5], ["1"]])
def test_positions_that_are_none_of_the_domain_are_refused(
    bench: Any, make_page: MakePage, positions: list[Any]
) -> None:
    writer = bench.open().begin(RunStart(1, "p0", 0, 1))
    with pytest.raises(PositionError):
        writer.add(make_page([{"k": "x"}], positions=positions), 0)
    assert writer.rows == 0


def test_ids_and_positions_that_are_columns_too_are_written_right(bench: Any, make_page: MakePage) -> None:
    rows = [{"id": "a", "position": 5, "other": "x"}, {"id": "b", "position": 6, "other": "y"}]
    bench.write(make_page(rows, ids=[row["id"] for row in rows], positions=[row["position"] for row in rows]))
    assert [(r["_event_id"], r["_position"]) for r in bench.records()] == [("a", "5"), ("b", "6")]
    assert bench.rows() == rows


def test_skipped_events_are_not_in_the_file_and_do_not_shape_the_schema(
    bench: Any, make_page: MakePage
) -> None:
    writer = bench.open().begin(RunStart(1, "p0", 0, 1))
    page = make_page([{"k": 1}, {"k": "broken", "odd": 1}, {"k": 3}])
    assert writer.add(page, 0, skip={"e1"}) == ()
    assert writer.rows == 2
    bench.outputs.append(writer.finish())
    assert bench.rows() == [{"k": 1}, {"k": 3}]
    assert dict(bench.schema.types) == {"k": "int64"}
    assert bench.outputs[0].drifted == 0


def test_a_page_of_which_every_event_is_skipped_adds_nothing(bench: Any, make_page: MakePage) -> None:
    writer = bench.open().begin(RunStart(1, "p0", 0, 1))
    assert writer.add(make_page([{"k": 1}, {"k": 2}]), 0, skip={"e0", "e1"}) == ()
    assert writer.finish() == RunOutput(None, None, 0)


def test_what_does_not_fit_is_counted_by_events_over_all_pages(bench: Any, make_page: MakePage) -> None:
    output = bench.write(
        make_page([{"k": 1}, {"k": 2, "more": None}]),
        make_page([{"k": 2.5, "more": 1}, {"k": 3}]),
        make_page([{"k": 4, "_rest": "mine"}]),
    )
    assert output.drifted == 2
    assert bench.rows() == [{"k": 1}, {"k": 2}, {"k": 2.5, "more": 1}, {"k": 3}, {"k": 4, "_rest": "mine"}]


def test_holding_drift_names_the_events_and_takes_nothing_of_the_page(
    bench: Any, make_page: MakePage
) -> None:
    session = bench.open(on_drift="hold")
    writer = session.begin(RunStart(1, "p0", 0, 1))
    assert writer.add(make_page([{"k": 1}]), 0) == ()
    page = make_page([{"k": 2}, {"k": "x"}, {"k": 3}, {"k": 4, "new": 1}], positions=[5, 6, 7, 8])
    failures = writer.add(page, 1)
    assert [(f.index, f.event_id, f.position, f.code) for f in failures] == [
        (1, "e1", 6, "schema_drift"),
        (3, "e3", 8, "schema_drift"),
    ]
    assert [f.reason for f in failures] == ["k is 'x', which is no int64", "new is no column of the schema"]
    assert writer.rows == 1
    assert writer.add(page, 1, skip={"e1", "e3"}) == ()
    bench.outputs.append(writer.finish())
    assert bench.rows() == [{"k": 1}, {"k": 2}, {"k": 3}]


def test_failures_point_into_the_page_also_where_events_before_them_are_skipped(
    bench: Any, make_page: MakePage
) -> None:
    writer = bench.open(on_drift="hold").begin(RunStart(1, "p0", 0, 1))
    writer.add(make_page([{"k": 1}]), 0)
    failures = writer.add(make_page([{"k": "a"}, {"k": 2}, {"k": "b"}]), 1, skip={"e0"})
    assert [(failure.index, failure.event_id) for failure in failures] == [(2, "e2")]
    writer.abandon()


def test_a_key_that_can_be_no_column_does_not_hold(bench: Any, make_page: MakePage) -> None:
    output = bench.write(make_page([{"k": 1, "_position": "mine"}]), session=bench.open(on_drift="hold"))
    assert output.drifted == 1
    assert bench.rows() == [{"k": 1, "_position": "mine"}]


def test_an_event_that_no_file_can_hold_fails_alone(bench: Any, make_page: MakePage) -> None:
    writer = bench.open().begin(RunStart(1, "p0", 0, 1))
    writer.add(make_page([{"k": 1}]), 0)
    failures = writer.add(make_page([{"k": float("nan")}, {"k": 2}], ids=["a", "\ud800"]), 1)
    assert [(failure.index, failure.code) for failure in failures] == [
        (0, "unsettled_event"),
        (1, "unsettled_event"),
    ]
    assert writer.rows == 1
    writer.abandon()


def test_a_partition_whose_name_no_file_can_hold_is_refused(bench: Any) -> None:
    with pytest.raises(EffectError, match="partition's id"):
        bench.open().begin(RunStart(1, "\ud800", 0, 1))


def test_a_column_that_was_only_null_gets_its_type_and_old_files_still_read(
    bench: Any, make_page: MakePage
) -> None:
    session = bench.open()
    bench.write(make_page([{"id": "a", "v": None}]), session=session)
    bench.write(make_page([{"id": "b", "v": 7}, {"id": "c"}]), session=session)
    assert dict(bench.schema.types) == {"id": "string", "v": "int64"}
    assert pq.read_schema(bench.outputs[0].path).names == ["id", *ENVELOPE_AND_REST]
    assert bench.rows() == [{"id": "a"}, {"id": "b", "v": 7}, {"id": "c"}]
    assert bench.outputs[1].drifted == 0


def test_a_column_gets_its_type_in_the_middle_of_a_run_in_memory(bench: Any, make_page: MakePage) -> None:
    bench.write(make_page([{"id": "a", "v": None}]), make_page([{"id": "b", "v": "x"}]))
    assert bench.rows() == [{"id": "a"}, {"id": "b", "v": "x"}]


def test_a_column_gets_its_type_after_part_of_the_file_was_written(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 2)
    pages = [
        make_page([{"id": "a", "v": None, "w": None}, {"id": "b"}]),
        make_page([{"id": "c"}, {"id": "d"}]),
        make_page([{"id": "e", "v": 1}, {"id": "f"}]),
        make_page([{"id": "g", "w": [1]}]),
    ]
    output = bench.write(*pages)
    assert bench.rows() == [
        {key: value for key, value in row.items() if value is not None} for page in pages for row in page.rows
    ]
    assert pq.ParquetFile(output.path).num_row_groups == 4
    assert pq.read_schema(output.path).names == ["id", "v", "w", *ENVELOPE_AND_REST]
    assert bench.files() == [str(Path(output.path).relative_to(bench.folder))]


def test_another_workers_type_stands_and_what_does_not_fit_it_goes_to_rest(
    bench: Any, make_page: MakePage
) -> None:
    one, other = bench.open(), bench.open()
    for session in (one, other):
        bench.write(make_page([{"v": None}]), session=session)
    bench.write(make_page([{"v": 1}]), session=one)
    bench.write(make_page([{"v": "x"}, {"v": 2}]), session=other)
    assert dict(bench.schema.types) == {"v": "int64"}
    assert bench.rows() == [{}, {}, {"v": 1}, {"v": "x"}, {"v": 2}]
    assert [output.drifted for output in bench.outputs] == [0, 0, 0, 1]


ENVELOPE_AND_REST = ["_partition", "_sequence", "_position", "_event_id", "_rest"]


def test_a_reader_that_unites_schemas_by_name_reads_all_files_as_one(bench: Any, make_page: MakePage) -> None:
    # As DuckDB's union_by_name and Spark's mergeSchema do; no file has a column without a type to trip them.
    bench.write(make_page([{"id": "a", "v": None, "w": {"x": 1}}]))
    bench.write(make_page([{"id": "b", "v": True, "w": [2]}]))
    paths = [output.path for output in bench.outputs]
    schemas = [pq.read_schema(path) for path in paths]
    assert not any(pa.types.is_null(field.type) for schema in schemas for field in schema)
    united = pa.unify_schemas(schemas)
    table = ds.dataset(paths, schema=united).to_table()
    assert table.column("v").to_pylist() == [None, True]
    assert table.column("w").to_pylist() == ['{"x":1}', "[2]"]


def test_a_reader_that_takes_hive_partitions_from_paths_finds_none(bench: Any, make_page: MakePage) -> None:
    output = bench.write(make_page([{"partition": 7}]), partition="partition=a")
    assert pq.read_table(output.path).column("partition").to_pylist() == [7]


def test_declared_types_are_used_from_the_first_page_on(bench: Any, make_page: MakePage) -> None:
    session = bench.open(schema={"cents": "int64", "at": "timestamp[us, UTC]", "price": "decimal(9, 2)"})
    bench.write(
        make_page(
            [{"cents": 1, "price": "3.50"}, {"cents": 2.5, "at": "2020-01-01T00:00:00Z", "price": "3.501"}]
        ),
        session=session,
    )
    assert [str(field.type) for field in pq.read_schema(bench.outputs[0].path)][:3] == [
        "int64",
        "decimal128(9, 2)",
        "timestamp[us, tz=UTC]",
    ]
    assert [record["_rest"] for record in bench.records()] == [None, '{"cents":2.5,"price":"3.501"}']


def test_row_groups_are_written_while_the_run_goes_on(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 10)
    writer = bench.open().begin(RunStart(1, "p0", 0, 1))
    for sequence in range(10):
        writer.add(make_page([{"k": index} for index in range(4)]), sequence)
    assert writer._held_rows < 10
    assert [Path(name).suffix for name in bench.files()] == [".tmp"]
    output = writer.finish()
    file = pq.ParquetFile(output.path)
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [
        12,
        12,
        12,
        4,
    ]
    assert pq.read_table(output.path).column("_sequence").to_pylist() == [
        n for n in range(10) for _ in range(4)
    ]


def test_large_rows_fill_a_row_group_by_their_bytes(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_BYTES", 1000)
    output = bench.write(*(make_page([{"k": "x" * 600}]) for _ in range(4)))
    assert pq.ParquetFile(output.path).num_row_groups == 2


def test_abandoning_removes_what_was_written_and_may_be_repeated(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 1)
    writer = bench.open().begin(RunStart(1, "p0", 0, 1))
    writer.add(make_page([{"k": 1}]), 0)
    assert bench.files() != []
    writer.abandon()
    writer.abandon()
    assert bench.files() == []


def test_closing_a_session_abandons_what_is_open(
    bench: Any, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "ROW_GROUP_ROWS", 1)
    session = bench.open()
    session.begin(RunStart(1, "p0", 0, 1)).add(make_page([{"k": 1}]), 0)
    session.begin(RunStart(2, "p1", 0, 1)).add(make_page([{"k": 1}]), 0)
    session.close()
    assert bench.files() == []


def test_an_effect_travels_to_workers_with_its_path_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    effect = ParquetEffect("out", schema={"at": "timestamp[us,UTC]"})
    assert pickle.loads(pickle.dumps(effect)) == effect
    assert effect.path == str(tmp_path / "out")
    assert effect.schema == {"at": "timestamp[us, UTC]"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": "gs://bucket/x"}, "is a URL"),
        ({"path": ""}, "is no folder"),
        ({"path": "out", "compression": "zip"}, "effect.compression: 'zip'"),
        ({"path": "out", "target_rows": 0}, "effect.target_rows: 0"),
        ({"path": "out", "target_rows": True}, "effect.target_rows: True"),
        ({"path": "out", "on_drift": "drop"}, "on_drift: 'drop'"),
        ({"path": "out", "schema": {"_rest": "string"}}, "'_rest' cannot be a column"),
        ({"path": "out", "schema": {"a": "varchar"}}, "schema: a: 'varchar' is no column type"),
    ],
)
def test_settings_that_cannot_be_meant_so_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ParquetEffect(**settings)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "none"])
def test_every_compression_writes_what_reads_back(bench: Any, make_page: MakePage, compression: str) -> None:
    rows = [{"k": index % 7, "text": "same", "flag": True, "f": 0.5} for index in range(2000)]
    bench.write(make_page(rows), session=bench.open(compression=compression))
    assert bench.rows() == rows


def test_a_column_with_a_dot_or_another_case_is_a_column_of_its_own(bench: Any, make_page: MakePage) -> None:
    rows = [{"a.b": 1, "A.b": "x", "a": {"b": 2}}] * 1500
    bench.write(make_page(rows))
    assert bench.rows() == rows


def test_the_data_set_of_no_files_has_the_schema(bench: Any) -> None:
    schema = FrozenSchema({"k": "int64"})
    assert open_dataset([], schema).to_table().schema.names == ["k", *ENVELOPE_AND_REST]
    assert source_row({"k": 1, "_rest": None, "_event_id": "a"}, schema) == {"k": 1}
