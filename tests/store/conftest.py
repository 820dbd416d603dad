"""A scope in a fresh store, and what the tests of the store do with it."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from epoch_rows import EpochRow, epoch_row
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import NullPool

from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, IntegerDomain
from gapless.store import Store, open_store, schema
from gapless.store.records import (
    ChainRow,
    CutoverResult,
    DeadLetter,
    FrontierRow,
    MembershipPolicy,
    Observed,
    Promotion,
    ScopeIdentity,
    Violation,
)

T = TypeVar("T")

TABLES = (
    "scope",
    "chain",
    "promotion",
    "receipt",
    "dead_letter",
    "violation",
    "epoch",
    "run",
    "frontier_history",
    "journal",
    "observation",
)


class ManualClock:
    """Stands still; `sleep` moves it and calls `on_sleep`."""

    def __init__(self) -> None:
        self.instant = datetime(2013, 1, 1, tzinfo=timezone.utc)
        self.slept: list[float] = []
        self.on_sleep: Callable[[], object] = lambda: None

    def now(self) -> datetime:
        return self.instant

    def monotonic(self) -> float:
        return self.instant.timestamp()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.instant += timedelta(seconds=seconds)
        self.on_sleep()


class Scene:
    """The scope `orders` in the store at `url`; more stores on it by `another()`. All are closed at the end."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = ManualClock()
        self._opened: list[Store] = []
        self._engine: Engine | None = None
        self.store = self.another(create=True)
        self.store.register_scope(identity())

    def another(self, **options: Any) -> Store:
        store = open_store(self.url, clock=self.clock, **options)
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()
        if self._engine is not None:
            self._engine.dispose()

    def observe(
        self,
        *names: str,
        generation: str = "",
        list_bound: Bound | None = None,
        policy: MembershipPolicy | None = None,
        **facts: Any,
    ) -> Observed:
        return self.store.observe(
            "orders",
            assignment(*names, generation=generation, list_bound=list_bound, **facts),
            policy=policy,
        )

    def members(self, *names: str) -> list[ChainRow]:
        """Freeze epoch 1 of these partitions and take each for run 1."""
        taken = [self.store.take(row.chain, 1) for row in self.observe(*names).tasks]
        return [row for row in taken if row is not None]

    def advance(self, row: ChainRow, position: int, **changes: Any) -> ChainRow:
        promoted = self.store.promote(promotion(row, position, **changes))
        assert promoted is not None
        return promoted

    def publish(self, epoch: int = 1) -> FrontierRow | None:
        return self.store.publish("orders", epoch)

    def frontier(self) -> Bound | None:
        return self.store.scope("orders").frontier

    def live(self, partition: str, generation: str | None = None) -> ChainRow:
        """The one live chain of the partition (under that routing generation, where one is named)."""
        chains = self.store.snapshot("orders").chains
        (row,) = [
            row for row in chains if row.partition == partition and generation in (None, row.generation)
        ]
        return row

    def bring(
        self, partition: str, position: int | None, generation: str | None = None, **changes: Any
    ) -> ChainRow:
        """Take the partition's live chain for run 1 and promote a page of it that is certified through `position`."""
        taken = self.store.take(self.live(partition, generation).chain, 1)
        assert taken is not None
        return self.advance(taken, position, **changes)  # type: ignore[arg-type]

    def start(self, generation: str = "", **bounds: int) -> None:
        """Freeze epoch 1 of these partitions, each promoted through its position, and publish."""
        self.observe(*bounds, generation=generation)
        for name, position in bounds.items():
            self.bring(name, position)
        self.publish()

    def cutover(self, **options: Any) -> CutoverResult:
        return self.store.cutover("orders", **options)

    def epochs(self) -> list[EpochRow]:
        """Every membership epoch that was ever opened, in order."""
        domain = self.store.scope("orders").domain
        with self.connection() as connection:
            found = connection.execute(sa.select(schema.epoch).order_by(schema.epoch.c.epoch)).mappings()
            return [epoch_row(row, domain) for row in found]

    def members_now(self) -> list[str]:
        return sorted(row.partition for row in self.store.snapshot("orders").chains if row.is_member)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection of the test's own, in a transaction; SQLite's holds the write lock."""
        if self._engine is None:
            self._engine = _plain_engine(self.url)
        with self._engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def sql(self, statement: str, **values: Any) -> None:
        """Change the database behind the store's back."""
        with self.connection() as connection:
            connection.execute(sa.text(statement), values)
            connection.commit()

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table: what must not change where the store refuses."""
        with self.connection() as connection:
            return {
                table: sorted(
                    map(tuple, connection.exec_driver_sql(f"SELECT * FROM gapless_{table}")), key=repr
                )
                for table in TABLES
            }

    @property
    def sqlite(self) -> bool:
        return self.url.startswith("sqlite")


def _plain_engine(url: str) -> Engine:
    if url.startswith("sqlite"):
        return sa.create_engine(
            url, poolclass=NullPool, connect_args={"isolation_level": None, "timeout": 30}
        )
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)


def identity(**changes: Any) -> ScopeIdentity:
    plain = ScopeIdentity(
        "orders", IntegerDomain(), {"path": "/orders", "event": {"id": "id", "position": "at"}}
    )
    return replace(plain, **changes)


def assignment(
    *names: str,
    generation: str = "",
    list_bound: Bound | None = None,
    seals: Mapping[str, Bound] | None = None,
    successors: Mapping[str, tuple[str, ...]] | None = None,
    parents: Mapping[str, tuple[str, ...]] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Assignment:
    entries = [
        ListedPartition(
            Partition(name, {"id": name, **((fields or {}).get(name, {}))}),
            (seals or {}).get(name),
            (successors or {}).get(name),
            (parents or {}).get(name),
        )
        for name in names
    ]
    return Assignment(entries, generation, list_bound)


def promotion(row: ChainRow, position: int | None, **changes: Any) -> Promotion:
    """One page of ten events, certified through `position`."""
    bound = None if position is None else Bound.through(position)
    token = f"t{row.sequence + 1}"
    path = f"/out/{row.partition}-{row.sequence}-{row.fencing_token}.parquet"
    plain = Promotion(
        row, 1, row.page_token, token, bound, "certified", bound, False, 10, path, "d", 10, 1000
    )
    return replace(plain, **changes)


class Kit:
    """The builders above, for test modules: they cannot import one another."""

    identity = staticmethod(identity)
    assignment = staticmethod(assignment)
    promotion = staticmethod(promotion)

    @staticmethod
    def letter(event_id: str, position: int = 1, **changes: Any) -> DeadLetter:
        plain = DeadLetter("a", 0, event_id, position, "ValueError: no", '{"id":1}', "/dead/1.parquet")
        return replace(plain, **changes)

    @staticmethod
    def violation(event_id: str | None, position: int | None = 5, **changes: Any) -> Violation:
        plain = Violation("a", "event_behind_bound", 3, "behind", event_id, position, Bound.through(10))
        return replace(plain, **changes)

    @staticmethod
    def at_once(work: Sequence[Callable[[], T]]) -> list[T]:
        """Run all of `work` in threads that start together; the results in order. An error of any is raised."""
        return at_once(work)

    @staticmethod
    def in_background(work: Callable[[], T]) -> "Background":
        return Background(work)


def at_once(work: Sequence[Callable[[], T]]) -> list[T]:
    barrier = threading.Barrier(len(work))

    def together(one: Callable[[], T]) -> T:
        barrier.wait(30)
        return one()

    started = [Background(lambda one=one: together(one)) for one in work]
    return [one.result() for one in started]


class Background(threading.Thread):
    """`work` in a thread; `result` waits for it and raises what it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._outcome: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._outcome = self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by `result`
            self._error = error

    def result(self) -> Any:
        self.join(60)
        assert not self.is_alive(), "still waiting"
        if self._error is not None:
            raise self._error
        return self._outcome


