"""From a run of settled pages to the promotion that makes it durable: the same evidence as in place, and no file."""

from collections.abc import Sequence

from gapless.emitted_page import EmittedPage
from gapless.progress import Assertion, Bound, Domain, Run, highest
from gapless.settling.promotion_evidence import evidence_of, violations_of, with_resume
from gapless.store.records import DeadLetter, Promotion, Violation
from gapless.tracking.chain_tracking import ChainTracking


def promotion_of(tracking: ChainTracking, run: Run, domain: Domain) -> Promotion:
    """The promotion of a run that `tracking` says may be promoted."""
    row, pages = tracking.row, tracking.pages_of(run)
    bound, basis, evidence, read_to = None, row.basis, None, None
    letters: list[DeadLetter] = []
    violations: list[Violation] = []
    settled: list[str] = []
    for sequence, page in enumerate(pages, row.sequence):
        certificate = page.certificate
        if certificate is not None and (bound is None or certificate.bound > bound):
            bound, evidence = certificate.bound, evidence_of(certificate, domain, sequence)
            basis = "asserted" if isinstance(certificate, Assertion) else basis
        if page.positions:
            # Not the last one's: behind a certified bound, events may come in any order.
            read_to = highest(read_to, Bound.through(max(page.positions)))
        letters += _letters(tracking, page, sequence)
        violations += violations_of(page.task.partition, sequence, page.violations)
        settled += tracking.settled_before(page)
    last = pages[-1]
    return Promotion(
        expected=row,
        pages=len(pages),
        token_in=row.page_token,
        token_out=last.next_token,
        bound=bound,
        basis=basis,
        read_to=read_to,
        end=last.next_token is None,
        events=sum(len(page.ids) for page in pages),
        path=None,
        digest=None,
        rows=0,
        evidence=with_resume(evidence, last.resume),
        dead_letters=letters,
        violations=violations,
        settled=settled,
    )


def _letters(tracking: ChainTracking, page: EmittedPage, sequence: int) -> Sequence[DeadLetter]:
    return [
        DeadLetter(
            page.task.partition, sequence, letter.event_id, letter.position, letter.reason, letter.payload
        )
        for letter in tracking.letters_of(page)
    ]
