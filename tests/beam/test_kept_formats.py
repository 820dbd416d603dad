"""What any version of gapless has written as state or sent between transforms is read by this one, and says the same."""

import json
from pathlib import Path

import pytest
from kept_formats import FOLDER, FORMATS, coders, said, samples

KEPT = {f"{path.parent.name}/{path.stem}": path for path in sorted(FOLDER.glob("*/*.json"))}


def coder_of(name: str):
    (coder,) = {getattr(module, name) for module in FORMATS if hasattr(module, name)}
    return coder()


@pytest.mark.parametrize("name", KEPT)
def test_bytes_of_every_version_say_what_they_said(name):
    kept = json.loads(KEPT[name].read_text(encoding="utf-8"))
    coder = coder_of(kept["coder"])
    value = coder.decode(bytes.fromhex(kept["bytes"]))
    now = said(value)
    assert {at: now.get(at) for at in kept["says"]} == kept["says"]
    assert said(coder.decode(coder.encode(value))) == now


@pytest.mark.parametrize("name", samples())
def test_what_this_version_writes_is_kept(name):
    """After a format has changed, or a new one came: `python tests/support/kept_formats.py`. What is there stays as it is."""
    coder, value = samples()[name]
    encoded = coder.encode(value)
    path = FOLDER / str(encoded[0]) / f"{name}.json"
    assert path.exists(), "nothing is kept of it yet"
    assert json.loads(path.read_text(encoding="utf-8"))["bytes"] == encoded.hex()


def test_every_coder_has_something_kept():
    kept = {json.loads(path.read_text(encoding="utf-8"))["coder"] for path in KEPT.values()}
    assert coders() <= kept


def test_what_is_kept_lies_under_the_version_that_its_bytes_begin_with():
    for path in KEPT.values():
        first = bytes.fromhex(json.loads(path.read_text(encoding="utf-8"))["bytes"])[0]
        assert Path(path).parent.name == str(first)
