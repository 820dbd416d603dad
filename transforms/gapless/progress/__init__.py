"""The algebra of completeness: bounds, domains, certificates, the ledger of one partition, membership and frontier.

Pure: no clock, no I/O, no engine; the standard library is all it needs.

    bound      a cut in a domain, with its endpoint            Bound
    domain     the ordered set positions live in               IntegerDomain, TextDomain, TimestampDomain, ListDomain
    evidence   what a bound rests on, as types apart           Certificate, Assertion, Estimate
    ledger     one partition: pages, receipts, promotion       Ledger, PageAttempt, Checkpoint, Gaps
    frontier   the minimum over a full membership              Frontier, Membership, Scalar, Vector, Withheld
    delivery   a shard of a message log                        DeliveryFrontier, delivered_through, judge_cover

Names are loaded when they are first used: a program that only compares bounds does not pay for the ledger.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapless.progress.accumulator import frontier_of, merge_bounds
    from gapless.progress.blockers import BLOCKER_CODES, MemberBlocker
    from gapless.progress.bound import Bound, Position, highest
    from gapless.progress.certificate import Assertion, Certificate, Estimate
    from gapless.progress.checkpoint import ChainState, Checkpoint, PageAttempt
    from gapless.progress.cutover_step import (
        Handoff,
        Moves,
        ReadingAgain,
        RoutingProof,
        Step,
        step_towards_list,
    )
    from gapless.progress.decimals import parse_decimal_units
    from gapless.progress.delivery import (
        DELIVERY_BLOCKER_CODES,
        CoverCode,
        DeliveryBlocker,
        DeliveryFrontier,
        delivered_through,
        judge_cover,
        table_frontier,
    )
    from gapless.progress.description import domain_from, infer_domain
    from gapless.progress.domain import Domain, IntegerDomain, TextDomain, bound_text, coarsen
    from gapless.progress.exact_cutover import Cutover, cutover
    from gapless.progress.frontier import Frontier, FrontierValue, Scalar, Vector, Withheld
    from gapless.progress.gaps import Gaps
    from gapless.progress.keys import NO_BOUND, NO_CAP
    from gapless.progress.ledger import Ledger
    from gapless.progress.list_domain import ListDomain
    from gapless.progress.membership import (
        KeyRange,
        Membership,
        MembershipCode,
        Seal,
        judge_join,
        judge_seal,
    )
    from gapless.progress.offers import LedgerCounts, Offer
    from gapless.progress.open_pages import Terminal
    from gapless.progress.promotion import PromotionCode, PromotionResult, Run
    from gapless.progress.recent import Recent
    from gapless.progress.standing import Standing
    from gapless.progress.timestamp import TimestampDomain

_HOMES = {
    name: module
    for module, names in {
        "accumulator": "frontier_of merge_bounds",
        "blockers": "BLOCKER_CODES MemberBlocker",
        "bound": "Bound Position highest",
        "certificate": "Assertion Certificate Estimate",
        "checkpoint": "ChainState Checkpoint PageAttempt",
        "cutover_step": "Handoff Moves ReadingAgain RoutingProof Step step_towards_list",
        "decimals": "parse_decimal_units",
        "delivery": (
            "DELIVERY_BLOCKER_CODES CoverCode DeliveryBlocker DeliveryFrontier delivered_through judge_cover"
            " table_frontier"
        ),
        "description": "domain_from infer_domain",
        "domain": "Domain IntegerDomain TextDomain bound_text coarsen",
        "exact_cutover": "Cutover cutover",
        "frontier": "Frontier FrontierValue Scalar Vector Withheld",
        "gaps": "Gaps",
        "keys": "NO_BOUND NO_CAP",
        "ledger": "Ledger",
        "offers": "LedgerCounts Offer",
        "list_domain": "ListDomain",
        "membership": "KeyRange Membership MembershipCode Seal judge_join judge_seal",
        "open_pages": "Terminal",
        "promotion": "PromotionCode PromotionResult Run",
        "recent": "Recent",
        "standing": "Standing",
        "timestamp": "TimestampDomain",
    }.items()
    for name in names.split()
}

__all__ = [
    "BLOCKER_CODES",
    "DELIVERY_BLOCKER_CODES",
    "NO_BOUND",
    "NO_CAP",
    "Assertion",
    "Bound",
    "Certificate",
    "ChainState",
    "Checkpoint",
    "CoverCode",
    "Cutover",
    "DeliveryBlocker",
    "DeliveryFrontier",
    "Domain",
    "Estimate",
    "Frontier",
    "FrontierValue",
    "Gaps",
    "Handoff",
    "IntegerDomain",
    "KeyRange",
    "Ledger",
    "LedgerCounts",
    "ListDomain",
    "MemberBlocker",
    "Membership",
    "MembershipCode",
    "Moves",
    "Offer",
    "PageAttempt",
    "Position",
    "PromotionCode",
    "PromotionResult",
    "ReadingAgain",
    "Recent",
    "RoutingProof",
    "Run",
    "Scalar",
    "Seal",
    "Standing",
    "Step",
    "Terminal",
    "TextDomain",
    "TimestampDomain",
    "Vector",
    "Withheld",
    "bound_text",
    "coarsen",
    "cutover",
    "delivered_through",
    "domain_from",
    "frontier_of",
    "highest",
    "infer_domain",
    "judge_cover",
    "judge_join",
    "judge_seal",
    "merge_bounds",
    "parse_decimal_units",
    "step_towards_list",
    "table_frontier",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
