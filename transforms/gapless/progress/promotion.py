"""A promotion moves a chain's checkpoint over pages, or says why it may not: expected against committed, decided purely.

A store decides the same by compare-and-swap; whoever keeps a checkpoint in memory asks here.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from gapless.progress.bound import Bound, Position, highest
from gapless.progress.checkpoint import ChainState, Checkpoint, PageAttempt


class PromotionCode(str, Enum):
    """What a promotion came to. Anything but OK and OK_LATE has changed nothing.

    >>> [code.value for code in PromotionCode if code.promoted]
    ['OK', 'OK_LATE']
    """

    OK = "OK"
    OK_LATE = "OK_LATE"
    """Promoted; and the source broke its promise: events lay behind the certified bound that were never seen."""
    NOT_TERMINAL = "NOT_TERMINAL"
    """An event has no receipt."""
    STALE_GENERATION = "STALE_GENERATION"
    """Another fencing token or routing generation than the committed one."""
    TOKEN_MISMATCH = "TOKEN_MISMATCH"  # noqa: S105 - a page token, no secret
    """The pages do not start at the committed page token."""
    REPLAYED = "REPLAYED"
    """Promoted already."""
    PROVISIONAL = "PROVISIONAL"
    """The loop these pages belong to has not ended."""
    SEALED = "SEALED"
    """The chain is closed for good."""
    GAP = "GAP"
    """The source cannot serve what follows the token."""
    HELD = "HELD"
    """The chain is held until a run takes it again."""

    def __str__(self) -> str:
        return self.value

    @property
    def promoted(self) -> bool:
        """Whether the checkpoint has moved.

        >>> PromotionCode.REPLAYED.promoted
        False
        """
        return self in (PromotionCode.OK, PromotionCode.OK_LATE)


@dataclass(frozen=True, slots=True)
class Run:
    """Linked pages that go into one promotion, and the checkpoint before and after it.

    `late` are the (id, position) pairs found behind the certified bound and never seen before: violations.
    `lower_certificates` counts certificates that were not above the bound already certified: they change nothing.

    >>> before, page = Checkpoint(1, 0, "t0", None), PageAttempt("g", "t0", "t1", (("a", 1),))
    >>> run = run_of(before, [page], seen=())
    >>> run.code.value, run.names, run.events, run.after.page_token
    ('OK', ('g',), 1, 't1')
    """

    pages: tuple[PageAttempt, ...]
    before: Checkpoint
    after: Checkpoint
    late: tuple[tuple[str, Position], ...] = ()
    lower_certificates: int = 0

    @property
    def code(self) -> PromotionCode:
        """OK_LATE where there are late events, else OK."""
        return PromotionCode.OK_LATE if self.late else PromotionCode.OK

    @property
    def names(self) -> tuple[str, ...]:
        """The attempts' names, in the order of their tokens."""
        return tuple(page.name for page in self.pages)

    @property
    def events(self) -> int:
        """How many events the pages hold."""
        return sum(len(page.events) for page in self.pages)


@dataclass(frozen=True, slots=True)
class PromotionResult:
    """`run` is there exactly where the code says promoted.

    >>> PromotionResult(PromotionCode.GAP).run is None
    True
    """

    code: PromotionCode
    run: Run | None = None


_CLOSED = {
    ChainState.SEALED: PromotionCode.SEALED,
    ChainState.REPLACED: PromotionCode.SEALED,
    ChainState.SUPERSEDED: PromotionCode.SEALED,
    ChainState.GAP: PromotionCode.GAP,
    ChainState.HELD: PromotionCode.HELD,
}


def refusal(committed: Checkpoint, fencing_token: int, generation: str) -> PromotionCode | None:
    """Why nothing at all may be promoted by that token under that routing generation; None where something may.

    >>> refusal(Checkpoint(5, 0, "t9", None), 4, "")
    <PromotionCode.STALE_GENERATION: 'STALE_GENERATION'>
    """
    if fencing_token != committed.fencing_token or generation != committed.generation:
        return PromotionCode.STALE_GENERATION
    return _CLOSED.get(committed.state)


def linked(committed: Checkpoint, pages: Sequence[PageAttempt], expected_token: str | None) -> bool:
    """Whether the pages are a chain of tokens that starts at the committed one, which the promoter expects too.

    >>> page = PageAttempt("g", "t0", "t1")
    >>> linked(Checkpoint(1, 0, "t0", None), [page], "t0"), linked(Checkpoint(1, 1, "t1", None), [page], "t0")
    (True, False)
    """
    token = committed.page_token
    if token != expected_token or committed.state is ChainState.ENDED or not pages:
        return False
    for number, page in enumerate(pages):
        if page.start_token != token or (number and token is None):
            return False
        token = page.next_token
    return True


def run_of(
    committed: Checkpoint,
    pages: Sequence[PageAttempt],
    seen: Container[tuple[str, Position]],
    accept_assertions: bool = False,
) -> Run:
    """The run that promotes linked, settled pages. Raises NotComparable where positions are of another kind.

    Pages of one loop (provisional ones and the page that ends it) are one unit: what the unit certifies says nothing
    about its own events. A certificate at or below the bound is a no-op.

    >>> from gapless.progress.bound import Bound
    >>> k = PageAttempt("g2", "w1", "w2", (("k", 14),))
    >>> run_of(Checkpoint(1, 1, "w1", Bound.through(14)), [k], seen=()).late
    (('k', 14),)
    """
    bound, asserted, lower = committed.bound, committed.asserted, 0
    late: list[tuple[str, Position]] = []
    before: list[Sequence[PageAttempt]] = []
    for unit in units(pages):
        behind = [event for page in unit for event in _behind(page, bound)]
        if behind:
            fresh = {event for earlier in before for page in earlier for event in page.events}
            late += [event for event in dict.fromkeys(behind) if event not in seen and event not in fresh]
        before.append(unit)
        for page in unit:
            certified = page.certificate.bound if page.certificate is not None else None
            raised = highest(bound, certified)
            lower += certified is not None and raised == bound
            bound = raised
            if accept_assertions and page.assertion is not None:
                assumed = highest(bound, page.assertion.bound)
                asserted, bound = asserted or assumed != bound, assumed
    end = pages[-1].next_token
    after = Checkpoint(
        committed.fencing_token,
        committed.sequence + len(pages),
        end,
        bound,
        ChainState.ENDED if end is None else committed.state,
        committed.generation,
        asserted,
    )
    return Run(tuple(pages), committed, after, tuple(late), lower)


def _behind(page: PageAttempt, bound: Bound | None) -> list[tuple[str, Position]]:
    """The events that lie behind a bound. Mostly there are none, and looking at the lowest one tells so."""
    if bound is None or not page.events:
        return []
    try:
        lowest = min(position for _, position in page.events)
    except TypeError:
        # Of several kinds: each is compared, and told apart by the bound.
        lowest = None
    if lowest is not None and not bound.covers(lowest):
        return []
    return [event for event in page.events if bound.covers(event[1])]


def units(pages: Sequence[PageAttempt]) -> Iterator[Sequence[PageAttempt]]:
    """The pages cut after each one that is not provisional: what stands and falls together.

    >>> pages = [PageAttempt("p1", "a", "b", provisional=True), PageAttempt("p2", "b", "c"), PageAttempt("p3", "c", "d")]
    >>> [[page.name for page in unit] for unit in units(pages)]
    [['p1', 'p2'], ['p3']]
    """
    start = 0
    for stop, page in enumerate(pages, 1):
        if not page.provisional or stop == len(pages):
            yield pages[start:stop]
            start = stop
