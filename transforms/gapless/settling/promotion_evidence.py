"""What a promotion keeps of its pages beside the events: their best certificate, and the promises they broke."""

from collections.abc import Mapping, Sequence

from gapless.paging.chain import PageViolation
from gapless.progress import Assertion, Certificate, Domain
from gapless.store.records import Violation
from gapless.store.reopening import RESUME


def evidence_of(certificate: Certificate | Assertion, domain: Domain, sequence: int) -> Mapping[str, object]:
    """What is kept of a certificate with the promotion that it raises; JSON values. `sequence` is that of its page.

    >>> from gapless.progress import Bound, IntegerDomain
    >>> evidence_of(Assertion(Bound.through(9), "closed"), IntegerDomain(), 2)
    {'position': '9', 'inclusive': True, 'sequence': 2, 'reason': 'closed'}
    """
    said = (
        {"reason": certificate.reason}
        if isinstance(certificate, Assertion)
        else {"issuer": certificate.issuer}
    )
    return {
        "position": domain.text(certificate.bound.position),
        "inclusive": certificate.bound.inclusive,
        "sequence": sequence,
        **said,
    }


def with_resume(evidence: Mapping[str, object] | None, token: str | None) -> Mapping[str, object] | None:
    """The same with the token that the last page, which ends the chain, gave for a stream; None: it gave none."""
    return evidence if token is None else {**(evidence or {}), RESUME: token}


def violations_of(partition: str, sequence: int, broken: Sequence[PageViolation]) -> Sequence[Violation]:
    """The broken promises of the page with that sequence, as the store keeps them."""
    return [
        Violation(
            partition=partition,
            kind=one.kind,
            sequence=sequence,
            detail=one.detail,
            event_id=one.event_id,
            position=one.position,
            bound=one.bound,
        )
        for one in broken
    ]
