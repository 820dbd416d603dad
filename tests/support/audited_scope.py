"""A scope in a real store with real files, moved by the operations of the store: for audits, and for tampering."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from gapless.audit import AuditReport, audit
from gapless.effects.files import OutputFolder, file_digest
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Bound, ChainState, IntegerDomain
from gapless.store import Store, open_store
from gapless.store.records import (
    Blocker,
    ChainRow,
    CutoverResult,
    DeadLetter,
    MembershipPolicy,
    Observed,
    Promotion,
    ScopeIdentity,
)
from gapless.testing import ManualClock

DOMAIN = IntegerDomain()
ROWS = 10


class AuditedScope:
    """The scope `orders`. `rows` is where each chain stands that was read, by partition; the latest of a partition's."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.clock = ManualClock()
        self.store: Store = open_store(url, create=True, clock=self.clock)
        self.identity = ScopeIdentity("orders", DOMAIN, {"path": "/orders"}, Bound.before(0))
        self.store.register_scope(self.identity)
        self.rows: dict[str, ChainRow] = {}
        self.fence = self.store.begin_run("orders", "run-1", "local")
        self._seen: Observed | None = None

    def observe(
        self,
        *names: str,
        generation: str = "r1",
        list_bound: int | None = None,
        policy: MembershipPolicy | None = None,
        seals: dict[str, int] | None = None,
        successors: dict[str, tuple[str, ...]] | None = None,
        parents: dict[str, tuple[str, ...]] | None = None,
    ) -> Observed:
        """Take note of a list, and take everybody who is to be read."""
        listed = [
            ListedPartition(
                Partition(name, {"id": name}),
                None if (seals or {}).get(name) is None else Bound.through((seals or {})[name]),
                (successors or {}).get(name),
                (parents or {}).get(name),
            )
            for name in names
        ]
        certified = None if list_bound is None else Bound.through(list_bound)
        observed = self.store.observe("orders", Assignment(listed, generation, certified), policy=policy)
        for row in observed.chains:
            if row.state in (ChainState.OPEN, ChainState.HELD) and (
                row.generation == generation or row.kind == "transit"
            ):
                taken = self.store.take(row.chain, self.fence)
                assert taken is not None
                self.rows[row.partition] = taken
        return observed

    def promote(self, partition: str, position: int | None, **changes: Any) -> ChainRow:
        """A page of ten events in a file of its own, certified through `position` (None: not certified)."""
        row = self.store.chain(self.rows[partition].chain)
        bound = None if position is None else Bound.through(position)
        asserted = changes.get("basis", row.basis) == "asserted"
        evidence = None
        if bound is not None:
            proof = {"reason": "the vendor says so"} if asserted else {"issuer": "page"}
            evidence = {"position": str(position), "inclusive": True, "sequence": row.sequence, **proof}
        values: dict[str, Any] = {
            "expected": row,
            "pages": 1,
            "token_in": row.page_token,
            "token_out": f"t{row.chain}-{row.sequence + 1}",
            "bound": bound,
            "basis": row.basis,
            "read_to": bound,
            "end": False,
            "events": ROWS,
            "rows": ROWS,
            "evidence": evidence,
            **changes,
        }
        if values["rows"]:
            values |= self._file(row, values["rows"])
        else:
            values |= {"path": None, "digest": None, "size": 0}
        if values["end"]:
            values["token_out"] = None
        promoted = self.store.promote(Promotion(**values))
        assert promoted is not None
        self.rows[partition] = promoted
        self.clock.sleep(1)
        return promoted

    def _file(self, row: ChainRow, rows: int) -> dict[str, Any]:
        folder = OutputFolder(str(self.folder), "orders").of(row.partition)
        new = folder / "new"
        names = [f"{row.chain}-{row.sequence}-{number}" for number in range(rows)]
        pq.write_table(pa.table({"_partition": [row.partition] * rows, "_event_id": names}), new)
        digest = file_digest(new)
        path = folder / f"{row.sequence:09d}-{row.fencing_token}-{digest[:32]}.parquet"
        new.rename(path)
        return {"path": str(path), "digest": digest, "size": path.stat().st_size}

    def end(self, partition: str) -> ChainRow:
        return self.promote(partition, None, end=True, events=0, rows=0, read_to=None)

    def letter(self, partition: str, event_id: str, position: int) -> DeadLetter:
        row = self.rows[partition]
        return DeadLetter(partition, row.sequence, event_id, position, "ValueError: no", '{"id":1}')

    def skip(self, partition: str, event_id: str, position: int) -> None:
        """Hold the chain on an event, which an operator then gives up."""
        row = self.store.chain(self.rows[partition].chain)
        blocker = Blocker("unsettled_event", "ValueError: no", event_id, position)
        assert self.store.hold(row, ChainState.HELD, blocker)
        self.store.skip("orders", partition, event_id, "known bad", "kim")
        taken = self.store.take(row.chain, self.fence)
        assert taken is not None
        self.rows[partition] = taken

    def restart(self, partition: str) -> None:
        row = self.store.chain(self.rows[partition].chain)
        again = self.store.restart(row, f"since-{row.sequence}", "the token died")
        assert again is not None
        self.rows[partition] = again

    def publish(self) -> None:
        self.store.publish("orders", self.store.scope("orders").epoch)
        self.clock.sleep(1)

    def cutover(self) -> CutoverResult:
        result = self.store.cutover("orders")
        assert result.accepted, result.missing
        self.clock.sleep(1)
        return result

    def chain(self, partition: str) -> int:
        return self.rows[partition].chain

    def key(self, position: int) -> bytes:
        return DOMAIN.key(Bound.through(position))

    def audit(self, **options: Any) -> AuditReport:
        """With a store of its own, opened for reading only."""
        with closing(open_store(self.url, readonly=True, clock=self.clock)) as store:
            return audit(store, "orders", **options)

    def codes(self) -> list[str]:
        return sorted({one.code for one in self.audit().contradictions})

    def sql(self, statement: str, **values: Any) -> int:
        """Tamper: change the database behind the store's back. How many rows were changed."""
        with self.connection() as connection:
            changed = connection.execute(sa.text(statement), values).rowcount
            connection.commit()
        return changed

    @contextmanager
    def connection(self) -> Iterator[sa.Connection]:
        url = self.url.replace("postgresql://", "postgresql+psycopg://", 1)
        engine = sa.create_engine(url, poolclass=NullPool)
        with engine.connect() as connection:
            yield connection
        engine.dispose()

    def contents(self) -> list[tuple[Any, ...]]:
        """Every row of every table: what an audit must not change."""
        with self.connection() as connection:
            names = [name for name in sa.inspect(connection).get_table_names() if name.startswith("gapless_")]
            return [
                (name, sorted(map(repr, connection.exec_driver_sql(f"SELECT * FROM {name}"))))
                for name in sorted(names)
            ]

    def close(self) -> None:
        self.store.close()


def eventful(scope: AuditedScope) -> AuditedScope:
    """A history with a newcomer, a leaver, other routing by the source's promise, dead letters, a skip and a restart."""
    scope.observe("a", "b")
    scope.promote("a", 10)
    scope.promote("b", 10)
    scope.publish()
    scope.promote("a", 20, rows=9, dead_letters=[scope.letter("a", "e15", 15)])
    scope.skip("b", "e12", 12)
    scope.promote("b", 20, rows=9, settled=["e12"])
    scope.restart("b")
    scope.observe("a", "b", "c")
    scope.promote("c", 20)
    scope.cutover()
    scope.promote("b", 30)
    scope.promote("a", 30)
    scope.promote("c", 30)
    scope.publish()
    scope.observe("a", "b", "c", seals={"b": 30}, successors={"b": ("c",)})
    scope.cutover()
    moves = MembershipPolicy(moves="never behind what is certified")
    scope.promote("a", 40)
    scope.promote("c", 40)
    scope.publish()
    scope.observe("a", "c", generation="r2", policy=moves)
    scope.cutover()
    scope.observe("a", "c", generation="r2", policy=moves)
    scope.promote("a", 50)
    scope.promote("c", 45)
    scope.publish()
    return scope
