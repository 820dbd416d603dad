"""A contradiction is a place where the store, or a file, says another thing than the evidence for it."""

from dataclasses import dataclass
from typing import Final

from gapless.errors import PositionError
from gapless.progress import Bound, Domain, bound_text
from gapless.progress.keys import NO_BOUND, NO_CAP

CODES: Final = {
    "identity_edited": "what the scope is, or where its claim starts, is not what its fingerprint was taken of",
    "record_missing": "a promotion record between two others, or the first ones, are not there",
    "record_damaged": "a row holds what no program of ours writes",
    "record_orphaned": "a record belongs to a chain, or an epoch, that is nowhere",
    "tokens_unlinked": "a promotion starts at another page token than the one before it led to",
    "certificate_differs": "a promotion counts another bound than the certificate kept with it",
    "bound_not_proved": "a chain's bound is not the highest that its promotions prove",
    "checkpoint_differs": "a chain's row says another thing than its promotions, or than its files say whose they are",
    "counts_differ": "a chain's sums are not those of its records",
    "outcome_missing": "an event of a promoted page, or one with a receipt, has no outcome",
    "fence_went_back": "a promotion under an older run than the one before it",
    "generation_unproved": "something was read under a routing generation that the evidence does not lead to",
    "lists_broken": "the history of the source's lists has a gap, goes back, or differs from whom the lists named",
    "epoch_missing": "the numbers of the membership epochs have a gap",
    "epoch_edited": "a membership epoch differs from what led to it, or was opened at another time than it can have been",
    "member_unproved": "a chain counts as a member, and nothing shows that it entered",
    "leaver_unproved": "a chain has left, and nothing shows that it could",
    "routing_unproved": "the routing generation has changed without its proof",
    "lineage_unproved": "a lineage without the rebuild that began it",
    "operator_unrecorded": "an operator's word that is not in the journal",
    "history_broken": "the history of the frontier goes back, or names what is nowhere",
    "frontier_not_proved": "a published frontier lies above a member's bound, the cap or the list's certificate",
    "frontier_differs": "the frontier is not the one that was last published",
    "basis_differs": "something asserted is labelled certified, or the other way round",
    "cap_not_proved": "the cap lies above what is known of the list of partitions",
    "file_missing": "a promoted file is not there",
    "file_unreadable": "a promoted file cannot be read",
    "file_differs": "a promoted file holds other bytes than were promoted",
    "file_rows_differ": "a promoted file holds another number of rows than its record says",
    "file_listed_twice": "two promotions of the data set name the same file",
}
"""Closed: every code with its meaning."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """`detail` says in one sentence what is stored and what the evidence gives. The rest says where; None where it is elsewhere.

    `chain` is the number of the chain's row, `epoch` a membership epoch, `sequence` a page."""

    code: str
    detail: str
    lineage: int | None = None
    epoch: int | None = None
    partition: str | None = None
    chain: int | None = None
    sequence: int | None = None
    path: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"{self.code!r} is no code of a contradiction")


@dataclass(slots=True)
class Checked:
    """How much was looked at: chains, promotion records, epochs, publishes, lists, dead letters, receipts of open pages, and
    promoted files with their size in bytes."""

    chains: int = 0
    promotions: int = 0
    epochs: int = 0
    publishes: int = 0
    lists: int = 0
    dead_letters: int = 0
    receipts: int = 0
    files: int = 0
    bytes: int = 0


def shown(key: bytes, domain: Domain) -> str:
    """A stored key in words, also one that is none.

    >>> from gapless.progress import Bound, IntegerDomain
    >>> shown(IntegerDomain().key(Bound.through(9)), IntegerDomain()), shown(b"", IntegerDomain()), shown(b"?", IntegerDomain())
    ('through 9', 'nothing', 'the bytes 3f, which are no bound')
    """
    if key == NO_BOUND:
        return "nothing"
    if key == NO_CAP:
        return "everything"
    try:
        bound = domain.from_key(key)
    except PositionError:
        return f"the bytes {key.hex()}, which are no bound"
    assert bound is not None
    return bound_text(bound, domain)


def is_key(key: bytes, domain: Domain) -> bool:
    """Whether the bytes are a bound of the domain, or none."""
    try:
        domain.from_key(key)
    except PositionError:
        return False
    return True


def key_of(value: object, domain: Domain) -> bytes:
    """The key of a bound as JSON, `{"position": text, "inclusive": bool}`; None is no bound. Raises ValueError, PositionError.

    >>> from gapless.progress import IntegerDomain
    >>> key_of({"position": "9", "inclusive": True}, IntegerDomain()).hex(), key_of(None, IntegerDomain())
    ('810902', b'')
    """

    if value is None:
        return NO_BOUND
    if not isinstance(value, dict) or not isinstance(value.get("position"), str):
        raise ValueError(f"{value!r} is no bound")  # noqa: TRY004 - a value of the store, not of a program
    return domain.key(Bound(domain.from_text(value["position"]), value.get("inclusive")))  # type: ignore[arg-type]
