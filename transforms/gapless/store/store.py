"""The store: durable progress of scopes, and the only way to change it. Each concern is a base class of its own."""

from types import TracebackType

from gapless.clock import Clock, SystemClock
from gapless.errors import StoreAbsent, StoreUnreadable
from gapless.store.address import Address, parse_address
from gapless.store.connections import CONNECTIONS
from gapless.store.cutover import Cutovers
from gapless.store.engine import Database
from gapless.store.evidence import EvidenceReading
from gapless.store.findings import Findings
from gapless.store.membership import Memberships
from gapless.store.operator_word import OperatorWord
from gapless.store.promotion import Promotions
from gapless.store.publish import Publishing
from gapless.store.reading import Reading
from gapless.store.reopening import Reopening
from gapless.store.runs import Runs
from gapless.store.scopes import Scopes
from gapless.store.versions import prepare


class Store(
    Scopes,
    Runs,
    Memberships,
    Cutovers,
    OperatorWord,
    Promotions,
    Reopening,
    Findings,
    Publishing,
    Reading,
    EvidenceReading,
):
    """An open store, used by one thread at a time. A context manager that closes it.

    Every method raises StoreError where the database refuses, and then has changed nothing. A connection that dies is
    opened again, and what was under way is done again, in a way that is right however far it had come."""

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def disconnect(self) -> None:
        """Close the connection until it is next needed. Nobody may fork with one open: SQLite keeps account of locks by process,
        and a child that has inherited the account believes itself to hold what only its parent holds."""
        self._database.disconnect()

    def close(self) -> None:
        """Close the connection. Closing twice is once."""
        self._database.close()


def open_store(
    url: str,
    password: str | None = None,
    create: bool = False,
    clock: Clock | None = None,
    *,
    readonly: bool = False,
    patient: bool = False,
    connections: int = CONNECTIONS,
) -> Store:
    """Open the store at `url`; `password` is added to a PostgreSQL URL.

    `create` makes the store where there is none, and upgrades an older schema. `readonly` opens it so that nothing can be
    written. `patient`: the server was there a moment ago, so that it is waited for while it restarts. `connections`: how many
    this process has to a PostgreSQL store at most; all that open it with the same number share them.

    Raises ConfigurationError for a URL that names no kind of store, StoreUnreadable (not there, not reachable, not a store,
    damaged), StoreNewer or StoreUnwritable."""
    if create and readonly:
        raise ValueError("a store cannot be created for reading only")
    clock = clock or SystemClock()
    address = parse_address(url, password)
    _require_file(address, create=create)
    database = Database(
        address, clock, readonly=readonly, create=create, patient=patient, connections=connections
    )
    try:
        prepare(database, create=create)
    except BaseException:
        database.close()
        raise
    return Store(database, clock)


def _require_file(address: Address, *, create: bool) -> None:
    path = address.path
    if path is None:
        return
    if path.is_dir():
        raise StoreUnreadable("a folder is no store", where=address.shown, remedy="name a file in it")
    if not path.parent.is_dir():
        raise StoreUnreadable(
            f"the folder {path.parent} does not exist", where=address.shown, remedy=f"mkdir -p {path.parent}"
        )
    if not create and not path.exists():
        raise StoreAbsent(
            "there is no store at this path",
            where=address.shown,
            remedy="check the path; a backfill or a stream creates it",
        )
