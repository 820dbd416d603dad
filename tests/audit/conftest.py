"""A scope with an eventful history, on SQLite, or on each kind of database."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from audited_scope import AuditedScope, eventful


@pytest.fixture
def orders(sqlite_url: str, tmp_path: Path) -> Iterator[AuditedScope]:
    with closing(AuditedScope(sqlite_url, tmp_path / "out")) as scope:
        yield scope


@pytest.fixture
def history(orders: AuditedScope) -> AuditedScope:
    return eventful(orders)


@pytest.fixture
def each_orders(store_url: str, tmp_path: Path) -> Iterator[AuditedScope]:
    """On each kind of database in turn."""
    with closing(AuditedScope(store_url, tmp_path / "out")) as scope:
        yield scope


@pytest.fixture
def each_history(each_orders: AuditedScope) -> AuditedScope:
    return eventful(each_orders)
