"""A scope and the store that keeps it: all that a reading command needs of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gapless.paging.secrets import SecretReference
from gapless.progress import Domain

if TYPE_CHECKING:
    from gapless.store_ref import StoreRef


@dataclass(frozen=True, slots=True)
class ScopeStore:
    """`url` is absolute and holds no password; `password` says where one is read when the store is opened."""

    scope: str
    domain: Domain
    url: str
    password: SecretReference | None = None
    connections: int = 4

    def ref(self) -> StoreRef:
        """The store as it travels to workers."""
        from gapless.store_ref import StoreRef

        return StoreRef(self.url, self.password, self.connections)
