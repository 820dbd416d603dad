"""An offer is a page that comes to a ledger: what became of it, and how often something came that changed nothing."""

from dataclasses import dataclass
from enum import Enum


class Offer(str, Enum):
    """What became of a page that was offered.

    >>> Offer("FULL") is Offer.FULL
    True
    """

    TAKEN = "TAKEN"
    DUPLICATE = "DUPLICATE"
    """This very attempt is open already."""
    REPLAYED = "REPLAYED"
    """This very attempt was promoted already."""
    STALE_GENERATION = "STALE_GENERATION"
    """Read under another routing generation."""
    FULL = "FULL"
    """The limit is reached: stop reading. Nothing was dropped; what was refused is read again from the committed token."""

    def __str__(self) -> str:
        return self.value


@dataclass(slots=True)
class LedgerCounts:
    """How often something came that changed nothing, since the ledger was made.

    >>> LedgerCounts().duplicates
    0
    """

    duplicates: int = 0
    replayed: int = 0
    stale: int = 0
    full: int = 0
    repeated_receipts: int = 0
    refused_receipts: int = 0
    lower_certificates: int = 0
    unreachable: int = 0
    """Attempts dropped because the committed token has passed their start: another attempt won."""
