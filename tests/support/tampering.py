"""What tests of tampering look for: the contradiction that is due, the file of a promotion, the epochs as they stand."""

from pathlib import Path
from typing import Any

from audited_scope import AuditedScope

from gapless.audit import Contradiction
from gapless.store.records import MembershipPolicy

READING_AGAIN = MembershipPolicy(reading_again=True)
HANDOFF = MembershipPolicy(handoff=True, reading_again=False)
MOVES = MembershipPolicy(moves="never behind what is certified")


def found(scope: AuditedScope, code: str, **where: Any) -> Contradiction:
    """The contradiction of that code at that place."""
    contradictions = scope.audit().contradictions
    fits = [
        one
        for one in contradictions
        if one.code == code and all(getattr(one, name) == value for name, value in where.items())
    ]
    if not fits:
        raise AssertionError([(one.code, one.partition, one.epoch, one.detail) for one in contradictions])
    return fits[0]


def promoted(scope: AuditedScope, partition: str, sequence: int) -> Path:
    """The file of that run of pages."""
    for row in scope.store.promotions("orders", every=True):
        if (row.partition, row.sequence) == (partition, sequence):
            assert row.path is not None
            return Path(row.path)
    raise AssertionError("no such promotion")


def scope_epochs(scope: AuditedScope) -> list[Any]:
    with scope.store.evidence("orders") as evidence:
        return list(evidence.epochs())


def assert_clean(scope: AuditedScope) -> None:
    report = scope.audit()
    assert report.clean, report.contradictions


def promoted_under(scope: AuditedScope, partition: str, sequence: int | None, generation: str) -> None:
    """Say of one page, or of all, that it was read under that routing generation."""
    pages = "" if sequence is None else f" AND sequence = {sequence}"
    changed = scope.sql(
        f"UPDATE gapless_promotion SET generation = :generation WHERE chain = :chain{pages}",
        generation=generation,
        chain=scope.chain(partition),
    )
    assert changed > 0
