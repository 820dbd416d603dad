"""Positions as a column of canonical text, written by Arrow where it can and by the domain where it must.

A page's positions are only gathered while the page is applied; their text is made later, in the thread that writes files.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gapless.effects.columns import Columns
from gapless.progress import Domain, IntegerDomain, Position, TextDomain, TimestampDomain

_INSTANT_TEXT: Final = "%Y-%m-%dT%H:%M:%SZ"
"""Arrow writes %S with all digits of the unit, which is the canonical text of a timestamp domain."""


def positions_array(domain: Domain, positions: list[Position], columns: Columns) -> pa.Array:
    """An int64 array where the positions are integers that fit, for `positions_text`; else their texts already.

    `columns` are those of the same rows. Raises PositionError for positions that are none of the domain."""
    if isinstance(domain, TextDomain):
        return columns.array_of(positions, pa.string()) or pa.array(map(domain.text, positions), pa.string())
    if isinstance(domain, IntegerDomain | TimestampDomain):
        try:
            array = columns.array_of(positions, pa.int64()) or pa.array(positions)
        except (OverflowError, pa.ArrowInvalid, pa.ArrowTypeError):
            array = None
        if array is not None and array.type == pa.int64() and array.null_count == 0:
            return array
    return pa.array([domain.text(position) for position in positions], pa.string())


def positions_text(domain: Domain, positions: pa.Array) -> pa.Array:
    """The canonical texts of what `positions_array` gathered."""
    if positions.type != pa.int64():
        return positions
    if isinstance(domain, TimestampDomain):
        return pc.strftime(positions.cast(pa.timestamp(domain.precision)), format=_INSTANT_TEXT)
    return positions.cast(pa.string())
