"""A checkpoint is the durable row of a chain: how far one partition has been promoted, by whom, and in which state."""

from dataclasses import dataclass, replace
from enum import Enum

from gapless.progress.bound import Bound, Position
from gapless.progress.certificate import Assertion, Certificate, Estimate, require_certificate


class ChainState(str, Enum):
    """What may happen to a chain. Only an open one takes promotions.

    >>> ChainState("open") is ChainState.OPEN, f"{ChainState.GAP}"
    (True, 'gap')
    """

    OPEN = "open"
    """Read and promoted."""
    HELD = "held"
    """An event or page could not be settled; the next run that takes the chain opens it again."""
    GAP = "gap"
    """The source can no longer serve what follows the token; only an explicit decision goes on."""
    ENDED = "ended"
    """The source stated that the chain ends here."""
    SEALED = "sealed"
    """Left its membership with a certified end, drained through it."""
    REPLACED = "replaced"
    """Another routing generation was read again in its stead."""
    SUPERSEDED = "superseded"
    """Belongs to a lineage that was given up."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`sequence` is the number of the next page; `page_token` the token it is fetched with (None: the chain's start).

    `bound` is what is certified, None for no claim. `generation` is the routing generation the chain is read under.
    `asserted` is True once an accepted assertion has raised the bound.

    >>> Checkpoint(fencing_token=3, sequence=50, page_token="t50", bound=Bound.through(100)).state.value
    'open'
    """

    fencing_token: int
    sequence: int
    page_token: str | None
    bound: Bound | None
    state: ChainState = ChainState.OPEN
    generation: str = ""
    asserted: bool = False

    @property
    def started(self) -> bool:
        """Whether anything is durable beside the fencing token: the first durable write wins, later ones go on from it.

        >>> Checkpoint(0, 0, None, None).started, Checkpoint(0, 0, "t100", None).started
        (False, True)
        """
        return self.sequence > 0 or self.page_token is not None or self.bound is not None

    def taken_by(self, fencing_token: int) -> "Checkpoint | None":
        """The checkpoint after a run takes the chain; None where its fencing token is not above the one before.

        A held chain is open again; a gap and a closed chain stay what they are.

        >>> Checkpoint(5, 9, "t12", None).taken_by(1) is None, Checkpoint(5, 9, "t12", None).taken_by(6).fencing_token
        (True, 6)
        """
        if fencing_token <= self.fencing_token:
            return None
        state = ChainState.OPEN if self.state is ChainState.HELD else self.state
        return replace(self, fencing_token=fencing_token, state=state)

    def forgotten(self) -> "Checkpoint":
        """What stays when the state is deleted: the fencing token, so that nobody ever works under an old one again.

        A closed chain stays closed.

        >>> kept = Checkpoint(5, 9, "t12", Bound.before(3)).forgotten()
        >>> kept.fencing_token, kept.page_token, kept.bound, kept.started
        (5, None, None, False)
        """
        closed = self.state in (ChainState.SEALED, ChainState.REPLACED, ChainState.SUPERSEDED)
        state = self.state if closed else ChainState.OPEN
        return Checkpoint(self.fencing_token, 0, None, None, state, self.generation)


@dataclass(frozen=True, slots=True)
class PageAttempt:
    """One fetch attempt as the ledger sees it: `name` is unique to the attempt, `events` are (id, position) pairs.

    `next_token` is None where the source stated the chain's end. A `provisional` page belongs to a loop that has not
    ended and is promoted only together with the page that ends it. `assertion` and `estimate` are no evidence.
    Raises TypeError where `certificate` is anything but a Certificate or None.

    >>> PageAttempt("attempt 1", "t0", "t1", (("a", 7),), Certificate(Bound.through(7), "page")).provisional
    False
    """

    name: str
    start_token: str | None
    next_token: str | None
    events: tuple[tuple[str, Position], ...] = ()
    certificate: Certificate | None = None
    provisional: bool = False
    generation: str = ""
    assertion: Assertion | None = None
    estimate: Estimate | None = None

    def __post_init__(self) -> None:
        require_certificate(self.certificate)
        if self.assertion is not None and not isinstance(self.assertion, Assertion):
            raise TypeError(f"{self.assertion!r} is no assertion")
        if self.estimate is not None and not isinstance(self.estimate, Estimate):
            raise TypeError(f"{self.estimate!r} is no estimate")
