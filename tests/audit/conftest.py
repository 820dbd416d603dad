"""A scope with an eventful history, on each kind of database."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from audited_scope import AuditedScope, eventful


@pytest.fixture
def orders(store_url: str, tmp_path: Path) -> Iterator[AuditedScope]:
    with closing(AuditedScope(store_url, tmp_path / "out")) as scope:
        yield scope


@pytest.fixture
def history(orders: AuditedScope) -> AuditedScope:
    return eventful(orders)
