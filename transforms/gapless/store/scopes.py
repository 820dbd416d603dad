"""Scopes: what is being read, under a fingerprint, so that evidence of two scopes is never combined."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.errors import ForeignScope
from gapless.progress import NO_CAP
from gapless.store import schema
from gapless.store.base import StoreBase, insert_new
from gapless.store.columns import canonical_json
from gapless.store.records import FrontierRow, IdentityDifference, ScopeIdentity
from gapless.store.rows import frontier_row

_ABSENT = "(absent)"


class Scopes(StoreBase):
    """Registering scopes, and the frozen data schema that belongs to each."""

    def register_scope(self, identity: ScopeIdentity) -> FrontierRow:
        """Create the scope, or check that it is this one. Idempotent.

        Raises ForeignScope that names the identity keys which differ, with both values: then nothing was changed."""
        values = {
            "scope": identity.scope,
            "fingerprint": fingerprint(identity),
            "identity": dict(identity.identity),
            "domain": identity.domain.describe(),
            "after": identity.domain.key(identity.after),
            "lineage": 1,
            "epoch": 0,
            "generation": "",
            "observation": 0,
            "list_certified": False,
            "frontier": identity.domain.key(None),
            "cap": NO_CAP,
            "basis": "certified",
            "observed_generation": "",
            "list_bound": identity.domain.key(None),
            "changing": False,
            "registered_at": self._clock.now(),
        }

        def work(connection: Connection) -> FrontierRow:
            connection.execute(insert_new(connection, schema.scope).values(values))
            return frontier_row(self._scope_row(connection, identity.scope))

        # Most calls meet a scope that is there: they need no write lock.
        known = self._database.read(lambda connection: self._known(connection, identity.scope))
        row = known or self._database.write(work)
        differences = _differences(row, identity)
        if differences:
            raise ForeignScope(
                f"the store holds another scope under the name {identity.scope!r}: {'; '.join(map(str, differences))}",
                where=self._database.where,
                remedy="give the changed job another scope name, or start it over: `gapless epoch rebuild JOB --reason ...`",
            )
        return row

    def identity_differences(self, identity: ScopeIdentity) -> list[IdentityDifference]:
        """What `register_scope` would refuse; empty where the scope is this one, or is not stored yet. Writes nothing."""
        row = self._database.read(lambda connection: self._known(connection, identity.scope))
        return [] if row is None else _differences(row, identity)

    def scopes(self) -> list[str]:
        """The names of all scopes, sorted."""
        names = self._database.read(
            lambda connection: connection.execute(sa.select(schema.scope.c.scope)).scalars().all()
        )
        return sorted(names)

    def scope(self, name: str) -> FrontierRow:
        """Frontier and membership epoch, read together. Raises UnknownScope."""
        return self._database.read(lambda connection: frontier_row(self._scope_row(connection, name)))

    def schema_store(self, scope: str) -> "ScopeSchema":
        """The scope's frozen data schema, as effects use it."""
        return ScopeSchema(self, scope)

    def _known(self, connection: Connection, scope: str) -> FrontierRow | None:
        row = (
            connection.execute(sa.select(schema.scope).where(schema.scope.c.scope == scope))
            .mappings()
            .one_or_none()
        )
        return None if row is None else frontier_row(row)

    def _data_schema(self, scope: str) -> str | None:
        def work(connection: Connection) -> str | None:
            text: str | None = self._scope_row(connection, scope)["data_schema"]
            return text

        return self._database.read(work)

    def _swap_data_schema(self, scope: str, expected: str | None, proposal: str) -> str:
        column = schema.scope.c.data_schema

        def work(connection: Connection) -> str:
            swap = sa.update(schema.scope).where(
                schema.scope.c.scope == scope, column.is_not_distinct_from(expected)
            )
            connection.execute(swap.values(data_schema=proposal))
            text: str = self._scope_row(connection, scope)["data_schema"]
            return text

        return self._database.write(work)


class ScopeSchema:
    """Implements `effects.SchemaStore`. Raises UnknownScope, and StoreError as the store does."""

    def __init__(self, store: Scopes, scope: str) -> None:
        self._store = store
        self._scope = scope

    def freeze(self, proposal: str) -> str:
        """Whoever is first wins. Returns what is frozen now."""
        return self._store._data_schema(self._scope) or self._store._swap_data_schema(
            self._scope, None, proposal
        )

    def frozen(self) -> str | None:
        return self._store._data_schema(self._scope)

    def widen(self, expected: str, proposal: str) -> str:
        """Replace exactly `expected`. Returns what is frozen now: the proposal, or another's."""
        return self._store._swap_data_schema(self._scope, expected, proposal)


def fingerprint(identity: ScopeIdentity) -> str:
    """SHA-256 over everything that makes the scope what it is, the same on every machine."""
    domain = identity.domain
    covered = {
        "identity": dict(identity.identity),
        "domain": domain.describe(),
        "after": domain.key(identity.after).hex(),
    }
    return hashlib.sha256(canonical_json(covered).encode("ascii")).hexdigest()


def _differences(stored: FrontierRow, given: ScopeIdentity) -> list[IdentityDifference]:
    if stored.fingerprint == fingerprint(given):
        return []
    before = dict(_leaves(_shown(ScopeIdentity(stored.scope, stored.domain, stored.identity, stored.after))))
    after = dict(_leaves(_shown(given)))
    return [
        IdentityDifference(key, before.get(key, _ABSENT), after.get(key, _ABSENT))
        for key in sorted(before.keys() | after.keys())
        if before.get(key, _ABSENT) != after.get(key, _ABSENT)
    ]


def _shown(identity: ScopeIdentity) -> dict[str, Any]:
    start = identity.after
    after = None
    if start is not None:
        after = {"position": identity.domain.text(start.position), "inclusive": start.inclusive}
    return {**identity.identity, "domain": identity.domain.describe(), "range.start": after}


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value with its dotted path, as JSON, so that 1 and "1" stay apart."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, canonical_json(value)
