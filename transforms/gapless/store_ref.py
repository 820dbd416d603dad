"""Where the store is, as it may travel: a URL without its password, and a reference to the password."""

from dataclasses import dataclass

from gapless.clock import Clock
from gapless.errors import ConfigurationError
from gapless.paging.secrets import SecretReference
from gapless.store import Store, open_store
from gapless.store.connections import CONNECTIONS


@dataclass(frozen=True, slots=True)
class StoreRef:
    """Picklable; the password is read on the worker, when the store is opened. `connections`: how many each worker process has
    to a PostgreSQL store at most (see gapless.store.connections)."""

    url: str
    password: SecretReference | None = None
    connections: int = CONNECTIONS

    def __post_init__(self) -> None:
        if self.connections < 1:
            raise ConfigurationError(
                f"a store cannot be used by {self.connections} connections", remedy="give 1 or more a process"
            )

    def open(
        self,
        create: bool = False,
        *,
        readonly: bool = False,
        patient: bool = False,
        clock: Clock | None = None,
    ) -> Store:
        """See `open_store`. Raises ConfigurationError for an unset secret, StoreError where the store refuses."""
        password = self.password.resolve().reveal() if self.password else None
        return open_store(
            self.url,
            password,
            create,
            clock,
            readonly=readonly,
            patient=patient,
            connections=self.connections,
        )


def store_ref(store: str | StoreRef) -> StoreRef:
    """A `StoreRef` of what a user gives. Raises ConfigurationError where the URL holds a password."""
    if isinstance(store, StoreRef):
        return store
    if "@" in store and ":" in store.split("//", 1)[-1].split("@", 1)[0]:
        raise ConfigurationError(
            "the store's URL holds a password, which would travel with the pipeline",
            remedy="leave it out and give StoreRef(url, SecretReference(env='NAME'))",
        )
    return StoreRef(store)
