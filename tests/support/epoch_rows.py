"""Membership epochs as tests read them: each row of the store with its bounds as bounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import RowMapping

from gapless.progress import Bound, Domain


@dataclass(frozen=True, slots=True)
class EpochRow:
    """One membership epoch as it was opened: its proof names who entered and left, and by what the routing changed."""

    scope: str
    lineage: int
    epoch: int
    generation: str
    list_bound: Bound | None
    frontier: Bound | None
    basis: str
    proof: Mapping[str, object]
    opened_at: datetime


def epoch_row(row: RowMapping, domain: Domain) -> EpochRow:
    bounds = {name: domain.from_key(row[name]) for name in ("list_bound", "frontier")}
    return EpochRow(**{**row, **bounds})
