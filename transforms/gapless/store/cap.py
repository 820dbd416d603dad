"""The cap: how far a publish may go at most, given what is known about the list of members."""

from gapless.progress import NO_CAP


def first_cap(list_bound: bytes | None) -> tuple[bytes, bool]:
    """The cap of an epoch that has just been frozen, and whether its member list is certified.

    >>> first_cap(None) == (NO_CAP, False), first_cap(b"5")
    (True, (b'5', True))
    """
    return (NO_CAP, False) if list_bound is None else (list_bound, True)


def next_cap(
    cap: bytes, certified: bool, frontier: bytes, list_bound: bytes | None, unproven: bool
) -> tuple[bytes, bool]:
    """The cap after another look at the source's list, as keys, and whether the member list is certified through the frontier.

    `list_bound` is how far the list read now is certified (None: not at all); `unproven` whether a newcomer or another
    routing generation is in sight that has not entered by proof.

    A certified list raises the cap only where it names nobody but the epoch's members. With a newcomer in it, its certificate
    says that every event up to its bound lies in the members *or the newcomer*, and the newcomer has not been read:

    >>> next_cap(b"5", True, b"4", b"9", unproven=False), next_cap(b"5", True, b"4", b"9", unproven=True)
    ((b'9', True), (b'5', True))

    Without a certificate the frontier stands while anybody is unproven; else the frozen list stays what it was:

    >>> next_cap(b"9", False, b"4", None, unproven=True), next_cap(b"9", False, b"4", None, unproven=False)
    ((b'4', False), (b'9', False))

    A frozen list that becomes certified holds the frontier where it is until the certificate has caught up with it:

    >>> next_cap(NO_CAP, False, b"4", b"3", unproven=False), next_cap(b"4", False, b"4", b"6", unproven=False)
    ((b'4', False), (b'6', True))
    """
    if list_bound is None:
        return (frontier if unproven else cap), certified
    if unproven:
        return (cap if certified else frontier), certified
    if certified:
        return max(cap, list_bound), True
    return max(frontier, list_bound), list_bound >= frontier


def cap_after_cutover(
    cap: bytes, certified: bool, frontier: bytes, list_bound: bytes | None, unproven: bool
) -> tuple[bytes, bool]:
    """The cap of an epoch that a cutover has opened, by the latest list's certificate.

    Where everybody who was seen is a member now, the new epoch's list is frozen without a cap, as the first was, or certified:

    >>> cap_after_cutover(b"4", False, b"4", None, unproven=False) == (NO_CAP, False)
    True
    >>> cap_after_cutover(b"5", True, b"4", b"9", unproven=False), cap_after_cutover(b"5", True, b"4", None, unproven=False)
    ((b'9', True), (b'5', True))
    >>> cap_after_cutover(b"4", False, b"4", b"9", unproven=True)
    (b'4', False)
    """
    if list_bound is None and not certified and not unproven:
        return NO_CAP, False
    return next_cap(cap, certified, frontier, list_bound, unproven)
