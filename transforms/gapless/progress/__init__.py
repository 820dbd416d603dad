"""The algebra of completeness: bounds, domains, certificates, the ledger of one partition, membership and frontier.

Pure: no clock, no I/O, no engine; the standard library is all it needs.

    from gapless.progress import Bound, IntegerDomain

    bound      a cut in a domain, with its endpoint            Bound
    domain     the ordered set positions live in               IntegerDomain, TextDomain, TimestampDomain, ListDomain
    evidence   what a bound rests on, as types apart           Certificate, Assertion, Estimate
    ledger     one partition: pages, receipts, promotion       Ledger, PageAttempt, Checkpoint, Gaps
    frontier   the minimum over a full membership              Frontier, Membership, Scalar, Vector, Withheld
"""

from gapless.progress.blockers import BLOCKER_CODES
from gapless.progress.bound import Bound, Position, highest
from gapless.progress.certificate import Assertion, Certificate, Estimate
from gapless.progress.checkpoint import ChainState, Checkpoint, PageAttempt
from gapless.progress.decimals import parse_decimal_units
from gapless.progress.description import domain_from, infer_domain
from gapless.progress.domain import Domain, IntegerDomain, ListDomain, TextDomain, coarsen
from gapless.progress.frontier import Frontier, FrontierValue, MemberBlocker, Scalar, Vector, Withheld
from gapless.progress.gaps import Gaps
from gapless.progress.keys import NO_BOUND, NO_CAP
from gapless.progress.membership import Membership, MembershipCode
from gapless.progress.timestamp import TimestampDomain

__all__ = [
    "BLOCKER_CODES",
    "NO_BOUND",
    "NO_CAP",
    "Assertion",
    "Bound",
    "Certificate",
    "ChainState",
    "Checkpoint",
    "Domain",
    "Estimate",
    "Frontier",
    "FrontierValue",
    "Gaps",
    "IntegerDomain",
    "ListDomain",
    "MemberBlocker",
    "Membership",
    "MembershipCode",
    "PageAttempt",
    "Position",
    "Scalar",
    "TextDomain",
    "TimestampDomain",
    "Vector",
    "Withheld",
    "coarsen",
    "domain_from",
    "highest",
    "infer_domain",
    "parse_decimal_units",
]
