"""The command line in a folder of its own, and a scope in a real store there, filled by the store's own operations."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from documented import document_of_command, require_documented
from typer.testing import CliRunner

from gapless.clock import Clock
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, ChainState, Domain, IntegerDomain
from gapless.store import Store, open_store
from gapless.store.records import Blocker, ChainRow, DeadLetter, Promotion, ScopeIdentity, Violation
from gapless.testing import ManualClock
from gapless_pipelines.cli.app import app

JOB = """\
version: 1
scope: orders
domain: {type: integer}
source:
  type: http
  base_url: BASE_URL
  client: {retry: {attempts: 1}}
  partitions: {list: [a, b]}
  pages:
    path: "/partitions/{partition.id}/events"
    records: events
    next: {type: cursor, from: next_cursor, param: cursor, end: "null"}
  event: {id: id, position: position}
  certificate:
    page: {position: complete_through.position, inclusive: complete_through.inclusive}
effect: {type: parquet, path: out/orders}
store: {url: "sqlite:///progress.db"}
"""


@dataclass(frozen=True)
class Ran:
    """`out` and `err` are what came on standard output and error."""

    exit_status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def invoke(*arguments: str, clock: Clock | None = None, env: dict[str, str] | None = None) -> Ran:
    result = CliRunner().invoke(app, list(arguments), obj=clock, env=env)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    document = document_of_command(arguments)
    if document is not None and "--json" in arguments and result.stdout:
        require_documented(document, json.loads(result.stdout))
    return Ran(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def gapless(folder: Path) -> Callable[..., Ran]:
    """Runs one command in `folder`."""
    return invoke


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Orders:
    """The scope `orders` with the members that are named, taken by run 1. `rows` is where each stands."""

    def __init__(self, url: str, domain: Domain | None = None, scope: str = "orders") -> None:
        self.url = url
        self.scope = scope
        self.domain = domain or IntegerDomain()
        self.clock = ManualClock()
        self.store: Store = open_store(url, create=True, clock=self.clock)
        self.rows: dict[str, ChainRow] = {}

    def begin(self, *names: str, after: Bound | None = None, list_bound: Bound | None = None) -> None:
        self.store.register_scope(ScopeIdentity(self.scope, self.domain, {"path": "/orders"}, after))
        number = self.store.begin_run(self.scope, f"run-of-{self.scope}", "local")
        for row in self.observe(*names, list_bound=list_bound):
            taken = self.store.take(row.chain, number)
            assert taken is not None
            self.rows[row.partition] = taken

    def observe(self, *names: str, list_bound: Bound | None = None) -> list[ChainRow]:
        listed = [ListedPartition(Partition(name, {})) for name in names]
        return self.store.observe(self.scope, Assignment(listed, "", list_bound)).tasks

    def promote(self, partition: str, position: Any, **changes: Any) -> ChainRow:
        """One page of ten events, certified through `position` (None: not certified), in a file of its own."""
        row = self.rows[partition]
        bound = None if position is None else Bound.through(position)
        name = f"{partition}-{row.sequence}"
        plain = Promotion(
            expected=row,
            pages=1,
            token_in=row.page_token,
            token_out=f"t{row.sequence + 1}",
            bound=bound,
            basis="certified",
            read_to=bound,
            end=False,
            events=10,
            path=f"/out/{name}.parquet",
            digest=name,
            rows=10,
        )
        promoted = self.store.promote(replace(plain, **changes))
        assert promoted is not None
        self.rows[partition] = promoted
        return promoted

    def end(self, partition: str) -> None:
        """Its last page: empty, without a certificate."""
        self.promote(
            partition, None, end=True, token_out=None, events=0, rows=0, path=None, digest=None, read_to=None
        )

    def hold(
        self, partition: str, blocker: Blocker | None = None, state: ChainState = ChainState.HELD
    ) -> None:
        blocker = blocker or Blocker("unsettled_event", "ValueError: no", "e110", 110)
        assert self.store.hold(self.rows[partition], state, blocker)

    def publish(self) -> None:
        self.store.publish(self.scope, self.store.scope(self.scope).epoch)

    def give_up(self, partition: str, position: int, event_id: str) -> None:
        """Promote a page of which one event is a dead letter."""
        row = self.rows[partition]
        letter = DeadLetter(
            partition, row.sequence, event_id, position, "ValueError: no", '{"n": 1}', "/dead/1.parquet"
        )
        self.promote(partition, position, dead_letters=[letter])

    def violate(self, partition: str, event_id: str = "e5") -> None:
        found = Violation(
            partition, "event_behind_bound", 3, "event 'e5' at 5 came late", event_id, 5, Bound.through(10)
        )
        self.store.record_violations(self.rows[partition], [found])


@pytest.fixture
def orders(folder: Path) -> Iterator[Orders]:
    """A store at progress.db, where the job file has it."""
    orders = Orders("sqlite:///progress.db")
    with closing(orders.store):
        yield orders


@pytest.fixture
def job(folder: Path) -> Path:
    """The one job file of the folder. Its source answers nothing."""
    return write_job(folder, "http://127.0.0.1:9")


@pytest.fixture
def job_for(folder: Path) -> Callable[..., Path]:
    """Writes the job file of the folder for the API at a URL, with further lines at its end."""
    return lambda url, *lines: write_job(folder, url, *lines)


def write_job(folder: Path, url: str, *lines: str) -> Path:
    path = folder / "orders.yaml"
    path.write_text(JOB.replace("BASE_URL", url) + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
