"""The algebra needs nothing but the standard library, and loads no more than what is used."""

import subprocess
import sys

import pytest

import gapless.progress


def loaded_by(statement: str) -> set[str]:
    program = (
        f"import sys; before = set(sys.modules); {statement}; print(' '.join(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_all_of_it_is_the_standard_library_and_the_error_tree() -> None:
    loaded = loaded_by("from gapless.progress import *")
    foreign = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert foreign == {"gapless"}
    ours = {
        name for name in loaded if name.startswith("gapless.") and not name.startswith("gapless.progress")
    }
    assert ours == {"gapless._version", "gapless.errors"}
    assert not loaded & {
        "asyncio",
        "logging",
        "socket",
        "threading",
        "subprocess",
        "sqlite3",
        "zoneinfo",
        "random",
    }


def test_what_is_not_used_is_not_loaded() -> None:
    assert not {name for name in loaded_by("import gapless.progress") if name.startswith("gapless.progress.")}
    assert "gapless.progress.ledger" not in loaded_by("from gapless.progress import Bound, Domain")


def test_every_name_is_there_and_documented() -> None:
    for name in gapless.progress.__all__:
        value = getattr(gapless.progress, name)
        assert name in dir(gapless.progress)
        if isinstance(value, type) or callable(value):
            assert value.__doc__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Watermark'"):
        gapless.progress.Watermark  # noqa: B018
