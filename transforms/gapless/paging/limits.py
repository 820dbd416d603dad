"""How long what a source names may be.

Ids, names and bounds stand in indexes of the store, and a row of PostgreSQL's holds 2,704 bytes there. Whatever is longer
is refused where it is met, as the fault of its partition, on every kind of store: there it would end the whole run."""

import json

LONGEST_EVENT_ID = 2_400
LONGEST_PARTITION_ID = 1_600
LONGEST_GENERATION = 600
LONGEST_BOUND = 2_400
_MOST_BYTES_OF_A_CHARACTER = 12
_QUOTES = 2
_SHOWN = 40


def is_longer(text: str, limit: int) -> bool:
    """Whether a text may take more than `limit` bytes, as it is or, with what no database holds as text, as JSON.

    >>> is_longer("o-1", 600), is_longer("x" * 598, 600), is_longer("x" * 599, 600)
    (False, False, True)
    """
    return may_be_longer(len(text), limit) and len(json.dumps(text)) > limit


def may_be_longer(characters: int, limit: int) -> bool:
    """Whether any text of so many characters is: the quick look at many."""
    return characters * _MOST_BYTES_OF_A_CHARACTER + _QUOTES > limit


def too_long(what: str, text: str, limit: int) -> str:
    """What to say of it.

    >>> too_long("a partition's id", "x" * 5000, 1600)
    "a partition's id of 5,000 characters, more than 1,600 bytes can hold: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'..."
    """
    return f"{what} of {len(text):,} characters, more than {limit:,} bytes can hold: {text[:_SHOWN]!r}..."
