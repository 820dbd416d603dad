"""What values of a status document are called for a reader."""

from collections.abc import Mapping
from typing import Any

from gapless_pipelines.cli.printing import printable


def bound_words(bound: Mapping[str, Any] | None) -> str:
    """A bound in words.

    >>> bound_words({"position": "100", "inclusive": True}), bound_words(None)
    ('through 100', 'without a bound')
    """
    if bound is None:
        return "without a bound"
    return f"{'through' if bound['inclusive'] else 'before'} {printable(bound['position'])}"


def state_words(state: str) -> str:
    """A member's state for a reader.

    >>> state_words("open"), state_words("not_started")
    ('active', 'not started')
    """
    return "active" if state == "open" else state.replace("_", " ")
