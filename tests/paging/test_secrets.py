import copy
import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from gapless.errors import ConfigurationError
from gapless.paging.secrets import Secret, SecretReference


def test_a_secret_is_read_from_the_environment_when_it_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = SecretReference(env="SOME_TOKEN")
    monkeypatch.setenv("SOME_TOKEN", "first")
    assert reference.resolve().reveal() == "first"
    monkeypatch.setenv("SOME_TOKEN", "second")
    assert reference.resolve().reveal() == "second"


def test_a_secret_is_read_from_a_file_without_its_line_end(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc \n")
    assert SecretReference(file=str(tmp_path / "token")).resolve().reveal() == "abc "


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe"])
def test_a_file_that_holds_no_secret_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=str(path)):
        SecretReference(file=str(path)).resolve()


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("SOME_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_TOKEN", value)
    with pytest.raises(ConfigurationError, match="SOME_TOKEN"):
        SecretReference(env="SOME_TOKEN").resolve()


def test_a_resolved_secret_shows_itself_nowhere() -> None:
    secret = Secret("s3cr3t")
    assert "s3cr3t" not in f"{secret} {secret!r} {[secret]}"
    for leak in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="not to be pickled"):
            leak(secret)


@pytest.mark.parametrize("places", [{}, {"env": "A", "file": "/b"}, {"env": "A B"}, {"env": ""}])
def test_a_reference_names_one_place(places: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        SecretReference.model_validate(places)
