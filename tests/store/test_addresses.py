"""What a user may write as a store's URL, and what never shows of it."""

import builtins
import logging
import sys
import traceback
from pathlib import Path

import pytest

from gapless.errors import ConfigurationError, GaplessError
from gapless.store import open_store
from gapless.store.address import parse_address


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///progress.db", "progress.db"),
        ("sqlite:////var/p.db", "/var/p.db"),
        ("sqlite+pysqlite:///a b%25.db", "a b%25.db"),
    ],
)
def test_a_sqlite_url_names_a_file_by_its_path_as_it_is(url, path):
    address = parse_address(url)
    assert address.path == Path(path)
    assert address.shown == f"store sqlite:///{path}"


@pytest.mark.parametrize("kind", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_is_psycopg_three(kind):
    address = parse_address(f"{kind}://ann@db.example:5433/progress", "s3cret")
    assert address.path is None
    assert address.url.drivername == "postgresql+psycopg"
    assert address.url.password == "s3cret"
    assert address.shown == "store postgresql://ann@db.example:5433/progress"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://db/progress", "'mysql' is no kind of store"),
        ("postgresql+psycopg2://db/progress", "'postgresql\\+psycopg2' is no kind of store"),
        ("redis://localhost", "'redis' is no kind of store"),
        ("progress.db", "cannot be read"),
        ("", "cannot be read"),
        ("postgresql://u:p4ssw0rd@host:port/db", "cannot be read"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("sqlite:///file:x", "needs a file"),
        ("sqlite://progress.db", "has no host"),
        ("sqlite:///p.db?timeout=5", "takes no options"),
        ("postgresql://ann@db", "names no database"),
        ("postgresql://ann@db/progress?password=p4ssw0rd", "does not belong among the options"),
    ],
)
def test_a_url_that_names_no_store_is_refused_with_what_is_allowed(url, said):
    with pytest.raises(ConfigurationError, match=said) as refused:
        open_store(url, create=True)
    assert refused.value.exit_status == 2
    assert refused.value.remedy
    assert "p4ssw0rd" not in "".join(traceback.format_exception(refused.value))


def test_postgresql_without_psycopg_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without_psycopg(name, *args, **kwargs):
        if name.split(".")[0] == "psycopg":
            raise ImportError("No module named 'psycopg'")
        return real(name, *args, **kwargs)

    for module in [name for name in sys.modules if name.split(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without_psycopg)
    with pytest.raises(ConfigurationError, match="needs psycopg") as refused:
        open_store("postgresql://db/progress")
    assert 'pip install "gapless[postgres]"' in refused.value.remedy


def test_a_server_that_is_not_there_is_unreachable_and_the_password_stays_secret(caplog):
    caplog.set_level(logging.DEBUG)
    secret = "p4ss" + "w0rd"
    with pytest.raises(GaplessError, match="cannot be reached") as refused:
        open_store(f"postgresql://ann:{secret}@127.0.0.1:1/progress", create=True)
    with pytest.raises(GaplessError, match="cannot be reached") as again:
        open_store("postgresql://ann@127.0.0.1:1/progress", secret)
    for error in (refused.value, again.value):
        assert error.where == "store postgresql://ann@127.0.0.1:1/progress"
        assert secret not in "".join(traceback.format_exception(error))
        assert secret not in repr(error.__dict__)
    assert secret not in caplog.text


def test_the_password_is_in_no_log_of_a_store_that_works(caplog, postgres_url):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="sqlalchemy.engine")
    with open_store(postgres_url, "p4ssw0rd", create=True) as store:
        store.scopes()
        assert "p4ssw0rd" not in repr(store._database.address)
        assert "p4ssw0rd" not in repr(store._database._engine)
    assert caplog.text
    assert "p4ssw0rd" not in caplog.text


def test_a_missing_database_is_said_to_be_missing(postgres_server):
    url = postgres_server.set(database="gapless_no_such_database").render_as_string()
    with pytest.raises(GaplessError, match="gapless_no_such_database"):
        open_store(url)
