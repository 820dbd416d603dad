"""Membership epochs by hand: what stands, a cutover as far as it is proved, an operator's seal, a rebuild.

    with Epochs("sqlite:///progress.db", "orders") as epochs:
        epochs.show()["missing"]                                what the latest list lacks
        epochs.cutover()                                        the step that is proved now
        epochs.seal("eu", "79999", "switched off, ticket 41")   it holds nothing beyond: asserted, and audited
        epochs.rebuild("ids were wrong until May")              a new lineage; the old one stays readable

The same as `gapless epoch`. What is refused changes nothing.
"""

from types import TracebackType
from typing import Any

from gapless.epoch_document import epoch_document
from gapless.errors import MembershipRefused
from gapless.operator_name import operator_name
from gapless.progress import Bound
from gapless.store.records import (
    CutoverResult,
    Rebuilt,
    ScopeIdentity,
    Sealed,
    Snapshot,
    SupersededLineage,
)
from gapless.store_ref import StoreRef, store_ref


class Epochs:
    """One scope's membership. Used by one thread. `readonly` is enough for `show`, and for whatever is a dry run.

    Raises ConfigurationError and StoreError; UnknownScope where the store holds no such scope."""

    def __init__(self, store: str | StoreRef, scope: str, *, readonly: bool = False) -> None:
        self.scope = scope
        self._store = store_ref(store).open(readonly=readonly)
        try:
            self.domain = self._store.scope(scope).domain
        except BaseException:
            self.close()
            raise

    def show(self) -> dict[str, Any]:
        """What `gapless epoch show --json` prints: members, candidates, and what a cutover would lack."""
        return epoch_document(self._store.snapshot(self.scope))

    def cutover(self, *, dry_run: bool = False) -> CutoverResult:
        """Take the step towards the latest list that is proved now. Not accepted, with nothing changed, where none is: `missing`
        names what lacks, and is empty where the epoch is made of the latest list already."""
        return self._store.cutover(self.scope, dry_run=dry_run)

    def seal(
        self,
        partition: str,
        at: str | Bound,
        reason: str,
        operator: str | None = None,
        *,
        dry_run: bool = False,
    ) -> Sealed:
        """State that a member or candidate holds nothing beyond `at`: canonical text of the last position, or a bound. From the
        cutover on that it leaves by, the frontier is asserted. `operator` None: the user's name.

        Raises PositionError for other text, and MembershipRefused: no reason, no such partition, behind its bound, sealed by the
        source itself."""
        bound = at if isinstance(at, Bound) else Bound.through(self.domain.from_text(at))
        who = operator or operator_name()
        self._store.seal(self.scope, partition, bound, reason, who, dry_run=dry_run)
        return Sealed(self.scope, partition, bound, reason, who)

    def rebuild(
        self,
        reason: str,
        operator: str | None = None,
        *,
        identity: ScopeIdentity | None = None,
        dry_run: bool = False,
    ) -> Rebuilt:
        """Begin a new lineage: the next run reads everything again from its start. Frontier and files of the old one stay
        readable, marked superseded. `identity` is what the scope is from now on; None: what it was.

        Raises MembershipRefused: no reason, nothing to rebuild, another domain."""
        if identity is not None and identity.scope != self.scope:
            raise MembershipRefused(
                f"the identity is of scope {identity.scope!r}",
                where=f"scope {self.scope}",
                remedy="rebuild the scope the job is about",
            )
        who = operator or operator_name()
        differences = () if identity is None else tuple(self._store.identity_differences(identity))
        row = self._store.rebuild(self.scope, reason, who, identity=identity, dry_run=dry_run)
        snapshot = self._store.snapshot(self.scope)
        if dry_run:
            return Rebuilt(self.scope, row.lineage + 1, _as_it_stands(snapshot, reason, who), differences)
        (ended,) = (one for one in snapshot.superseded if one.lineage == row.lineage - 1)
        return Rebuilt(self.scope, row.lineage, ended, differences)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> "Epochs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _as_it_stands(snapshot: Snapshot, reason: str, operator: str) -> SupersededLineage:
    """What a rebuild would end now."""
    scope = snapshot.scope
    return SupersededLineage(
        lineage=scope.lineage,
        epoch=scope.epoch,
        after=scope.after,
        frontier=scope.frontier,
        basis=scope.basis,
        list_certified=scope.list_certified,
        violated=snapshot.violations > 0,
        reason=reason,
        operator=operator,
        superseded_at=snapshot.as_of,
    )
