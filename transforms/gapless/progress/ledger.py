"""The ledger of one partition: open pages, the receipts of their events, and what of it may be promoted.

Pages are linked by their start token, never by a number given at fetching: several attempts of one start token may be
open at once, and one that does not start at the committed token is not usable. Pages and receipts may come in any order
and more than once. What is promoted is a run of settled pages from the committed token on.
"""

from collections.abc import Collection, Iterable, Sequence

from gapless.progress.apart_pages import ApartPages
from gapless.progress.bound import Position
from gapless.progress.checkpoint import ChainState, Checkpoint, PageAttempt
from gapless.progress.offers import LedgerCounts, Offer
from gapless.progress.open_pages import OpenPages, Terminal
from gapless.progress.promotion import PromotionCode, PromotionResult, Run, linked, refusal, run_of
from gapless.progress.recent import Recent


class Ledger:
    """What is open in one partition, over its committed checkpoint. Used by one thread.

    `limit` is how many pages may be open; the page that the committed token asks for is taken beyond it, since without
    it nothing could ever leave. `early_limit` bounds the receipts of events whose page has not come yet. `remember` is
    how many promoted events are known again, so that a source that repeats them is not accused of a violation; `seen`
    shares that memory between ledgers, where an id names one event in the whole scope. Assertions raise the bound only
    where `accept_assertions` is set. `apart`: outcomes speak of the attempt they name alone, and nothing is remembered of events.

    >>> ledger = Ledger(Checkpoint(1, 0, "t0", None))
    >>> ledger.offer(PageAttempt("g", "t0", "t1", (("a", 1), ("b", 2))))
    <Offer.TAKEN: 'TAKEN'>
    >>> ledger.settle(["b"], Terminal.DELIVERED), ledger.promote("g", token="t0").code.value
    (1, 'NOT_TERMINAL')
    >>> ledger.settle(["a"], Terminal.DEAD_LETTERED), ledger.promote("g", token="t0").code.value
    (1, 'OK')
    >>> ledger.checkpoint.page_token, ledger.checkpoint.sequence
    ('t1', 1)
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        limit: int = 64,
        *,
        early_limit: int = 100_000,
        remember: int = 10_000,
        seen: Recent[tuple[str, Position]] | None = None,
        accept_assertions: bool = False,
        apart: bool = False,
    ) -> None:
        if limit < 1:
            raise ValueError(f"the limit is a positive number of open pages, not {limit}")
        self.counts = LedgerCounts()
        self._checkpoint = checkpoint
        self._limit = limit
        self._accept_assertions = accept_assertions
        self._open = ApartPages() if apart else OpenPages(early_limit)
        self._apart = apart
        self._seen = Recent[tuple[str, Position]](remember) if seen is None else seen
        self._promoted_names = Recent[str](remember)
        self._promoted_tokens = Recent[str](remember)

    @property
    def checkpoint(self) -> Checkpoint:
        """The committed checkpoint, as far as this ledger knows. Law: under one fencing token its sequence never goes back.

        >>> Ledger(Checkpoint(1, 0, "t0", None)).checkpoint.page_token
        't0'
        """
        return self._checkpoint

    @property
    def open_pages(self) -> int:
        """How many pages are open.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1")); ledger.open_pages
        1
        """
        return len(self._open)

    def holds(self, event: str) -> bool:
        """Whether an open page has this event.

        >>> Ledger(Checkpoint(1, 0, "t0", None)).holds("a")
        False
        """
        return self._open.holds(event)

    def offer(self, page: PageAttempt) -> Offer:
        """Take a fetched page in. Raises ValueError where another attempt has the same name.

        Law: where each start token has one attempt, the order of pages and receipts does not matter.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None), limit=1)
        >>> [ledger.offer(PageAttempt(f"g{n}", f"t{n}", f"t{n + 1}")).value for n in (3, 3, 4, 0)]
        ['TAKEN', 'DUPLICATE', 'FULL', 'TAKEN']
        """
        known = self._open.get(page.name)
        if known is not None:
            if known.page != page:
                raise ValueError(f"two attempts are named {page.name!r}: a name is unique to its attempt")
            self.counts.duplicates += 1
            return Offer.DUPLICATE
        if page.name in self._promoted_names:
            self.counts.replayed += 1
            return Offer.REPLAYED
        if page.generation != self._checkpoint.generation:
            self.counts.stale += 1
            return Offer.STALE_GENERATION
        if len(self._open) >= self._limit and page.start_token != self._checkpoint.page_token:
            self.counts.full += 1
            return Offer.FULL
        self._open.add(page, self._seen)
        return Offer.TAKEN

    def settle(self, events: Iterable[str], outcome: Terminal, page: str | None = None) -> int:
        """Record terminal outcomes by event id; how many were new. The first outcome of an event stands.

        Without `page` they speak of every open attempt of these events, and of attempts still to come.

        >>> Ledger(Checkpoint(1, 0, "t0", None)).settle(["a", "b", "a"], Terminal.DELIVERED)
        2
        """
        settled = self._open.settle(events, Terminal(outcome), page)
        self.counts.repeated_receipts += settled.repeated
        self.counts.refused_receipts += settled.refused
        return settled.fresh

    def settle_page(self, page: str, dead_lettered: Collection[str] = ()) -> int:
        """Record that every event of an open attempt has its outcome: those of `dead_lettered`, and `delivered` for the rest.

        As for `settle` the first outcome of an event stands; how many were new. Costs the same however many events there are.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None))
        >>> _ = ledger.offer(PageAttempt("g", "t0", "t1", (("a", 1), ("b", 2))))
        >>> ledger.settle_page("g", ["b"]), ledger.settle_page("g"), ledger.settle_page("h")
        (2, 0, 0)
        >>> ledger.receipt("g", "b")
        <Terminal.DEAD_LETTERED: 'dead_lettered'>
        """
        place = self._open.get(page)
        if place is None:
            return 0
        fresh = self.settle(dead_lettered, Terminal.DEAD_LETTERED, page) if dead_lettered else 0
        return fresh + place.settle_rest()

    def receipt(self, page: str, event: str) -> Terminal | None:
        """The outcome of an event in an open attempt; None where there is none yet."""
        place = self._open.get(page)
        return None if place is None else self._open.receipt(place, event)

    def settled_of(self, page: str) -> dict[str, Terminal]:
        """Event id -> outcome, of those events of an open attempt that have one."""
        place = self._open.get(page)
        if place is None:
            return {}
        receipts = ((event, place.receipt(index)) for index, (event, _) in enumerate(place.page.events))
        return {event: receipt for event, receipt in receipts if receipt is not None}

    def is_settled(self, page: str) -> bool:
        """Whether every event of an open attempt has its outcome.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1")); ledger.is_settled("g")
        True
        """
        place = self._open.get(page)
        return place is not None and place.terminal

    def has(self, page: str) -> bool:
        """Whether an attempt of that name is open."""
        return self._open.get(page) is not None

    def heads(self) -> tuple[str, ...]:
        """The open attempts that start at the committed token.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1")); ledger.heads()
        ('g',)
        """
        return tuple(place.page.name for place in self._open.starting_at(self._checkpoint.page_token))

    def heads_settled(self) -> bool:
        """Whether an attempt that starts at the committed token is settled.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1")); ledger.heads_settled()
        True
        """
        return any(place.terminal for place in self._open.starting_at(self._checkpoint.page_token))

    def leads_to(self, token: str | None) -> bool:
        """Whether a page that starts at `token` may be promoted once those before it are: it is committed, or open pages go there
        from the committed one.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1"))
        >>> ledger.leads_to("t0"), ledger.leads_to("t1"), ledger.leads_to("t2")
        (True, True, False)
        """
        return token in self._reachable()

    def beside_the_path(self) -> tuple[str, ...]:
        """Open attempts to which no open page leads from the committed token: others may come that do.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t5", "t6"))
        >>> ledger.beside_the_path()
        ('g',)
        """
        reachable = self._reachable()
        return tuple(place.page.name for place in self._open if place.page.start_token not in reachable)

    def withdraw(self, page: str) -> None:
        """Drop an open attempt that will not be promoted: it is read again where it is still missing.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1"))
        >>> ledger.withdraw("g"); ledger.open_pages
        0
        """
        place = self._open.get(page)
        if place is not None:
            self._open.remove(place, self._seen)

    def receipts(self) -> dict[str, Terminal]:
        """Event id -> outcome of all open pages, and of events whose page has not come: what a hold makes durable.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.settle(["a"], Terminal.DELIVERED); ledger.receipts()
        {'a': <Terminal.DELIVERED: 'delivered'>}
        """
        return self._open.receipts()

    def unsettled(self) -> tuple[tuple[str, Position], ...]:
        """The (id, position) pairs without receipt that hold the committed token, of every attempt that starts there.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None))
        >>> _ = ledger.offer(PageAttempt("g", "t0", "t1", (("a", 1),))); ledger.unsettled()
        (('a', 1),)
        """
        return tuple(
            dict.fromkeys(
                place.page.events[index]
                for place in self._open.starting_at(self._checkpoint.page_token)
                for index in place.settled.open(len(place.page.events))
            )
        )

    def promotable(self) -> Run | None:
        """The longest run of settled pages from the committed token, None where nothing may be promoted.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None))
        >>> _ = ledger.offer(PageAttempt("g1", "t1", "t2")), ledger.offer(PageAttempt("g0", "t0", "t1"))
        >>> ledger.promotable().names
        ('g0', 'g1')
        """
        if self._checkpoint.state is not ChainState.OPEN:
            return None
        pages: list[PageAttempt] = []
        used: set[str] = set()
        token = self._checkpoint.page_token
        while unit := self._open.settled_unit(token, used):
            pages += unit
            used.update(page.name for page in unit)
            token = unit[-1].next_token
            if token is None:
                break
        return self._run(pages) if pages else None

    def decide(
        self,
        names: str | Sequence[str],
        *,
        token: str | None,
        fencing_token: int | None = None,
        generation: str | None = None,
    ) -> PromotionResult:
        """What promoting these pages, expecting `token` to be committed, would come to. Changes nothing.

        Fencing token and routing generation are the committed ones unless given.

        >>> Ledger(Checkpoint(5, 0, "t0", None)).decide("g", token="t0", fencing_token=4).code.value
        'STALE_GENERATION'
        """
        committed = self._checkpoint
        refused = refusal(
            committed,
            committed.fencing_token if fencing_token is None else fencing_token,
            committed.generation if generation is None else generation,
        )
        if refused is not None:
            return PromotionResult(refused)
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if wanted and all(name in self._promoted_names for name in wanted):
            return PromotionResult(PromotionCode.REPLAYED)
        opened = [place for name in wanted if (place := self._open.get(name)) is not None]
        pages = [place.page for place in opened]
        if len(opened) < len(wanted) or not linked(committed, pages, token):
            return PromotionResult(PromotionCode.TOKEN_MISMATCH)
        if pages[-1].provisional:
            return PromotionResult(PromotionCode.PROVISIONAL)
        if not all(place.terminal for place in opened):
            return PromotionResult(PromotionCode.NOT_TERMINAL)
        run = self._run(pages)
        return PromotionResult(run.code, run)

    def promote(
        self,
        names: str | Sequence[str],
        *,
        token: str | None,
        fencing_token: int | None = None,
        generation: str | None = None,
    ) -> PromotionResult:
        """`decide`, and where that says promoted, go on from there. Without a store this is the promotion itself.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1"))
        >>> [ledger.promote("g", token="t0").code.value for _ in range(2)]
        ['OK', 'REPLAYED']
        """
        result = self.decide(names, token=token, fencing_token=fencing_token, generation=generation)
        if result.run is not None:
            self.promoted(result.run)
        return result

    def promoted(self, run: Run) -> None:
        """The run is durable now: forget its pages and receipts. Raises ValueError where it does not start here.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1"))
        >>> ledger.promoted(ledger.promotable()); ledger.checkpoint.page_token, ledger.open_pages
        ('t1', 0)
        """
        if run.before != self._checkpoint:
            raise ValueError("the run starts at another checkpoint than the committed one: reread the row")
        for page in run.pages:
            place = self._open.get(page.name)
            if place is None:
                raise ValueError(f"page {page.name!r} is not open here")
            self._open.remove(place)
            if not self._apart:
                self._seen.update(page.events)
        self.counts.lower_certificates += run.lower_certificates
        self._promoted_names.update(run.names)
        self._promoted_tokens.update(page.next_token for page in run.pages if page.next_token is not None)
        self._checkpoint = run.after
        self._pass([page.start_token for page in run.pages])

    def adopt(self, checkpoint: Checkpoint) -> bool:
        """The durable row as reread; False (and nothing changes) where it is older than what is known.

        Pages go on from it: those it has passed, or of another routing generation, are dropped and read again.

        >>> ledger = Ledger(Checkpoint(4, 9, "t9", None))
        >>> ledger.adopt(Checkpoint(5, 9, "t9", None)), ledger.adopt(Checkpoint(4, 10, "t10", None))
        (True, False)
        """
        known = self._checkpoint
        if (checkpoint.fencing_token, checkpoint.sequence) < (known.fencing_token, known.sequence):
            return False
        self._checkpoint = checkpoint
        for place in self._open:
            if place.page.generation != checkpoint.generation:
                self.counts.stale += 1
                self._open.remove(place, self._seen)
        if checkpoint.page_token != known.page_token:
            if checkpoint.page_token is not None:
                self._promoted_tokens.update([checkpoint.page_token])
            self._pass(self._open.path(known.page_token, checkpoint.page_token))
        return True

    def acknowledgeable(self, token: str) -> bool:
        """Whether the source may forget what lies before `token`: only where it is committed, or was.

        >>> Ledger(Checkpoint(1, 0, "t6", None)).acknowledgeable("t6")
        True
        """
        return token == self._checkpoint.page_token or token in self._promoted_tokens

    def forget(self) -> None:
        """Drop every open page and receipt: all of it is read again from the committed token.

        >>> ledger = Ledger(Checkpoint(1, 0, "t0", None)); _ = ledger.offer(PageAttempt("g", "t0", "t1"))
        >>> ledger.forget(); ledger.open_pages
        0
        """
        self._open.clear()

    def _run(self, pages: Sequence[PageAttempt]) -> Run:
        return run_of(self._checkpoint, pages, self._seen, self._accept_assertions)

    def _reachable(self) -> set[str | None]:
        return self._open.reachable(self._checkpoint.page_token)

    def _pass(self, tokens: Iterable[str | None]) -> None:
        self.counts.unreachable += self._open.remove_passed(tokens, self._checkpoint.page_token, self._seen)
