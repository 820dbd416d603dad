"""What is there when a name is not: the likely one first."""

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 8


def there_is(names: Iterable[str], wanted: str) -> str:
    """The likely name and what else is there, as the remedy's line of an error.

    >>> there_is(["id", "stauts", "shard"], "status")
    'did you mean stauts? there are: id, shard, stauts'
    >>> there_is([], "status")
    'there is none'
    """
    known = sorted(set(names))
    if not known:
        return "there is none"
    by_folded = {name.casefold(): name for name in known}
    likely = get_close_matches(wanted.casefold(), by_folded, n=1)
    listed = ", ".join(known[:_MOST]) + (f" and {len(known) - _MOST} more" if len(known) > _MOST else "")
    said = f"there are: {listed}" if len(known) > 1 else f"there is: {listed}"
    return f"did you mean {by_folded[likely[0]]}? {said}" if likely else said
