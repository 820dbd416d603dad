"""Where one live chain stands, as a cutover sees it."""

from dataclasses import dataclass

from gapless.progress.bound import Bound
from gapless.progress.membership import MembershipCode, Seal, judge_seal


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one live chain stands. `chain` tells it from the others; `member`: its bound counts, else it is a candidate;
    `listed`: the latest list names it. `seal` None: it has no certified end.

    >>> Standing(1, "a", "r1", True, True, Bound.through(9), seal=Seal(Bound.through(9), ())).drained
    True
    """

    chain: int
    partition: str
    generation: str
    member: bool
    listed: bool
    bound: Bound | None
    read_to: Bound | None = None
    seal: Seal | None = None
    parents: tuple[str, ...] = ()

    @property
    def drained(self) -> bool:
        """It has ended, and is promoted through its end."""
        return self.seal is not None and judge_seal(self.bound, self.seal) is not MembershipCode.NOT_DRAINED
