"""An operator's word about membership: where a partition ended, or that all is to be read anew. Audited, never certified."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from gapless.errors import MembershipRefused
from gapless.progress import NO_CAP, Bound, ChainState, bound_text
from gapless.store import schema
from gapless.store.base import StoreBase
from gapless.store.membership import is_frozen, live_chains
from gapless.store.records import PARTITION, FrontierRow, ScopeIdentity
from gapless.store.rows import frontier_row
from gapless.store.scopes import fingerprint


class OperatorWord(StoreBase):
    """What a person may state, and what becomes of it; each with its reason in the journal."""

    def seal(
        self,
        scope: str,
        partition: str,
        at: Bound,
        reason: str,
        operator: str | None = None,
        *,
        dry_run: bool = False,
    ) -> int:
        """State that a member or candidate holds nothing beyond `at`: it leaves at the next cutover, once it is promoted that
        far, whatever becomes of its successors, and the frontier is asserted from there on. The chains it was stated of.
        `dry_run` checks and writes nothing.

        Raises MembershipRefused (no reason, no such partition, behind its bound, or elsewhere than where the source has stated
        its end) and UnknownScope; then nothing was changed."""
        _require_reason(reason, "a seal by an operator")
        now, attempt = self._clock.now(), uuid4().hex

        def work(connection: Connection) -> int:
            row = self._scope_row(connection, scope, lock=not dry_run)
            domain = self._domain(connection, scope)
            chains = _named(live_chains(connection, row, lock=not dry_run), scope, partition)
            for chain in chains:
                _require_sealable(chain, partition, domain.key(at), bound_text(at, domain))
            if dry_run:
                return len(chains)
            for chain in chains:
                connection.execute(
                    sa.update(schema.chain)
                    .where(schema.chain.c.chain == chain["chain"])
                    .values(seal=domain.key(at), seal_basis="operator")
                )
                detail = {
                    "position": domain.text(at.position),
                    "inclusive": at.inclusive,
                    "attempt": attempt,
                }
                _journal(connection, row, "seal", detail, reason, operator, now, chain)
            connection.execute(_scope(scope).values(changing=True))
            return len(chains)

        def again(connection: Connection) -> int:
            """Where the first attempt did commit, it stands in the journal under its own mark."""
            return _said(connection, scope, now, attempt) or work(connection)

        return self._database.read(work) if dry_run else self._database.write(work, again)

    def rebuild(
        self,
        scope: str,
        reason: str,
        operator: str | None = None,
        *,
        identity: ScopeIdentity | None = None,
        dry_run: bool = False,
    ) -> FrontierRow:
        """Begin a new lineage: everything is read again from its start, and the old lineage's frontier and files stay readable,
        marked superseded. `identity` is what the scope is from now on; None: what it was. The scope's row as it then is.

        Raises MembershipRefused (no reason, nothing to rebuild, another domain) and UnknownScope; nothing was changed then."""
        _require_reason(reason, "a rebuild")
        now, attempt = self._clock.now(), uuid4().hex

        def work(connection: Connection) -> FrontierRow:
            row = self._scope_row(connection, scope, lock=not dry_run)
            if identity is not None and identity.domain.describe() != row["domain"]:
                raise MembershipRefused(
                    f"the domain of scope {scope!r} cannot change: the old lineage stays readable under it",
                    where=self._database.where,
                    remedy="read it under another scope name",
                )
            if not is_frozen(connection, row):
                raise MembershipRefused(
                    f"lineage {row['lineage']} of scope {scope!r} has read nothing yet: there is nothing to rebuild",
                    where=self._database.where,
                    remedy="`gapless backfill JOB` reads it",
                )
            if not dry_run:
                _supersede(connection, row, reason, operator, now, identity, attempt)
            return frontier_row(self._scope_row(connection, scope))

        def again(connection: Connection) -> FrontierRow:
            """Where the first attempt did commit, another one would begin a lineage too many."""
            if _said(connection, scope, now, attempt):
                return frontier_row(self._scope_row(connection, scope))
            return work(connection)

        return self._database.read(work) if dry_run else self._database.write(work, again)


def _require_reason(reason: str, what: str) -> None:
    if not reason.strip():
        raise MembershipRefused(
            f"{what} needs a reason", remedy="say why: --reason TEXT; it is kept and shown"
        )


def _named(live: Sequence[RowMapping], scope: str, partition: str) -> list[RowMapping]:
    chains = [row for row in live if row["kind"] == PARTITION]
    found = [row for row in chains if row["partition"] == partition]
    if not found:
        close = get_close_matches(partition, [row["partition"] for row in chains], 1)
        raise MembershipRefused(
            f"scope {scope!r} has no member or candidate {partition!r}",
            where=f"scope {scope}",
            remedy=f"did you mean {close[0]!r}?" if close else "`gapless epoch show` names them",
        )
    return found


def _require_sealable(chain: RowMapping, partition: str, seal: bytes, at: str) -> None:
    if chain["seal"] not in (b"", seal) and chain["seal_basis"] == "source":
        raise MembershipRefused(
            f"the source itself has sealed partition {partition!r}, elsewhere than {at}",
            where=f"scope {chain['scope']}",
            remedy="it leaves by that; sealed there by an operator as well, it leaves without its successors",
        )
    if seal < chain["bound"]:
        raise MembershipRefused(
            f"a seal {at} lies behind the bound of partition {partition!r}",
            where=f"scope {chain['scope']}",
            remedy="seal it at its bound, or above it: `gapless epoch show` tells how far it is proved",
        )


def _supersede(
    connection: Connection,
    scope: RowMapping,
    reason: str,
    operator: str | None,
    now: datetime,
    identity: ScopeIdentity | None,
    attempt: str,
) -> None:
    epoch, lineage = scope["epoch"] + 1, scope["lineage"] + 1
    live = sa.and_(
        schema.chain.c.scope == scope["scope"],
        schema.chain.c.lineage == scope["lineage"],
        schema.is_live(),
    )
    connection.execute(
        sa.update(schema.chain).where(live).values(epoch_out=epoch, state=ChainState.SUPERSEDED.value)
    )
    values: dict[str, Any] = {
        "lineage": lineage,
        "epoch": epoch,
        "generation": "",
        "observed_generation": "",
        "list_bound": b"",
        "list_certified": False,
        "frontier": b"",
        "cap": NO_CAP,
        "basis": "certified",
        "changing": False,
        "published_at": None,
    }
    if identity is not None:
        values |= {
            "fingerprint": fingerprint(identity),
            "identity": dict(identity.identity),
            "after": identity.domain.key(identity.after),
        }
    connection.execute(_scope(scope["scope"]).values(values))
    detail = {
        "to_lineage": lineage,
        "epoch": scope["epoch"],
        "frontier": scope["frontier"].hex(),
        "after": scope["after"].hex(),
        "basis": scope["basis"],
        "list_certified": scope["list_certified"],
        "identity": scope["identity"],
        "attempt": attempt,
    }
    _journal(connection, scope, "rebuild", detail, reason, operator, now)


def _said(connection: Connection, scope: str, now: datetime, attempt: str) -> int:
    """How many entries of the journal this very attempt has written: another one's of the same instant are not its own."""
    column = schema.journal.c
    entries = sa.select(column.detail).where(column.scope == scope, column.recorded_at == now)
    return sum(detail.get("attempt") == attempt for detail in connection.execute(entries).scalars())


def _scope(name: str) -> sa.Update:
    return sa.update(schema.scope).where(schema.scope.c.scope == name)


def _journal(
    connection: Connection,
    scope: RowMapping,
    action: str,
    detail: Mapping[str, object],
    reason: str,
    operator: str | None,
    now: datetime,
    chain: RowMapping | None = None,
) -> None:
    connection.execute(
        sa.insert(schema.journal).values(
            scope=scope["scope"],
            lineage=scope["lineage"],
            chain=None if chain is None else chain["chain"],
            partition=None if chain is None else chain["partition"],
            action=action,
            detail=dict(detail),
            reason=reason,
            operator=operator,
            recorded_at=now,
        )
    )