@pytest.fixture
def kit() -> type[Kit]:
    return Kit


@pytest.fixture(scope="session")
def blank_sqlite(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An empty store as a file: the migrations run once, not once a test."""
    path = tmp_path_factory.mktemp("blank") / "progress.db"
    open_store(f"sqlite:///{path}", create=True).close()
    return path.read_bytes()


@pytest.fixture(scope="session")
def blank_postgres(postgres_server: URL, postgres_admin: Any) -> str:
    """The statements by which the migrations make an empty store."""
    statements = []

    def record(connection: Any, cursor: Any, text: str, *rest: Any) -> None:
        if text.lstrip().startswith(("CREATE", "INSERT")):
            statements.append(text)

    schema = f"gapless_blank_{os.getpid()}"
    postgres_admin.execute(f"CREATE SCHEMA {schema}")
    sa.event.listen(Engine, "before_cursor_execute", record)
    try:
        url = postgres_server.update_query_dict({"options": f"-csearch_path={schema}"}).render_as_string()
        open_store(url, create=True).close()
    finally:
        sa.event.remove(Engine, "before_cursor_execute", record)
        postgres_admin.execute(f"DROP SCHEMA {schema} CASCADE")
    return ";".join(statements)


@pytest.fixture
def sqlite_scene(sqlite_url: str, blank_sqlite: bytes) -> Iterator[Scene]:
    Path(sqlite_url.removeprefix("sqlite:///")).write_bytes(blank_sqlite)
    with closing(Scene(sqlite_url)) as scene:
        yield scene


@pytest.fixture
def postgres_scene(postgres_url: str, blank_postgres: str) -> Iterator[Scene]:
    with closing(_plain_engine(postgres_url).connect()) as connection:
        connection.exec_driver_sql(blank_postgres)
        connection.commit()
    with closing(Scene(postgres_url)) as scene:
        yield scene


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def scene(request: pytest.FixtureRequest) -> Scene:
    """On each kind of database in turn."""
    scene: Scene = request.getfixturevalue(f"{request.param}_scene")
    return scene


@pytest.fixture
def until_blocked(postgres_admin: Any) -> Callable[[int], None]:
    """Wait until some session is blocked by the one of this process id."""

    def wait(pid: int) -> None:
        blocked = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
        deadline = time.monotonic() + 20
        while postgres_admin.execute(blocked, (pid,)).fetchone()[0] == 0:
            assert time.monotonic() < deadline, f"nobody waits for session {pid}"

    return wait


@pytest.fixture
def unprivileged() -> Callable[..., Any]:
    """Be a user who may enter a folder but, unless `writable`, not write it. Root is anybody else for a while."""

    @contextmanager
    def use(folder: Path, writable: bool = True) -> Iterator[None]:
        opened = [folder, *folder.parents][:-2]
        modes = {each: each.stat().st_mode for each in opened}
        for each in opened:
            each.chmod(0o755)
        if writable:
            folder.chmod(0o777)
        elif os.geteuid() != 0:
            folder.chmod(0o555)
        root = os.geteuid() == 0
        try:
            if root:
                os.seteuid(65534)
            yield
        finally:
            if root:
                os.seteuid(0)
            for each, mode in modes.items():
                each.chmod(mode)

    return use
