"""Dead letters: one file a run, each event with all it takes to look at it and to apply it later."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import gapless.effects.dead_letters as dead_letters
from gapless.effects import DeadLetterRecord, ParquetDeadLetters, RunOutput, RunStart, file_digest
from gapless.effects.dead_letters import ParquetDeadLetterSession
from gapless.errors import ConfigurationError, EffectError
from gapless.progress import TimestampDomain

START = RunStart(1, "eu/west", 7, 3)


def record(event_id: str = "a", row: Any = None, reason: str = "no amount") -> DeadLetterRecord:
    return DeadLetterRecord("eu/west", 7, event_id, 1_500, reason, {"k": 1} if row is None else row)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[ParquetDeadLetterSession]:
    opened = ParquetDeadLetters(str(tmp_path / "dead")).open("orders", TimestampDomain("ms"))
    yield opened
    opened.close()


def test_a_run_of_dead_letters_becomes_one_durable_file(
    session: ParquetDeadLetterSession, tmp_path: Path
) -> None:
    writer = session.begin(START)
    payloads = [
        writer.add(record("a", {"big": 2**70, "none": None})),
        writer.add(record("b", {"é": "\ud800"})),
    ]
    output = writer.finish()
    assert output.path is not None
    assert pq.read_table(output.path).to_pylist() == [
        {
            "_partition": "eu/west",
            "_sequence": 7,
            "_position": "1970-01-01T00:00:01.500Z",
            "_event_id": event_id,
            "reason": "no amount",
            "payload": payload,
        }
        for event_id, payload in zip("ab", payloads, strict=True)
    ]
    assert [json.loads(payload) for payload in payloads] == [{"big": 2**70, "none": None}, {"é": "\ud800"}]
    path = Path(output.path)
    assert output == RunOutput(str(path), file_digest(path), 2, path.stat().st_size)
    assert path.parent == tmp_path / "dead" / "orders" / "eu%2Fwest"
    assert path.name.startswith("000000007-3-")


def test_a_run_without_dead_letters_leaves_no_file(session: ParquetDeadLetterSession, tmp_path: Path) -> None:
    assert session.begin(START).finish() == RunOutput(None, None, 0)
    assert not (tmp_path / "dead").exists()


def test_an_event_without_json_form_is_kept_as_near_to_it_as_can_be(
    session: ParquetDeadLetterSession,
) -> None:
    writer = session.begin(START)
    assert json.loads(writer.add(record(row={"n": float("inf")}))) == {"n": float("inf")}
    assert json.loads(writer.add(record(row={"n": 1j}))) == {"n": "1j"}
    assert writer.finish().rows == 2


def test_a_reason_with_half_a_surrogate_pair_is_written_escaped(session: ParquetDeadLetterSession) -> None:
    writer = session.begin(START)
    writer.add(record(reason="bad \ud800"))
    assert pq.read_table(writer.finish().path).column("reason").to_pylist() == ["bad \\ud800"]


def test_an_event_that_no_file_can_hold_is_refused_and_the_run_goes_on(
    session: ParquetDeadLetterSession,
) -> None:
    writer = session.begin(START)
    with pytest.raises(EffectError, match="event's id"):
        writer.add(record("\ud800"))
    with pytest.raises(EffectError, match="cannot be kept as a dead letter"):
        writer.add(record(row={"huge": 10**5000}))
    writer.add(record())
    assert writer.finish().rows == 1


def test_many_dead_letters_are_written_as_they_come(
    session: ParquetDeadLetterSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "_HELD", 10)
    writer = session.begin(START)
    for index in range(25):
        writer.add(record(f"e{index}"))
    assert len(writer._held) == 5
    file = pq.ParquetFile(writer.finish().path)
    assert file.num_row_groups == 3
    assert file.read().column("_event_id").to_pylist() == [f"e{index}" for index in range(25)]


@pytest.mark.parametrize("end", ["abandon", "close"])
def test_abandoned_dead_letters_leave_nothing(
    session: ParquetDeadLetterSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(dead_letters, "_HELD", 1)
    writer = session.begin(START)
    writer.add(record())
    left = [path for path in (tmp_path / "dead").rglob("*") if path.is_file()]
    assert len(left) == 1
    (writer.abandon if end == "abandon" else session.close)()
    writer.abandon()
    assert not left[0].exists()


def test_a_folder_that_cannot_be_written_is_an_error_that_says_where(tmp_path: Path) -> None:
    (tmp_path / "dead").write_text("a file")
    writer = ParquetDeadLetters(str(tmp_path / "dead")).open("orders", TimestampDomain("ms")).begin(START)
    writer.add(record())
    with pytest.raises(EffectError) as failed:
        writer.finish()
    assert failed.value.where == str(tmp_path / "dead" / "orders" / "eu%2Fwest")
    writer.abandon()


def test_the_settings_travel_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    effect = ParquetDeadLetters(str(tmp_path))
    assert pickle.loads(pickle.dumps(effect)) == effect
    with pytest.raises(ConfigurationError, match=r"dead_letters\.path"):
        ParquetDeadLetters("s3://bucket/dead")
    with pytest.raises(ConfigurationError, match=r"dead_letters\.compression"):
        ParquetDeadLetters("dead", compression="zip")
