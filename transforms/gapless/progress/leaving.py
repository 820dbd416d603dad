"""Leaving in order: sealed, drained through the seal, and everybody who carries on accounted for."""

from collections.abc import Callable, Container, Iterable

from gapless.progress.blockers import MemberBlocker
from gapless.progress.bound import Bound
from gapless.progress.standing import Standing

Show = Callable[[Bound | None], str]
"""Spells a bound."""


def in_order(
    standings: Iterable[Standing], staying: Container[str], departed: Container[str]
) -> dict[int, Standing]:
    """Who has ended, is drained, and has everybody who carries on from it accounted for, at any depth; by chain.

    Partitions that name each other as successors never get in: nobody carries on from them. A line of descent may be long: each
    partition is looked at once for each of its successors."""
    lacking: dict[int, set[str]] = {}
    waiting: dict[str, list[Standing]] = {}
    ready: list[Standing] = []
    for one in standings:
        if one.seal is None or not one.drained:
            continue
        if one.seal.decommissioned:
            ready.append(one)
        elif one.seal.successors is not None:
            names = {name for name in one.seal.successors if name not in staying and name not in departed}
            lacking[one.chain] = names
            for name in names:
                waiting.setdefault(name, []).append(one)
            if not names:
                ready.append(one)
    accounted: dict[int, Standing] = {}
    while ready:
        one = ready.pop()
        accounted[one.chain] = one
        for other in waiting.pop(one.partition, ()):
            lacking[other.chain].discard(one.partition)
            if not lacking[other.chain]:
                ready.append(other)
    return accounted


def missing_successor(one: Standing, present: Container[str], departed: Container[str]) -> str | None:
    """The first of a leaver's successors that is neither `present` nor `departed`, in words; None where nobody lacks."""
    if one.seal is None or one.seal.decommissioned:
        return None
    if one.seal.successors is None:
        return f"the successors of {one.partition} are unknown"
    for successor in one.seal.successors:
        if successor not in present and successor not in departed:
            return f"{successor}, which carries on from it, neither enters nor has left in order"
    return None


def waiting_for_successors(one: Standing, present: Container[str], departed: Container[str]) -> MemberBlocker:
    """Why one that has ended, and is drained, may not leave yet."""
    lack = missing_successor(one, present, departed) or "its successors wait for each other"
    return MemberBlocker("missing_successor", one.partition, lack)


def unsealed(one: Standing, show: Show) -> MemberBlocker:
    """Why one that is no longer listed, or has an end, may not leave yet: it is not drained."""
    detail = (
        "it is not listed, and nobody stated where it ends"
        if one.seal is None
        else f"it ends at {show(one.seal.at)}, and has been promoted {show(one.bound)} only"
    )
    return MemberBlocker("unsealed_member", one.partition, detail)
