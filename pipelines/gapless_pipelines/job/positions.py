"""Positions as a job file or a command line writes them."""

import json

from gapless.errors import PositionError
from gapless.progress import Domain, Position


def position_of(domain: Domain, value: object) -> Position:
    """The position a value means: as the source writes it, or as gapless prints it.

    Raises PositionError saying what it is instead of the former."""
    try:
        return domain.parse(value)
    except PositionError as error:
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            return domain.from_text(text)
        except PositionError:
            raise error from None
