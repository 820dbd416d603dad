"""The closed list of codes by which a withheld frontier and a held partition explain themselves."""

from dataclasses import dataclass
from typing import Final

BLOCKER_CODES: Final[dict[str, tuple[str, str]]] = {
    "not_started": (
        "no page of this member has been promoted yet",
        "run a backfill or a stream; it reads the member from its start",
    ),
    "no_bound": (
        "pages were promoted, but none has brought a certificate yet",
        "the source's next certificate for this member",
    ),
    "no_certificate": (
        "the source gives no certificates: tokens and the vector are all that is known",
        "declare `certificate` in the job file, or `assert` with a reason",
    ),
    "not_comparable": (
        "the members' bounds share no order: another domain, scope or routing generation",
        "read the vector; a scalar needs one domain under one routing generation",
    ),
    "unsettled_event": (
        "an event has no terminal outcome",
        "it is delivered at the next run, or `gapless skip PARTITION EVENT --reason ...` dead-letters it",
    ),
    "source_unavailable": (
        "the source gave no usable answer",
        "the source answers again at the next run, or the job file is corrected",
    ),
    "token_expired": (
        "the source no longer knows the page token, and no restart was declared, or the source refused it, too",
        "read everything again: `gapless epoch rebuild JOB --reason ...`; `pages.expired.restart` is for the next dead token",
    ),
    "range_trimmed": (
        "the source no longer holds what follows the page token: there is a hole",
        "nothing brings it back: begin anew with what the source holds, by another `range.start` and `gapless epoch rebuild`",
    ),
    "token_cycle": (
        "page tokens repeat and nothing new arrives: the chain would never end",
        "correct `pages.next`, or ask the source's operator",
    ),
    "schema_drift": (
        "an event does not fit the frozen schema and `on_drift: hold` is set",
        "set `on_drift: rest`, or skip the event",
    ),
    "violation": (
        "the source broke its promise: an event or certificate contradicts what was certified",
        "`gapless violations` shows the evidence; ask the source's operator, or read everything again by `gapless epoch rebuild`",
    ),
    "membership_changed": (
        "the source's list or routing generation differs from the membership epoch's",
        "a cutover: a run makes it as soon as everything is proved, where the job lets it, or `gapless epoch cutover` does",
    ),
    "member_list_unproven": (
        "the frontier stands at the cap: the member list is certified no further",
        "the list's next certificate, or a cutover that settles who is a member: `gapless epoch show` names what it lacks",
    ),
    "not_joined": (
        "a newcomer is not yet complete through the published frontier",
        "it is read as a candidate from its start; once it is complete it enters by the next cutover",
    ),
    "unsealed_member": (
        "a partition is no longer listed, but nobody stated where it ends, or it has not been read through its end",
        "the source lists it again or seals it, or an operator does: `gapless epoch seal PARTITION --at P --reason ...`",
    ),
    "missing_successor": (
        "a sealed member's successors are unknown or have not entered",
        "the source names them, and they are read as candidates; `gapless epoch show` tells how far they are",
    ),
    "handoff_unproven": (
        "routing changed and nothing proves what moved between the old and the new partitions",
        "`membership.moves` or `membership.handoff` in the job file, or the new generation is read again: `gapless epoch show`",
    ),
    "fenced": (
        "a newer run has taken the partition",
        "the newer run goes on; this one changes nothing any more",
    ),
}
"""code -> (meaning, what releases it); one line each."""


@dataclass(frozen=True, slots=True)
class MemberBlocker:
    """What is missing for a claim or a cutover: `code` of the closed list, and whose it is ("": the scope's).

    >>> MemberBlocker("no_bound", "p0003").code in BLOCKER_CODES
    True
    """

    code: str
    partition: str
    detail: str = ""

    def __post_init__(self) -> None:
        if self.code not in BLOCKER_CODES:
            raise ValueError(f"{self.code!r} is none of the documented blocker codes")
